package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// The expected values of this file are worked out by hand; the operands are
// chosen so that this can be followed.

var (
	nan  = math.NaN()
	inf  = math.Inf(1)
	near = tensortest.Tolerance{Abs: 1e-7, Rel: 1e-7}
	ln3  = math.Log(3)
)

// of returns a tensor of these values.
func of(t *testing.T, d tensor.DType, shape []int, v ...float64) *tensor.Tensor {
	t.Helper()
	x, _ := tensortest.Guarded(t, d, shape...)
	require.NoError(t, x.SetFloat64s(v))
	return x
}

func f64(t *testing.T, shape []int, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.F64, shape, v...)
}

func f32(t *testing.T, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.F32, []int{len(v)}, v...)
}

func i32(t *testing.T, v ...float64) *tensor.Tensor {
	t.Helper()
	return of(t, tensor.I32, []int{len(v)}, v...)
}

// out returns a tensor that nothing was written to.
func out(t *testing.T, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, intact := tensortest.Guarded(t, d, shape...)
	t.Cleanup(func() { intact(t) })
	return x
}

// run validates and calls the reference.
func run[A any](t *testing.T, op *opregistry.Op[A], a A) {
	t.Helper()
	require.NoError(t, op.Validate(a))
	require.NoError(t, function(t, op)(nil, a))
}

func function[A any](t *testing.T, op *opregistry.Op[A]) opregistry.Func[A] {
	t.Helper()
	for _, impl := range reference.Source().Impls {
		if impl.Op == opregistry.Handle(op) {
			return impl.Run.(opregistry.Func[A])
		}
	}
	require.FailNow(t, "no impl", op.Name())
	return nil
}

func want(t *testing.T, got *tensor.Tensor, v ...float64) {
	t.Helper()
	tensortest.CloseTo(t, v, got, near)
}

func TestGemm(t *testing.T) {
	t.Parallel()
	x := func() *tensor.Tensor { return f64(t, []int{2, 2}, 1, 2, 3, 4) }
	w := func() *tensor.Tensor { return f64(t, []int{2, 2}, 5, 6, 7, 8) }
	d := func() *tensor.Tensor { return out(t, tensor.F64, 2, 2) }
	tests := []struct {
		name string
		give ops.GenericGemmArgs
		want []float64
	}{
		{"x·W", ops.GenericGemmArgs{A: w(), B: x(), D: d()}, []float64{19, 22, 43, 50}},
		{"x·Wᵀ", ops.GenericGemmArgs{A: w(), TransA: true, B: x(), D: d()}, []float64{17, 23, 39, 53}},
		{"xᵀ·W", ops.GenericGemmArgs{A: w(), B: x(), TransB: true, D: d()}, []float64{26, 30, 38, 44}},
		{"xᵀ·Wᵀ", ops.GenericGemmArgs{A: w(), TransA: true, B: x(), TransB: true, D: d()}, []float64{23, 31, 34, 46}},
		{"bias after alpha", ops.GenericGemmArgs{A: w(), B: x(), D: d(), Alpha: ops.Float(0.5), Bias: f64(t, []int{2}, 1, -1)}, []float64{10.5, 10, 22.5, 24}},
		{"accumulate", ops.GenericGemmArgs{A: w(), B: x(), D: x(), Accumulate: true}, []float64{20, 24, 46, 54}},
		{"accumulate with beta", ops.GenericGemmArgs{A: w(), B: x(), D: x(), Accumulate: true, Beta: ops.Float(-2)}, []float64{17, 18, 37, 42}},
		{"beta 0 reads nothing", ops.GenericGemmArgs{A: w(), B: x(), D: d(), Accumulate: true, Beta: ops.Float(0)}, []float64{19, 22, 43, 50}},
		{"no inner axis", ops.GenericGemmArgs{A: out(t, tensor.F64, 0, 2), B: out(t, tensor.F64, 2, 0), D: d()}, []float64{0, 0, 0, 0}},
		{"no inner axis, accumulate", ops.GenericGemmArgs{A: out(t, tensor.F64, 0, 2), B: out(t, tensor.F64, 2, 0), D: x(), Accumulate: true, Beta: ops.Float(3)}, []float64{3, 6, 9, 12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run(t, ops.GenericGemm, tt.give)
			want(t, tt.give.D, tt.want...)
		})
	}
}

