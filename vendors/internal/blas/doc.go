// Package blas serves the op generic_gemm with a library that has a BLAS-like matrix product. A
// vendor's package provides the call of its library; this package does the rest.
//
// # Concepts
//
// A Product is one call of the library, in terms of row-major matrices. Gemm turns the arguments of
// generic_gemm into a Product: it collapses leading axes, finds leading dimensions, writes the bias
// to D before the product is accumulated there, and sums the bias gradient. It declines what a
// vendor's library cannot do or does worse than the default impl: dtypes other than f32, except
// operands in bf16 that a BF16GEMM multiplies into f32 and f64 that a DGEMM takes; memory that is
// not on the CPU; a last axis that is not contiguous; GELU; and products too small to be worth the
// call.
//
// # Concurrency
//
// Gemm may be called from many goroutines; the vendor's package bounds how many calls reach the
// library at the same time.
//
// # Errors
//
// Gemm returns an error that wraps opregistry.ErrUnsupported before it has written anything, or the
// error of the library's call.
package blas
