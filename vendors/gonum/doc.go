// Package gonum serves the op generic_gemm with gonum's BLAS, which is written in Go and needs no
// library.
//
// # Concepts
//
// The vendor gonum is available on every machine and every platform, so a policy that prefers
// vendors always finds one. Its priority is below that of the vendors that call a library, which
// are several times as fast.
//
// A product is cut into blocks by its shape and never by the number of workers, and gonum's kernel
// sums every block in the same order.
//
// # Concurrency
//
// The impl may be called from many goroutines.
//
// # Errors
//
// Calls that the impl does not serve are declined with an error that wraps
// opregistry.ErrUnsupported, before anything is written.
package gonum
