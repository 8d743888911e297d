// Package simd holds the inner loops of the fast ops: vector functions over
// []float32 and the micro-kernel of the matrix product.
//
// # Concepts
//
// Every function has a version in plain Go, which is always compiled, and on amd64
// versions in assembly for AVX2 with FMA and for AVX-512, which package cpufeat
// chooses between at each call. The build tag noasm leaves the assembly out.
//
// The vector functions take slices of any alignment. The first slice argument that
// is read decides the number of elements; a shorter operand panics as indexing
// would, a longer one is used in part. A destination may be the same slice as a
// source; any other overlap is not allowed.
//
// # Determinism
//
// A result depends on the arguments and on the instruction set, not on alignment,
// capacity or the number of goroutines: the order in which a reduction adds its
// lanes is fixed for each version. Versions differ from each other in the last
// bits.
//
// # Concurrency
//
// All functions may be called from any goroutine. Under the race detector the
// assembly reports what it reads and writes.
//
// # Errors
//
// There are none. A slice that is too short is a bug of the caller and panics.
package simd
