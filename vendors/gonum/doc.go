// Package gonum serves the op generic_gemm with gonum's BLAS, which is Go and needs no
// library.
//
// # Concepts
//
// The vendor gonum is there on every machine and every platform, so a policy that prefers
// vendors finds one wherever it is in force. It is the vendor of last resort: its priority
// is below that of the vendors that call a library, which are several times as fast.
//
// A product is cut into blocks by its shape and never by the number of workers, and gonum's
// kernel sums a block the same way on each of them.
//
// # Concurrency
//
// The impl may be called from many goroutines.
//
// # Errors
//
// What is not served is declined with an error that wraps opregistry.ErrUnsupported, before
// anything is written.
package gonum
