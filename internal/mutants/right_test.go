package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/dropout"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/opscases"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// sums are right ways to add up n terms in f32.
var sums = map[string]func(n int, term func(int) float32) float32{
	"in order": func(n int, term func(int) float32) (sum float32) {
		for i := range n {
			sum += term(i)
		}
		return sum
	},
	"from the end": func(n int, term func(int) float32) (sum float32) {
		for i := n - 1; i >= 0; i-- {
			sum += term(i)
		}
		return sum
	},
	"in blocks": func(n int, term func(int) float32) (sum float32) {
		for first := 0; first < n; first += 32 {
			var part float32
			for i := first; i < min(first+32, n); i++ {
				part += term(i)
			}
			sum += part
		}
		return sum
	},
	"in lanes": func(n int, term func(int) float32) float32 {
		var lanes [8]float32
		for i := range n {
			lanes[i%8] += term(i)
		}
		return (lanes[0] + lanes[4]) + (lanes[1] + lanes[5]) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]))
	},
	"fused": func(n int, term func(int) float32) float32 {
		sum := 0.0
		for i := range n {
			sum += float64(term(i))
		}
		return float32(sum)
	},
	"without subnormals": func(n int, term func(int) float32) (sum float32) {
		for i := range n {
			sum += flushed(term(i))
		}
		return flushed(sum)
	},
}

func flushed(v float32) float32 {
	if math.Abs(float64(v)) < 0x1p-126 {
		return 0
	}
	return v
}

// Kernels that are right pass, whatever their order of sums is.
func TestRightKernelsPass(t *testing.T) {
	t.Parallel()
	for style, sum := range sums {
		var flushes []tensor.DType
		if style == "without subnormals" {
			flushes = []tensor.DType{tensor.F32}
		}
		rms := opregistry.Impl{Op: norm.RMSNormFwd, ID: "right", FlushesSubnormals: flushes, Run: func(_ *opregistry.Exec, a norm.RMSNormFwdArgs) error {
			return rmsnorm(a, sum)
		}}
		product := opregistry.Impl{Op: gemm.GenericGemm, ID: "right", FlushesSubnormals: flushes, Run: func(_ *opregistry.Exec, a gemm.GenericGemmArgs) error {
			return multiply(a, sum)
		}}
		for _, impl := range []opregistry.Impl{rms, product} {
			t.Run(impl.Op.Name()+"/"+style, func(t *testing.T) {
				t.Parallel()
				results, err := opscases.All().Verify(impl, right(impl.Op), opstest.WithDTypes(tensor.F32), opstest.Sample(60, 1), opstest.GuardPages())
				require.NoError(t, err)
				require.Len(t, results, 1)
				assert.Empty(t, results[0].Failures)
				assert.Positive(t, results[0].Served)
			})
		}
	}
}

// Kernels that take subnormal numbers as 0 are refused, unless they say so.
func TestFlushedSubnormalsAreDeclared(t *testing.T) {
	t.Parallel()
	undeclared := rule{dtype: tensor.F32, wrong: beforehand(func(_ place, v float64) float64 {
		if math.Abs(v) < 0x1p-126 {
			return 0
		}
		return v
	})}
	for _, op := range []opregistry.Handle{
		gemm.GenericGemm, norm.RMSNormBwd, norm.ResidualAdd, activation.SwiGLU, activation.DGELU, attention.FusedAttnFwd, dropout.DropoutBwd, embedding.EmbeddingBwd,
	} {
		t.Run(op.Name(), func(t *testing.T) {
			t.Parallel()
			m := undeclared.of(op)
			m.options = []opstest.Option{opstest.Sample(12, 1)}
			reason, err := m.refusal()
			require.NoError(t, err)
			assert.Contains(t, reason, "f32/subnormal_")
			assert.Contains(t, reason, "the impl takes subnormal numbers as 0, which it may declare")

			m.impl.FlushesSubnormals = []tensor.DType{tensor.F32}
			reason, err = m.refusal()
			require.NoError(t, err)
			assert.Empty(t, reason)
		})
	}
}

func rmsnorm(a norm.RMSNormFwdArgs, sum func(int, func(int) float32) float32) error {
	x, w := a.Input.Float64s(), a.Weight.Float64s()
	n := len(w)
	y, rsigma := make([]float64, len(x)), make([]float64, a.RSigma.NumElements())
	for r := range rsigma {
		row := x[r*n:][:n]
		squares := sum(n, func(i int) float32 { return float32(row[i]) * float32(row[i]) })
		root := 1 / math.Sqrt(float64(squares/float32(max(n, 1)))+float64(a.Eps))
		rsigma[r] = root
		for i, v := range row {
			gain := w[i]
			if a.ZeroCenteredGamma {
				gain++
			}
			y[r*n+i] = float64(float32(v * root * gain))
		}
	}
	if err := a.RSigma.SetFloat64s(rsigma); err != nil {
		return err
	}
	return a.Output.SetFloat64s(y)
}

// multiply implements products without epilogues that are not too large for a test.
func multiply(a gemm.GenericGemmArgs, sum func(int, func(int) float32) float32) error {
	rows := func(x *tensor.Tensor, transposed bool) (int, int, func(i, j int) float32) {
		v, r, c := x.Float64s(), x.Shape().Rows(), x.Shape().Cols()
		if transposed {
			return c, r, func(i, j int) float32 { return float32(v[j*c+i]) }
		}
		return r, c, func(i, j int) float32 { return float32(v[i*c+j]) }
	}
	m, k, left := rows(a.B, a.TransB)
	_, n, right := rows(a.A, a.TransA)
	if a.Gelu || a.Grad || a.Accumulate || a.Bias != nil || m*n*k > 1<<22 {
		return opregistry.ErrUnsupported
	}
	d := make([]float64, m*n)
	for at := range d {
		i, j := at/n, at%n
		d[at] = float64(a.Alpha.Or(1) * sum(k, func(l int) float32 { return left(i, l) * right(l, j) }))
	}
	return a.D.SetFloat64s(d)
}

// A backward impl is judged with the roundings of its forward impl: a value in the middle of two
// numbers may become both. What is further off is not adopted.
func TestRoundingOfSavedResults(t *testing.T) {
	t.Parallel()
	forward, backward := right(attention.FusedAttnFwd), right(attention.FusedAttnBwd)
	for units, refuses := range map[float64]bool{1: false, 2: true} {
		other := forward
		other.Run = func(x *opregistry.Exec, a attention.FusedAttnFwdArgs) error {
			if err := forward.Run.(opregistry.Func[attention.FusedAttnFwdArgs])(x, a); err != nil {
				return err
			}
			v := a.O.Float64s()
			for i := range v {
				if v[i] >= 0.5 && v[i] < 0.75 {
					v[i] += units * 0x1p-8
				}
			}
			return a.O.SetFloat64s(v)
		}
		results, err := opscases.All().Verify(backward, backward, opstest.WithDTypes(tensor.BF16), opstest.Sample(6, 1), opstest.WithForward(other), opstest.WithOracleForward(forward))
		require.NoError(t, err)
		require.Len(t, results, 1)
		assert.Positive(t, results[0].Served)
		assert.Equal(t, refuses, len(results[0].Failures) > 0, results[0].Failures)
	}
}