func TestGemmGelu(t *testing.T) {
	t.Parallel()
	eye := f64(t, []int{1, 1}, 1)
	pre, y := out(t, tensor.F64, 4, 1), out(t, tensor.F64, 4, 1)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{A: eye, B: f64(t, []int{4, 1}, 0, -1.5, 2, -3), Bias: f64(t, []int{1}, 1), D: y, Gelu: true, GeluIn: pre})
	want(t, pre, 1, -0.5, 3, -2)
	gelu := []float64{0.8411919906, -0.1542859902, 2.9963626079, -0.0454023059}
	want(t, y, gelu...)

	// With beta the old D is added to the result of GELU.
	sum := f64(t, []int{4, 1}, 10, 20, 30, 40)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{A: eye, B: pre, D: sum, Gelu: true, GeluIn: out(t, tensor.F64, 4, 1), Accumulate: true, Beta: ops.Float(0.5)})
	want(t, sum, 5+gelu[0], 10+gelu[1], 15+gelu[2], 20+gelu[3])
}

func TestGemmGrad(t *testing.T) {
	t.Parallel()
	dy := f64(t, []int{4, 1}, 1, 2, -1, 1)
	pre := f64(t, []int{4, 1}, 1, -0.5, 3, -2)
	dx, dbias := out(t, tensor.F64, 4, 1), out(t, tensor.F64, 1)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{
		A: f64(t, []int{1, 1}, 3), B: dy, D: dx, Grad: true, Bias: dbias, Gelu: true, GeluIn: pre, Alpha: ops.Float(2),
	})
	want(t, dx, 6*1.0829640838, 12*0.1326300965, -6*1.0115841667, 6*-0.0860992566)
	want(t, dbias, 3) // of dy alone: neither alpha nor gelu

	// wgrad: B is transposed, its rows are still those of dY.
	dw, sums := out(t, tensor.F64, 2, 1), out(t, tensor.F64, 2)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{
		A: f64(t, []int{3, 1}, 1, 2, 3), B: f64(t, []int{3, 2}, 1, 2, 3, 4, 5, 6), TransB: true, D: dw, Grad: true, Bias: sums,
	})
	want(t, dw, 22, 28)
	want(t, sums, 9, 12)
}

// A sum that f32 rounds to a tie of bf16 is to be rounded from the exact value.
func TestResultsAreRoundedOnce(t *testing.T) {
	t.Parallel()
	d := out(t, tensor.BF16, 1, 1)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{
		A: f64(t, []int{3, 1}, 1, 1, 1), B: f64(t, []int{1, 3}, 1, 0x1p-8, 0x1p-30), D: d,
	})
	assert.Equal(t, []float64{1 + 0x1p-7}, d.Float64s())
}

