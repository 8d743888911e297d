package reference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	lossops "github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// summed bounds the difference between two orders of summing a few hundred products of magnitude 1
// in f64.
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

// Products of the reference agree with gonum, an independent implementation, in all layouts, with
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
					run(t, gemm.GenericGemm, gemm.GenericGemmArgs{
						A: a, TransA: transA == blas.Trans, B: b, TransB: transB == blas.Trans, D: d, Bias: shift,
						Alpha: opregistry.Float(0.75), Accumulate: true, Beta: opregistry.Float(-0.5),
					})
					tensortest.CloseTo(t, sum.RawMatrix().Data, d, summed)
				})
			}
		}
	}
}

// Gradients of a linear layer agree with gonum, too: dX = dY·W, dW = dYᵀ·X and the column sums of
// dY.
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
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: ws, B: dys, D: gotX})
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: xs, B: dys, TransB: true, D: gotW, Grad: true, Bias: gotB})
	tensortest.CloseTo(t, dx.RawMatrix().Data, gotX, summed)
	tensortest.CloseTo(t, dw.RawMatrix().Data, gotW, summed)
	tensortest.CloseTo(t, db, gotB, summed)
}

// Norms agree with gonum: mean and variance of each row with stat, norms of lists with mat.
func TestNormsAgreeWithGonum(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 6))
	const rows, cols, eps = 19, 131, 1e-5
	x, xs := normal(t, r, rows, cols)
	gamma, _ := normal(t, r, 1, cols)
	beta, _ := normal(t, r, 1, cols)
	weight := f64(t, []int{cols}, gamma.RawRowView(0)...)
	bias := f64(t, []int{cols}, beta.RawRowView(0)...)

	var centred, scaled mat.Dense
	var means, deviations, roots []float64
	centred.CloneFrom(x)
	scaled.CloneFrom(x)
	for i := range rows {
		mean, variance := stat.PopMeanVariance(x.RawRowView(i), nil)
		length := mat.Norm(x.RowView(i), 2)
		means = append(means, mean)
		deviations = append(deviations, 1/math.Sqrt(variance+eps))
		roots = append(roots, 1/math.Sqrt(length*length/cols+eps))
		floats.AddConst(-mean, centred.RawRowView(i))
		floats.Scale(deviations[i], centred.RawRowView(i))
		floats.Mul(centred.RawRowView(i), gamma.RawRowView(0))
		floats.Scale(roots[i], scaled.RawRowView(i))
		floats.Mul(scaled.RawRowView(i), gamma.RawRowView(0))
		floats.Add(centred.RawRowView(i), beta.RawRowView(0))
	}

	y, mu, rsigma := out(t, tensor.F64, rows, cols), out(t, tensor.F32, rows), out(t, tensor.F32, rows)
	run(t, norm.LayerNormFwd, norm.LayerNormFwdArgs{Input: xs, Weight: weight, Bias: bias, Output: y, Mu: mu, RSigma: rsigma, Eps: eps, Saved: new(opregistry.Saved)})
	tensortest.CloseTo(t, centred.RawMatrix().Data, y, tight)
	tensortest.CloseTo(t, means, mu, tight)
	tensortest.CloseTo(t, deviations, rsigma, tight)

	y, rsigma = out(t, tensor.F64, rows, cols), out(t, tensor.F32, rows)
	run(t, norm.RMSNormFwd, norm.RMSNormFwdArgs{Input: xs, Weight: weight, Output: y, RSigma: rsigma, Eps: eps, Saved: new(opregistry.Saved)})
	tensortest.CloseTo(t, scaled.RawMatrix().Data, y, tight)
	tensortest.CloseTo(t, roots, rsigma, tight)

	norm, each := out(t, tensor.F32, 1), out(t, tensor.F32, 2)
	run(t, optim.MultiTensorL2Norm, optim.MultiTensorL2NormArgs{
		NoopFlag: i32(t, 0), TensorLists: [][]*tensor.Tensor{{xs, weight}}, Norm: norm, PerTensor: each,
	})
	parts := []float64{mat.Norm(x, 2), mat.Norm(gamma, 2)}
	tensortest.CloseTo(t, parts, each, tight)
	tensortest.CloseTo(t, []float64{floats.Norm(parts, 2)}, norm, tight)
}

// Softmax, cross entropy and attention agree with gonum: log-sum-exp of each row with floats, the
// products around it with mat.
func TestSoftmaxAgreesWithGonum(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 7))
	const queries, keys, dim, scale = 23, 31, 17, 0.375
	q, qs := normal(t, r, queries, dim)
	k, ks := normal(t, r, keys, dim)
	v, vs := normal(t, r, keys, dim)

	var scores, p, o mat.Dense
	scores.Mul(q, k.T())
	scores.Scale(scale, &scores)
	p.CloneFrom(&scores)
	var sums, losses, labels []float64
	for i := range queries {
		sums = append(sums, floats.LogSumExp(scores.RawRowView(i)))
		labels = append(labels, float64(r.IntN(keys)))
		losses = append(losses, sums[i]-scores.At(i, int(labels[i])))
	}
	p.Apply(func(i, _ int, s float64) float64 { return math.Exp(s - sums[i]) }, &p)
	o.Mul(&p, v)

	logits := f64(t, []int{queries, keys}, scores.RawMatrix().Data...)
	loss, lse := out(t, tensor.F32, queries), out(t, tensor.F32, queries)
	run(t, lossops.CrossEntropyFwd, lossops.CrossEntropyFwdArgs{Logits: logits, Targets: i32(t, labels...), Losses: loss, LSE: lse, IgnoreIndex: -100, Saved: new(opregistry.Saved)})
	tensortest.CloseTo(t, losses, loss, tight)
	tensortest.CloseTo(t, sums, lse, tight)

	y := out(t, tensor.F64, 1, 1, queries, keys)
	run(t, softmax.ScaledSoftmaxForward, softmax.SoftmaxArgs{Input: f64(t, []int{1, 1, queries, keys}, scores.RawMatrix().Data...), Output: y, ScaleFactor: 1})
	tensortest.CloseTo(t, p.RawMatrix().Data, y, summed)

	heads := func(x *tensor.Tensor) *tensor.Tensor {
		view, err := x.Reshape(1, x.Shape().Rows(), 1, dim)
		require.NoError(t, err)
		return view
	}
	got, stats := out(t, tensor.F64, 1, queries, 1, dim), out(t, tensor.F32, 1, 1, queries, 1)
	run(t, attention.FusedAttnFwd, attention.FusedAttnFwdArgs{
		Q: heads(qs), K: heads(ks), V: heads(vs), O: got, Stats: stats,
		AttnScale: opregistry.Float(scale), QKVFormat: attention.BSHD, AttnMaskType: attention.NoMask, Saved: new(opregistry.Saved),
	})
	tensortest.CloseTo(t, o.RawMatrix().Data, got, summed)
	tensortest.CloseTo(t, sums, stats, tight)
}
