package blas

// Product is one matrix product of row-major f32 matrices:
//
//	Out = Alpha · op(Left) · op(Right) + Beta · Out      op(X) = Xᵀ if transposed, else X
//
// with op(Left) M×K, op(Right) K×N and Out M×N, none of them 0. A leading
// dimension is the distance in elements between the beginnings of rows as they
// lie in memory, and at least the length of such a row. Out overlaps neither
// operand, and is not read when Beta is 0. Alpha is not 0.
//
// A library whose matrices are column-major takes the operands in exchanged
// order, each with its own flag, and exchanged M and N: it computes Outᵀ.
type Product struct {
	TransLeft, TransRight  bool
	M, N, K                int
	Alpha, Beta            float32
	Left, Right, Out       *float32
	LDLeft, LDRight, LDOut int
}

// SGEMM is a library's single-precision matrix product.
type SGEMM interface {
	// SGEMM computes p, whose memory stays in place until it returns. It keeps
	// nothing of p.
	SGEMM(p *Product) error
}
