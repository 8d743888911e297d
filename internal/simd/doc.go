// Package simd holds the inner loops of the fast ops: vector functions over []float32 and the
// micro-kernel of the matrix product.
//
// # Concepts
//
// Every function has a version in plain Go, which is always compiled, and on amd64 versions in
// assembly for AVX2 with FMA and for AVX-512; package cpufeat decides at each call which one runs.
// The build tag noasm leaves the assembly out.
//
// The vector functions take slices of any alignment. The length of the first slice argument that is
// read is the number of elements; of a longer operand only that many are used, and a shorter one
// panics, as does any slice that is too short. A destination may be the same slice as a source; any
// other overlap is not allowed.
//
// # Determinism
//
// A result depends on the arguments and on the instruction set, not on alignment, capacity or the
// number of goroutines: the order in which a reduction adds its lanes is fixed for each version.
// Versions differ from each other in the last bits.
//
// # Concurrency
//
// All functions may be called from any goroutine. Under the race detector the assembly functions
// report what they read and write.
package simd
