// Package kerneltest helps to test kernels: it surrounds operands with guards, calls kernels for
// every length and alignment, and compares them with their formula in float64.
//
// [EachFeature] disables the features of the running machine one by one, the newest first. A
// disabled feature is disabled for the whole process, so tests that use it must not run in parallel
// with other tests of theirs.
package kerneltest