func TestStridedViews(t *testing.T) {
	t.Parallel()
	storage := f64(t, []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	a, err := storage.Slice(1, 0, 2)
	require.NoError(t, err)
	b, err := storage.Slice(1, 2, 4)
	require.NoError(t, err)
	turned, err := b.Transpose(0, 1)
	require.NoError(t, err)
	room := out(t, tensor.F64, 2, 2)
	d, err := room.Transpose(0, 1)
	require.NoError(t, err)
	run(t, ops.GenericGemm, ops.GenericGemmArgs{A: a, B: turned, D: d}) // [3 7; 4 8]·[1 2; 5 6]
	want(t, room, 38, 44, 48, 56)
}

func TestRMSNorm(t *testing.T) {
	t.Parallel()
	// mean(x²) + eps = 12.5 + 12.5 = 5²
	x, gamma := f64(t, []int{1, 2}, 3, 4), f64(t, []int{2}, 1, 2)
	y, rsigma := out(t, tensor.F64, 1, 2), out(t, tensor.F32, 1)
	fwd := ops.RMSNormFwdArgs{Input: x, Weight: gamma, Output: y, RSigma: rsigma, Eps: 12.5, Saved: new(opregistry.Saved)}
	run(t, ops.RMSNormFwd, fwd)
	want(t, y, 0.6, 1.6)
	want(t, rsigma, 0.2)
	fwd.ZeroCenteredGamma = true
	run(t, ops.RMSNormFwd, fwd)
	want(t, y, 1.2, 2.4)

	// ḡ = [1 2], x̂ = [0.6 0.8], mean(ḡ·x̂) = 1.1
	bwd := ops.RMSNormBwdArgs{
		DZ: f64(t, []int{1, 2}, 1, 1), X: x, RSigma: rsigma, Gamma: gamma,
		DX: out(t, tensor.F64, 1, 2), DGamma: out(t, tensor.F64, 2), Saved: new(opregistry.Saved),
	}
	run(t, ops.RMSNormBwd, bwd)
	want(t, bwd.DX, 0.2*(1-0.66), 0.2*(2-0.88))
	want(t, bwd.DGamma, 0.6, 0.8)

	none := out(t, tensor.F64, 0, 2)
	run(t, ops.RMSNormBwd, ops.RMSNormBwdArgs{
		DZ: none, X: none, RSigma: out(t, tensor.F32, 0), Gamma: gamma, DX: none, DGamma: bwd.DGamma, Saved: new(opregistry.Saved),
	})
	want(t, bwd.DGamma, 0, 0)
}

func TestRMSNormSpecialRows(t *testing.T) {
	t.Parallel()
	y, rsigma := out(t, tensor.F64, 3, 2), out(t, tensor.F32, 3)
	run(t, ops.RMSNormFwd, ops.RMSNormFwdArgs{
		Input: f64(t, []int{3, 2}, 0, 0, nan, 1, inf, 1), Weight: f64(t, []int{2}, 1, 1), Output: y, RSigma: rsigma, Eps: 0.25, Saved: new(opregistry.Saved),
	})
	want(t, y, 0, 0, nan, nan, nan, 0)
	want(t, rsigma, 2, nan, 0)
}

func TestSwiGLU(t *testing.T) {
	t.Parallel()
	// σ(ln 3) = 3/4, σ(0) = 1/2
	x, y := f64(t, []int{1, 4}, ln3, 0, 2, 5), out(t, tensor.F64, 1, 2)
	run(t, ops.SwiGLU, ops.SwiGLUArgs{Input: x, Output: y})
	want(t, y, 1.5*ln3, 0)

	dx := out(t, tensor.F64, 1, 4)
	run(t, ops.DSwiGLU, ops.DSwiGLUArgs{Grad: f64(t, []int{1, 2}, 1, 2), FwdInput: x, Output: dx})
	want(t, dx, 2*(0.75+ln3*0.75*0.25), 2*5*0.5, 0.75*ln3, 0)
}

func TestResidualAdd(t *testing.T) {
	t.Parallel()
	a := f32(t, 1, inf, inf, nan)
	run(t, ops.ResidualAdd, ops.ResidualAddArgs{A: a, B: f32(t, 2, 1, -inf, 1), Output: a})
	want(t, a, 3, inf, nan, nan)
}

func TestAttention(t *testing.T) {
	t.Parallel()
	// One query with the scores 0 and ln 3: weights 1/4 and 3/4.
	one := []int{1, 1, 1, 1}
	two := []int{1, 2, 1, 1}
	fwd := ops.FusedAttnFwdArgs{
		Q: f64(t, one, 1), K: f64(t, two, 0, ln3), V: f64(t, two, 4, 8), O: out(t, tensor.F64, one...), Stats: out(t, tensor.F32, one...),
		AttnScale: ops.Float(1), QKVFormat: ops.BSHD, AttnMaskType: ops.NoMask, Saved: new(opregistry.Saved),
	}
	run(t, ops.FusedAttnFwd, fwd)
	want(t, fwd.O, 7)
	want(t, fwd.Stats, math.Log(4))

	bwd := ops.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, DO: f64(t, one, 2), Stats: fwd.Stats,
		DQ: out(t, tensor.F64, one...), DK: out(t, tensor.F64, two...), DV: out(t, tensor.F64, two...),
		AttnScale: ops.Float(1), QKVFormat: ops.BSHD, AttnMaskType: ops.NoMask, Saved: fwd.Saved,
	}
	run(t, ops.FusedAttnBwd, bwd)
	want(t, bwd.DV, 0.5, 1.5)  // P·dO
	want(t, bwd.DK, -1.5, 1.5) // P∘(dO·V − 14)
	want(t, bwd.DQ, 1.5*ln3)   // of the second key only
	run(t, ops.FusedAttnFwd, causal(fwd, ops.CausalMask))
	want(t, fwd.O, 4) // the first key only
	want(t, fwd.Stats, 0)
	run(t, ops.FusedAttnFwd, causal(fwd, ops.CausalBottomRightMask))
	want(t, fwd.O, 7) // both
}

