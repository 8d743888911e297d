// Package fused holds the inner loops of the memory-bound ops: each reads every operand of a row
// once and writes every result once.
//
// A function takes slices of equal length, or documents the lengths it needs, and computes in f32
// unless it says otherwise. The first slices are the results. Every function has a plain Go form,
// which is always compiled and runs on every machine, and an assembly form for AVX2 with FMA that
// works on whole vectors and mostly leaves the tail to the Go form. Functions whose AVX2 form is
// slower than memory also have one for AVX-512. All forms agree within a few units in the last
// place; one machine always uses the same form, so results repeat bit for bit. The build tag noasm
// leaves the assembly out.
//
// A result may be the same slice as an operand; slices that overlap in part are not supported. A
// slice that is too short panics: callers check the lengths.
//
// The functions keep no state and may run at the same time on disjoint results.
package fused
