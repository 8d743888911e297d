package blas

import (
	"unsafe"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Product is one matrix product of row-major matrices: f32, f64, or operands in bf16 and a result
// in f32.
//
//	Out = Alpha · op(Left) · op(Right) + Beta · Out      op(X) = Xᵀ if transposed, else X
//
// with op(Left) M×K, op(Right) K×N and Out M×N, none of them 0. A leading dimension is the distance
// in elements between the starts of rows as they lie in memory, and at least the length of such a
// row. Out overlaps neither operand, and is not read when Beta is 0. Alpha is not 0.
//
// For a library whose matrices are column-major, exchange the operands with their flags, and M and
// N: it then computes Outᵀ.
type Product struct {
	Exec                   *opregistry.Exec // workers and scratch memory, for a library without its own
	DType                  tensor.DType     // of Left and Right
	TransLeft, TransRight  bool
	M, N, K                int
	Alpha, Beta            float32
	Left, Right, Out       unsafe.Pointer
	LDLeft, LDRight, LDOut int
}

// SGEMM is a library's single-precision matrix product.
type SGEMM interface {
	// SGEMM computes p in f32. The memory of p does not move until it returns. It keeps no
	// reference to p or its memory.
	SGEMM(p *Product) error
}

// DGEMM is a library that also multiplies in f64.
type DGEMM interface {
	// DGEMM computes p in f64; otherwise it is like SGEMM.
	DGEMM(p *Product) error
}

// BF16GEMM is a library that also multiplies operands in bf16, into f32.
type BF16GEMM interface {
	// BF16GEMM computes p for operands in bf16; otherwise it is like SGEMM.
	BF16GEMM(p *Product) error

	// BF16 returns nil if products in bf16 are worth the call on this machine, else an error that
	// wraps opregistry.ErrUnsupported and says why not.
	BF16() error
}
