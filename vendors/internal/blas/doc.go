// Package blas serves the op generic_gemm with a library that has a BLAS-like
// single-precision matrix product. A vendor's package brings the call of its
// library; everything around it is here once.
//
// # Concepts
//
// A Product is one call of the library in row-major terms. Gemm turns the
// arguments of generic_gemm into a Product: it collapses leading axes, finds
// leading dimensions, lays the bias into D before the product is accumulated
// onto it, and sums the bias gradient. It declines what a vendor's library
// cannot do or does worse than the default impl: dtypes other than f32, but for
// operands in bf16 that a BF16GEMM multiplies into f32 and for f64 that a DGEMM takes;
// memory that is not on the CPU, a last axis that is not contiguous, GELU, and products
// too small to be worth the call.
//
// # Concurrency
//
// Gemm may be called from many goroutines; how many calls reach the library at
// the same time is bounded by the vendor's package.
//
// # Errors
//
// Gemm returns an error that wraps opregistry.ErrUnsupported before it has
// written anything, and what the library's call returns.
package blas
