package reference

import (
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// genericGemm computes, in this order,
//
//	P = alpha · op(B) · op(A)
//	P += bias by row, gelu_in = P, P = gelu(P)           with Grad false
//	bias = Σ_rows B,  P = P · gelu'(gelu_in)             with Grad true
//	D = P + beta · D                                     beta = 0 without Accumulate
//
// With a beta of 0, D is not read, as in BLAS.
func genericGemm(a gemm.GenericGemmArgs) error {
	m, n, k := a.Dims()
	p := matmul(operand(a.B, a.TransB), operand(a.A, a.TransA), m, n, k)
	alpha := float64(a.Alpha.Or(1))
	for i := range p {
		p[i] *= alpha
	}
	if err := epilogue(a, p, n); err != nil {
		return err
	}
	if beta := float64(a.Beta.Or(1)); a.Accumulate && beta != 0 {
		for i, d := range a.D.Float64s() {
			p[i] += beta * d
		}
	}
	return a.D.SetFloat64s(p)
}

// epilogue applies bias and geluOf to p, which has rows of n elements, and writes the operands that
// receive a value.
func epilogue(a gemm.GenericGemmArgs, p []float64, n int) error {
	if a.Grad {
		if a.Bias != nil {
			if err := a.Bias.SetFloat64s(columnSums(a.B)); err != nil {
				return err
			}
		}
		if a.Gelu {
			for i, x := range a.GeluIn.Float64s() {
				p[i] *= geluDerivative(x)
			}
		}
		return nil
	}
	if a.Bias != nil {
		bias := a.Bias.Float64s()
		for i := range p {
			p[i] += bias[i%n]
		}
	}
	if a.Gelu {
		if err := a.GeluIn.SetFloat64s(p); err != nil {
			return err
		}
		for i, x := range p {
			p[i] = geluOf(x)
		}
	}
	return nil
}

// operand returns the elements of op(X) in row-major order.
func operand(x *tensor.Tensor, transposed bool) []float64 {
	v := x.Float64s()
	if !transposed {
		return v
	}
	rows, cols := x.Shape().Rows(), x.Shape().Cols()
	out := make([]float64, len(v))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = v[r*cols+c]
		}
	}
	return out
}

// matmul returns the m×n product of x, m×k, and y, k×n. Each sum runs in
// ascending order of the inner index.
func matmul(x, y []float64, m, n, k int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		row := out[i*n : (i+1)*n]
		for l, f := range x[i*k : (i+1)*k] {
			for j, v := range y[l*n : (l+1)*n] {
				row[j] += f * v
			}
		}
	}
	return out
}

func columnSums(x *tensor.Tensor) []float64 {
	sums := make([]float64, x.Shape().Cols())
	for i, v := range x.Float64s() {
		sums[i%len(sums)] += v
	}
	return sums
}
