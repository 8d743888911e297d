package reference_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// summed bounds what two orders of summing a few hundred products of magnitude 1 in f64
// may differ by.
var summed = tensortest.Tolerance{Abs: 1e-12, Rel: 1e-12}

// normal returns a matrix for gonum and for the reference, with the same elements.
func normal(t *testing.T, r *rand.Rand, rows, cols int) (*mat.Dense, *tensor.Tensor) {
	t.Helper()
	v := make([]float64, rows*cols)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return mat.NewDense(rows, cols, v), f64(t, []int{rows, cols}, v...)
}

// Products of the reference agree with gonum's, which somebody else wrote: all layouts,
// scales, accumulation and bias, in the sizes of small layers.
func TestGemmAgreesWithGonum(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 4))
	for _, s := range [][3]int{{1, 1, 1}, {1, 9, 300}, {17, 3, 5}, {40, 64, 33}, {65, 31, 129}} {
		m, n, k := s[0], s[1], s[2]
		for _, transA := range []blas.Transpose{blas.NoTrans, blas.Trans} {
			for _, transB := range []blas.Transpose{blas.NoTrans, blas.Trans} {
				t.Run(fmt.Sprintf("%v/%c%c", s, transA, transB), func(t *testing.T) {
					right, a := normal(t, r, k, n)
					if transA == blas.Trans {
						right, a = normal(t, r, n, k)
					}
					left, b := normal(t, r, m, k)
					if transB == blas.Trans {
						left, b = normal(t, r, k, m)
					}
					sum, d := normal(t, r, m, n)
					bias, shift := normal(t, r, 1, n)
					bias.Apply(func(_, _ int, v float64) float64 { return v / 2 }, bias)
					require.NoError(t, shift.SetFloat64s(bias.RawMatrix().Data))

					blas64.Gemm(transB, transA, 0.75, left.RawMatrix(), right.RawMatrix(), -0.5, sum.RawMatrix())
					for i := range m {
						row := sum.RowView(i).(*mat.VecDense)
						row.AddVec(row, bias.RowView(0))
					}
					run(t, ops.GenericGemm, ops.GenericGemmArgs{
						A: a, TransA: transA == blas.Trans, B: b, TransB: transB == blas.Trans, D: d, Bias: shift,
						Alpha: ops.Float(0.75), Accumulate: true, Beta: ops.Float(-0.5),
					})
					tensortest.CloseTo(t, sum.RawMatrix().Data, d, summed)
				})
			}
		}
	}
}

// The gradients of a linear layer are gonum's, too: dX = dY·W, dW = dYᵀ·X and the column
// sums of dY.
func TestLinearGradientsAgreeWithGonum(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 5))
	const rows, in, outs = 37, 21, 50
	x, xs := normal(t, r, rows, in)
	w, ws := normal(t, r, outs, in)
	dy, dys := normal(t, r, rows, outs)

	var dx, dw mat.Dense
	dx.Mul(dy, w)
	dw.Mul(dy.T(), x)
	db := make([]float64, outs)
	for j := range db {
		db[j] = mat.Sum(dy.ColView(j))
	}

	gotX, gotW, gotB := out(t, tensor.F64, rows, in), out(t, tensor.F64, outs, in), out(t, tensor.F64, outs)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{A: ws, B: dys, D: gotX})
	run(t, ops.GenericGemm, ops.GenericGemmArgs{A: xs, B: dys, TransB: true, D: gotW, Grad: true, Bias: gotB})
	tensortest.CloseTo(t, dx.RawMatrix().Data, gotX, summed)
	tensortest.CloseTo(t, dw.RawMatrix().Data, gotW, summed)
	tensortest.CloseTo(t, db, gotB, summed)
}
