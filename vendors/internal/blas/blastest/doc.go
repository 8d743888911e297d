// Package blastest holds the tests that every package which serves generic_gemm through package
// blas runs.
//
// # Concepts
//
// Differential compares an implementation with plain loops in float64 over random shapes,
// transposes, pitches, scales and biases. The error bound holds for any order of summation in f32.
// Hammer calls the implementation from many goroutines and counts OS threads.
//
// # Concurrency
//
// The functions may run in parallel tests, except Hammer, which counts the threads of the whole
// process.
package blastest
