// Package vector holds functions of whole rows of float32: arithmetic, sums, exponentials and what
// is built on them, gates and conversions from and to 16 bits.
//
// # Concepts
//
// Every function has a version in plain Go, which is always compiled, and on amd64 versions in
// assembly for AVX2 with FMA and for AVX-512; package cpufeat decides at each call which one runs.
// The build tag noasm leaves the assembly out.
//
// The functions take slices of any alignment. The length of the first slice argument that is read
// is the number of elements; of a longer operand only that many are used, and a shorter one panics,
// as does any slice that is too short. A destination may be the same slice as a source; any other
// overlap is not allowed.
//
// The assembly of both widths comes from one source: vector_amd64.h and exp_amd64.h hold the
// kernels in terms of a vector's width, and a file for each instruction set includes them.
//
// # Determinism
//
// A result depends on the arguments and on the instruction set, not on alignment, capacity or the
// number of goroutines: the order in which a reduction adds its lanes is fixed for each version.
// Versions differ from each other in the last bits.
//
// # Concurrency
//
// All functions may be called from any goroutine. They report to the race detector what the
// assembly reads and writes.
package vector
