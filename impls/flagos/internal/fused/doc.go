// Package fused holds the inner loops of the memory-bound ops: each reads every
// operand of a row once and writes every result once.
//
// # Concepts
//
// A function takes slices of equal length, or says which lengths it wants, and
// computes in f32 unless it says otherwise. The first slices are the results.
// Every function has a plain Go form, which is always compiled and serves every
// machine, and an assembly form for AVX2 with FMA that works on whole vectors
// and mostly leaves the tail to the Go form. Where that is not at the limit of the
// memory, there is one for AVX-512, too. All forms agree within a few units in the
// last place; one machine always takes the same form, so results repeat bit for
// bit. The build tag noasm leaves the assembly out.
//
// A result may be the same slice as an operand; slices that overlap in part are
// not supported.
//
// # Concurrency
//
// The functions keep nothing and may run at the same time on disjoint results.
//
// # Errors
//
// A slice that is too short panics: lengths are the caller's, checked before.
package fused