func causal(a ops.FusedAttnFwdArgs, m ops.MaskType) ops.FusedAttnFwdArgs {
	a.AttnMaskType = m
	return a
}

func TestAttentionWithoutKeys(t *testing.T) {
	t.Parallel()
	two, one := []int{1, 2, 1, 1}, []int{1, 1, 1, 1}
	fwd := ops.FusedAttnFwdArgs{
		Q: f64(t, two, 1, 2), K: f64(t, one, 3), V: f64(t, one, 5), O: out(t, tensor.F64, two...), Stats: out(t, tensor.F32, two...),
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalBottomRightMask, Saved: new(opregistry.Saved),
	}
	run(t, ops.FusedAttnFwd, fwd)
	want(t, fwd.O, 0, 5)
	want(t, fwd.Stats, -inf, 6)
	bwd := ops.FusedAttnBwdArgs{
		Q: fwd.Q, K: fwd.K, V: fwd.V, O: fwd.O, DO: f64(t, two, 1, 1), Stats: fwd.Stats,
		DQ: out(t, tensor.F64, two...), DK: out(t, tensor.F64, one...), DV: out(t, tensor.F64, one...),
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalBottomRightMask, Saved: fwd.Saved,
	}
	run(t, ops.FusedAttnBwd, bwd)
	want(t, bwd.DQ, 0, 0)
	want(t, bwd.DK, 0)
	want(t, bwd.DV, 1)
}

// Head h of Q reads head h/(heads/groups) of K and V, in either format.
func TestAttentionGroups(t *testing.T) {
	t.Parallel()
	for _, f := range []ops.QKVFormat{ops.BSHD, ops.SBHD} {
		shape := func(h int) []int { return []int{1, 1, h, 1} }
		o := out(t, tensor.F64, shape(4)...)
		run(t, ops.FusedAttnFwd, ops.FusedAttnFwdArgs{
			Q: f64(t, shape(4), 1, 1, 1, 1), K: f64(t, shape(2), 1, 1), V: f64(t, shape(2), 5, 9), O: o, Stats: out(t, tensor.F32, 1, 4, 1, 1),
			QKVFormat: f, AttnMaskType: ops.CausalMask, Saved: new(opregistry.Saved),
		})
		want(t, o, 5, 5, 9, 9)
	}
	// Two sequences of two positions: SBHD has the sequences side by side.
	o := out(t, tensor.F64, 2, 2, 1, 1)
	run(t, ops.FusedAttnFwd, ops.FusedAttnFwdArgs{
		Q: f64(t, []int{2, 2, 1, 1}, 0, 0, 0, 0), K: f64(t, []int{2, 2, 1, 1}, 0, 0, 0, 0), V: f64(t, []int{2, 2, 1, 1}, 1, 10, 3, 30),
		O: o, Stats: out(t, tensor.F32, 2, 1, 2, 1), QKVFormat: ops.SBHD, AttnMaskType: ops.CausalMask, Saved: new(opregistry.Saved),
	})
	want(t, o, 1, 10, 2, 20)
}

