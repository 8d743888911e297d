// Package rope rotates pairs of float32 by angles and computes the sines and cosines of angles.
//
// Every function has a version in plain Go, which is always compiled, and on amd64 one in assembly
// for AVX2 with FMA, which takes whole vectors and leaves the rest to plain Go. Where that is
// slower than memory, there is one for AVX-512, too; sines and cosines of both widths come from one
// source, sincos_amd64.h. They agree within a few units in the last place; one machine always uses
// the same version, so results repeat bit for bit. The build tag noasm leaves the assembly out.
//
// A result may be the same slice as an operand; slices that overlap in part are not supported. A
// slice that is too short panics: callers check the lengths. The functions keep no state and may
// run at the same time on disjoint results.
package rope
