// Package norm normalises rows of float32 and computes the gradients: each function reads every
// operand of a row from memory once and writes every result once.
//
// Every function has a version in plain Go, which is always compiled, and on amd64 versions in
// assembly for AVX2 with FMA and for AVX-512 from one source, norm_amd64.h. They agree within a few
// units in the last place; one machine always uses the same version, so results repeat bit for bit.
// The build tag noasm leaves the assembly out.
//
// A result may be the same slice as an operand; slices that overlap in part are not supported. A
// slice that is too short panics: callers check the lengths. The functions keep no state and may
// run at the same time on disjoint results.
package norm