func TestRope(t *testing.T) {
	t.Parallel()
	quarter := math.Pi / 2
	tests := []struct {
		name        string
		interleaved bool
		x, angles   []float64
		want, back  []float64 // the backward op on x
	}{
		{"quarter turn", false, []float64{1, 2}, []float64{quarter, quarter}, []float64{-2, 1}, []float64{2, -1}},
		{"an angle for each half", false, []float64{1, 2}, []float64{quarter, 0}, []float64{-2, 2}, []float64{0, 1}},
		{"halves", false, []float64{1, 2, 3, 4}, []float64{quarter, 0, quarter, 0}, []float64{-3, 2, 1, 4}, []float64{3, 2, -1, 4}},
		{"interleaved", true, []float64{1, 2, 3, 4}, []float64{quarter, quarter, 0, 0}, []float64{-2, 1, 3, 4}, []float64{2, -1, 3, 4}},
		{"rest is copied", false, []float64{1, 2, 3}, []float64{quarter, quarter}, []float64{-2, 1, 3}, []float64{2, -1, 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := out(t, tensor.F64, 1, 1, 1, len(tt.x))
			a := ops.FusedRopeArgs{
				Input: f64(t, []int{1, 1, 1, len(tt.x)}, tt.x...), Freqs: of(t, tensor.F32, []int{1, len(tt.angles)}, tt.angles...),
				Output: y, QKVFormat: ops.SBHD, Interleaved: tt.interleaved,
			}
			run(t, ops.FusedRopeForward, a)
			tensortest.CloseTo(t, tt.want, y, tensortest.Tolerance{Abs: 1e-6})
			run(t, ops.FusedRopeBackward, a)
			tensortest.CloseTo(t, tt.back, y, tensortest.Tolerance{Abs: 1e-6})
		})
	}
}

// The first element of a vector [1 0] that is turned by an angle of 0.1·position
// tells the position.
func TestRopePositions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give ops.FusedRopeArgs
		axes []int
		want []float64
	}{
		{"sbhd", ops.FusedRopeArgs{QKVFormat: ops.SBHD}, []int{3, 2, 1, 2}, []float64{0, 0, 1, 1, 2, 2}},
		{"bshd", ops.FusedRopeArgs{QKVFormat: ops.BSHD}, []int{2, 3, 1, 2}, []float64{0, 1, 2, 0, 1, 2}},
		{"start", ops.FusedRopeArgs{QKVFormat: ops.SBHD, StartPositions: i32(t, 3, 0)}, []int{2, 2, 1, 2}, []float64{3, 0, 4, 1}},
		{"thd", ops.FusedRopeArgs{QKVFormat: ops.THD, CuSeqlens: i32(t, 0, 2, 2, 5)}, []int{5, 1, 2}, []float64{0, 1, 0, 1, 2}},
		{"rank 0 of 2", ops.FusedRopeArgs{QKVFormat: ops.SBHD, CPSize: 2}, []int{4, 1, 1, 2}, []float64{0, 1, 6, 7}},
		{"rank 1 of 2", ops.FusedRopeArgs{QKVFormat: ops.SBHD, CPSize: 2, CPRank: 1}, []int{4, 1, 1, 2}, []float64{2, 3, 4, 5}},
		{"thd, rank 1 of 2", ops.FusedRopeArgs{QKVFormat: ops.THD, CuSeqlens: i32(t, 0, 2, 6), CPSize: 2, CPRank: 1}, []int{6, 1, 2}, []float64{1, 2, 2, 3, 4, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var angles, x, turned []float64
			for p := range 10 {
				angles = append(angles, 0.1*float64(p), 0.1*float64(p))
			}
			for _, p := range tt.want {
				x = append(x, 1, 0)
				turned = append(turned, math.Cos(0.1*p), math.Sin(0.1*p))
			}
			a := tt.give
			a.Input, a.Output, a.Freqs = f64(t, tt.axes, x...), out(t, tensor.F64, tt.axes...), of(t, tensor.F32, []int{10, 2}, angles...)
			run(t, ops.FusedRopeForward, a)
			tensortest.CloseTo(t, turned, a.Output, tensortest.Tolerance{Abs: 1e-6})
		})
	}
}

