// Package blastest holds the tests that every package which serves generic_gemm
// through package blas runs.
//
// # Concepts
//
// Differential compares an implementation with plain loops in float64 over random
// shapes, transposes, pitches, scales and biases, within the error bound that any
// order of summation in f32 keeps. Hammer calls it from many goroutines and
// counts OS threads.
//
// # Concurrency
//
// The functions may run in parallel tests; Hammer counts threads of the whole
// process and may not.
//
// # Errors
//
// Differences fail the test with the case that shows them.
package blastest