func TestAdam(t *testing.T) {
	t.Parallel()
	// At the first step u = g/(|g| + ε): 0.5/(0.5 + 0.5).
	first := ops.MultiTensorAdamArgs{LR: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, BiasCorrection: true}
	tests := []struct {
		name    string
		edit    func(a *ops.MultiTensorAdamArgs)
		p, m, v float64
	}{
		{"no decay", func(a *ops.MultiTensorAdamArgs) { a.Mode = ops.AdamDecay }, 0.75, 0.25, 0.0625},
		{"decay", func(a *ops.MultiTensorAdamArgs) { a.Mode, a.WeightDecay = ops.AdamDecay, 0.25 }, 0.625, 0.25, 0.0625},
		{"l2 makes g 1", func(a *ops.MultiTensorAdamArgs) { a.Mode, a.WeightDecay = ops.AdamL2, 0.5 }, 1 - 0.5/1.5, 0.5, 0.25},
		// Without correction u = 0.25/(0.25 + 0.5).
		{"no correction", func(a *ops.MultiTensorAdamArgs) { a.Mode, a.BiasCorrection = ops.AdamDecay, false }, 1 - 0.5/3, 0.25, 0.0625},
		{"flag is ignored", func(a *ops.MultiTensorAdamArgs) { a.Mode, a.NoopFlag = ops.AdamDecay, i32(t, 1) }, 0.75, 0.25, 0.0625},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, p, m, v := f32(t, 0.5), f32(t, 1), f32(t, 0), f32(t, 0)
			a := first
			a.NoopFlag, a.TensorLists = i32(t, 0), [][]*tensor.Tensor{{g}, {p}, {m}, {v}}
			tt.edit(&a)
			run(t, ops.MultiTensorAdam, a)
			want(t, p, tt.p)
			want(t, m, tt.m)
			want(t, v, tt.v)
		})
	}
}

func TestAdamMaster(t *testing.T) {
	t.Parallel()
	g, p, m, v := f32(t, 0.5), of(t, tensor.BF16, []int{1}, 99), f32(t, 0), f32(t, 0)
	master := f32(t, 1+0x1p-9)
	run(t, ops.MultiTensorAdam, ops.MultiTensorAdamArgs{
		NoopFlag: i32(t, 0), TensorLists: [][]*tensor.Tensor{{g}, {p}, {m}, {v}, {master}},
		LR: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, Mode: ops.AdamDecay, BiasCorrection: true,
	})
	want(t, master, 0.75+0x1p-9)
	assert.Equal(t, []float64{0.75}, p.Float64s())
}

func TestL2Norm(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		flag float64
		give []*tensor.Tensor
		norm float64
		per  []float64
		set  float64
	}{
		{"finite", 0, []*tensor.Tensor{f32(t, 2, 1, 2), f32(t, 4)}, 5, []float64{3, 4}, 0},
		{"flag stays", 1, []*tensor.Tensor{f32(t, 3), f32(t, 4)}, 5, []float64{3, 4}, 1},
		{"inf", 0, []*tensor.Tensor{f32(t, 3), f32(t, -inf)}, inf, []float64{3, inf}, 1},
		{"nan", 0, []*tensor.Tensor{f32(t, nan), f32(t, 4)}, nan, []float64{nan, 4}, 1},
		{"empty", 0, nil, 0, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := ops.MultiTensorL2NormArgs{
				NoopFlag: i32(t, tt.flag), TensorLists: [][]*tensor.Tensor{tt.give}, Norm: out(t, tensor.F32, 1), PerTensor: out(t, tensor.F32, len(tt.give)),
			}
			run(t, ops.MultiTensorL2Norm, a)
			want(t, a.Norm, tt.norm)
			want(t, a.PerTensor, tt.per...)
			want(t, a.NoopFlag, tt.set)
		})
	}
}

func TestScale(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		flag      float64
		give      []float64
		want      []float64
		set       float64
		halfWidth bool
	}{
		{"finite", 0, []float64{1, -2}, []float64{3, -6}, 0, false},
		{"flag stays", 1, []float64{1, -2}, []float64{3, -6}, 1, false},
		{"inf is written", 0, []float64{1, inf}, []float64{3, inf}, 1, false},
		{"nan is written", 0, []float64{nan, 1}, []float64{nan, 3}, 1, false},
		{"overflow is no input", 0, []float64{30000, 1}, []float64{inf, 3}, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := out(t, tensor.F32, 2)
			if tt.halfWidth {
				y = out(t, tensor.F16, 2)
			}
			flag := i32(t, tt.flag)
			run(t, ops.MultiTensorScale, ops.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{f32(t, tt.give...)}, {y}}, Scale: 3})
			want(t, y, tt.want...)
			want(t, flag, tt.set)
		})
	}
}

func TestEmbedding(t *testing.T) {
	t.Parallel()
	y := out(t, tensor.F32, 3, 2)
	index := i32(t, 2, 0, 2)
	run(t, ops.EmbeddingFwd, ops.EmbeddingFwdArgs{Indices: index, Weight: of(t, tensor.F32, []int{3, 2}, 1, 2, 3, 4, 5, 6), Output: y})
	want(t, y, 5, 6, 1, 2, 5, 6)

	dw := out(t, tensor.F32, 3, 2)
	a := ops.EmbeddingBwdArgs{Grad: y, Indices: index, DWeight: dw}
	run(t, ops.EmbeddingBwd, a)
	want(t, dw, 1, 2, 0, 0, 10, 12)
	a.Accumulate = true
	run(t, ops.EmbeddingBwd, a)
	want(t, dw, 2, 4, 0, 0, 20, 24)
}

func TestCrossEntropy(t *testing.T) {
	t.Parallel()
	// exp(logits) = [1 3], so lse = ln 4 and the softmax is [1/4 3/4].
	logits, targets := f64(t, []int{3, 2}, 0, ln3, 0, ln3, nan, nan), i32(t, 0, 1, -100)
	fwd := ops.CrossEntropyFwdArgs{
		Logits: logits, Targets: targets, Losses: out(t, tensor.F32, 3), LSE: out(t, tensor.F32, 3), IgnoreIndex: -100, Saved: new(opregistry.Saved),
	}
	run(t, ops.CrossEntropyFwd, fwd)
	want(t, fwd.Losses, math.Log(4), math.Log(4.0/3), 0)
	want(t, fwd.LSE, math.Log(4), math.Log(4), nan)

	dlogits := out(t, tensor.F64, 3, 2)
	run(t, ops.CrossEntropyBwd, ops.CrossEntropyBwdArgs{
		Logits: logits, Targets: targets, LSE: fwd.LSE, DLosses: f32(t, 1, 2, 5), DLogits: dlogits, IgnoreIndex: -100, Saved: fwd.Saved,
	})
	tensortest.CloseTo(t, []float64{-0.75, 0.75, 0.5, -0.5, 0, 0}, dlogits, tensortest.Tolerance{Abs: 1e-6})
}

func TestCrossEntropyOfInfinities(t *testing.T) {
	t.Parallel()
	a := ops.CrossEntropyFwdArgs{
		Logits: f64(t, []int{4, 2}, -inf, 0, -inf, -inf, inf, 0, 1000, 1000), Targets: i32(t, 1, 0, 1, 0),
		Losses: out(t, tensor.F32, 4), LSE: out(t, tensor.F32, 4), Saved: new(opregistry.Saved), IgnoreIndex: -100,
	}
	run(t, ops.CrossEntropyFwd, a)
	want(t, a.LSE, 0, -inf, inf, 1000+math.Ln2)
	want(t, a.Losses, 0, nan, inf, math.Ln2)
}

// accelerator says that its memory, which is the host's, is a GPU's.
type accelerator struct{ device.Backend }

func (accelerator) Device() (device.Device, error) { return device.Device{Type: device.TypeCUDA}, nil }

func TestDeclinesDeviceMemory(t *testing.T) {
	t.Parallel()
	x, err := tensor.New(accelerator{cpu.New()}, tensor.F32, 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Release()) })
	y := f32(t, 1, 2)
	err = function(t, ops.ResidualAdd)(nil, ops.ResidualAddArgs{A: y, B: x, Output: y})
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	assert.ErrorContains(t, err, `operand "b" lies on cuda:0`)
	want(t, y, 1, 2)
}
