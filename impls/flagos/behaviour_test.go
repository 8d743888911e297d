package flagos_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/loss"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// call runs the impl of an op on valid arguments.
func call[A any](t *testing.T, op *opregistry.Op[A], a A) error {
	t.Helper()
	require.NoError(t, op.Validate(a))
	return runOf(t, fastSource, op)(opregistry.NewExec(nil, 0), a)
}

func TestNormKeepsANaNInItsRow(t *testing.T) {
	m := newMaker(t, 1, false)
	x := m.fill(m.dense(tensor.F32, 3, 9))
	x.Set(nan, 1, 4)
	a := norm.RMSNormFwdArgs{
		Input: x, Weight: m.fill(m.dense(tensor.F32, 9)), Output: m.dense(tensor.F32, 3, 9),
		RSigma: m.dense(tensor.F32, 3), Eps: 1e-5, Saved: &opregistry.Saved{},
	}
	require.NoError(t, call(t, norm.RMSNormFwd, a))
	for r := range 3 {
		for i := range 9 {
			assert.Equal(t, r == 1, math.IsNaN(a.Output.At(r, i)), "row %d", r)
		}
	}
}

func TestNormServesRowsWhoseSquaresLeaveTheRangeOfF32(t *testing.T) {
	for _, v := range []float64{1e-30, 1e30} {
		x := vector(t, v, v, v, v, v, v, v, v, v)
		a := norm.RMSNormFwdArgs{
			Input: x, Weight: vector(t, 1, 1, 1, 1, 1, 1, 1, 1, 1), Output: vector(t, make([]float64, 9)...),
			RSigma: vector(t, 0), Eps: 1e-45, Saved: &opregistry.Saved{},
		}
		require.NoError(t, call(t, norm.RMSNormFwd, a))
		want := v / math.Sqrt(v*v+float64(a.Eps))
		assert.InEpsilon(t, want, a.Output.At(3), 1e-6, "%g", v)
	}
}

func TestNormBwdWithoutRowsZeroesDGamma(t *testing.T) {
	m := newMaker(t, 1, false)
	a := norm.RMSNormBwdArgs{
		DZ: m.dense(tensor.F32, 0, 3), X: m.dense(tensor.F32, 0, 3), RSigma: m.dense(tensor.F32, 0),
		Gamma: vector(t, 1, 2, 3), DX: m.dense(tensor.F32, 0, 3), DGamma: m.dense(tensor.F32, 3), Saved: &opregistry.Saved{},
	}
	require.NoError(t, call(t, norm.RMSNormBwd, a))
	assert.Equal(t, []float64{0, 0, 0}, a.DGamma.Float64s())
}

func TestSwiGLUAtTheEndsOfTheRange(t *testing.T) {
	x := vector(t, -200, 200, nan, -20, 3, 3, 3, 3)
	y := vector(t, 0, 0, 0, 0)
	require.NoError(t, call(t, activation.SwiGLU, activation.SwiGLUArgs{Input: x, Output: y}))
	got := y.Float64s()
	assert.Zero(t, got[0])
	assert.EqualValues(t, 600, got[1])
	assert.True(t, math.IsNaN(got[2]))
	assert.InEpsilon(t, -60*math.Exp(-20), got[3], 1e-5)
}

func TestCrossEntropyOfInfiniteLogits(t *testing.T) {
	tests := []struct {
		name              string
		logits            []float64
		target            float64
		wantLSE, wantLoss float64
	}{
		{"masked with -Inf", []float64{-inf, 0, -inf}, 1, 0, 0},
		{"target is masked", []float64{-inf, 0, -inf}, 0, 0, inf},
		{"one is +Inf", []float64{0, inf, 1}, 0, inf, nan},
		{"target is +Inf", []float64{0, inf, 1}, 1, inf, nan},
		{"all are -Inf", []float64{-inf, -inf, -inf}, 1, -inf, nan},
		{"one is NaN", []float64{0, nan, 1}, 0, nan, nan},
		{"NaN beside +Inf", []float64{inf, nan, 1}, 2, nan, nan},
		{"ignored beside NaN", []float64{nan, 1, 2}, ignored, nan, 0},
		{"far apart", []float64{1e4, -1e4, 0}, 1, 1e4, 2e4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMaker(t, 1, false)
			a := loss.CrossEntropyFwdArgs{
				Logits: set(t, m.dense(tensor.F32, 1, 3), tt.logits...), Targets: set(t, m.dense(tensor.I64, 1), tt.target),
				Losses: m.dense(tensor.F32, 1), LSE: m.dense(tensor.F32, 1), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
			}
			require.NoError(t, call(t, loss.CrossEntropyFwd, a))
			tensortest.CloseTo(t, []float64{tt.wantLSE}, a.LSE, tensortest.Tolerance{ULP: 1})
			tensortest.CloseTo(t, []float64{tt.wantLoss}, a.Losses, tensortest.Tolerance{ULP: 1})
			if !math.IsNaN(tt.wantLoss) || math.IsNaN(tt.wantLSE) {
				return
			}
			b := loss.CrossEntropyBwdArgs{
				Logits: a.Logits, Targets: a.Targets, LSE: a.LSE, DLosses: vector(t, 1), DLogits: m.dense(tensor.F32, 1, 3),
				IgnoreIndex: ignored, Saved: a.Saved,
			}
			require.NoError(t, call(t, loss.CrossEntropyBwd, b))
			tensortest.CloseTo(t, []float64{nan, nan, nan}, b.DLogits, tensortest.Tolerance{})
		})
	}
}

func TestCrossEntropyIsNeverNegative(t *testing.T) {
	const rows = 500
	m := newMaker(t, 1, false)
	logits := m.dense(tensor.F32, rows, 2)
	for r := range rows {
		logits.Set(float64(r)*0.173-40, r, 0)
		logits.Set(float64(r)*0.173-70, r, 1)
	}
	a := loss.CrossEntropyFwdArgs{
		Logits: logits, Targets: set(t, m.dense(tensor.I32, rows), make([]float64, rows)...), Losses: m.dense(tensor.F32, rows), LSE: m.dense(tensor.F32, rows),
		IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
	require.NoError(t, call(t, loss.CrossEntropyFwd, a))
	for r := range rows {
		require.GreaterOrEqual(t, a.Losses.At(r), 0.)
		require.InDelta(t, 0, a.Losses.At(r), 2e-7)
	}
}

func TestCrossEntropyBwdKeepsTheDigitsOfASureTarget(t *testing.T) {
	m := newMaker(t, 1, false)
	logits := set(t, m.dense(tensor.F32, 1, 2), 0, -17)
	lse := math.Log(1 + math.Exp(-17))
	a := loss.CrossEntropyBwdArgs{
		Logits: logits, Targets: set(t, m.dense(tensor.I32, 1), 0), LSE: vector(t, lse), DLosses: vector(t, 1),
		DLogits: m.dense(tensor.F32, 1, 2), IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}
	require.NoError(t, call(t, loss.CrossEntropyBwd, a))
	assert.InEpsilon(t, -math.Exp(-17), a.DLogits.At(0, 0), 1e-5)
}

// The log-sum-exp of large logits loses digits in f32, which the gradient must not.
func TestCrossEntropyBwdOfLargeLogits(t *testing.T) {
	for _, cols := range []int{3, 17, 4095, 4097, 50257} {
		for _, size := range []float64{-1e6, -1e4, -40, -32, 0, 31, 33, 1e2, 1e3, 1e4, 1e5, 1e6} {
			m := newMaker(t, uint64(cols), false)
			logits := m.fill(m.dense(tensor.F32, 2, cols))
			x := logits.Float64s()
			for i := range x {
				x[i] = float64(float32(size + 3*x[i]))
			}
			require.NoError(t, logits.SetFloat64s(x))
			saved, lse := &opregistry.Saved{}, vector(t, 0, 0)
			targets := set(t, m.dense(tensor.I32, 2), float64(cols/2), 0)
			require.NoError(t, call(t, loss.CrossEntropyFwd, loss.CrossEntropyFwdArgs{
				Logits: logits, Targets: targets, Losses: vector(t, 0, 0), LSE: lse, IgnoreIndex: ignored, Saved: saved,
			}))
			d := logits
			require.NoError(t, call(t, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
				Logits: logits, Targets: targets, LSE: lse, DLosses: vector(t, 2, -3), DLogits: d, IgnoreIndex: ignored, Saved: saved,
			}))
			for r, g := range []float64{2, -3} {
				row, most, sum := x[r*cols:][:cols], math.Inf(-1), 0.
				for _, v := range row {
					most = max(most, v)
				}
				for _, v := range row {
					sum += math.Exp(v - most)
				}
				for i, v := range row {
					p, target := math.Exp(v-most)/sum, 0.
					if i == int(targets.At(r)) {
						target = 1
					}
					require.InDelta(t, g*(p-target), d.At(r, i), 8e-6*p+1e-6*math.Abs(p-target), "%d logits near %g, %d", cols, size, i)
				}
			}
		}
	}
}

// A rank that has a part of the vocabulary passes the log-sum-exp of all of it.
func TestCrossEntropyBwdOfAPartOfTheVocabulary(t *testing.T) {
	m := newMaker(t, 1, false)
	x := []float64{1000, 1001, 999}
	d := m.dense(tensor.F32, 1, 3)
	require.NoError(t, call(t, loss.CrossEntropyBwd, loss.CrossEntropyBwdArgs{
		Logits: set(t, m.dense(tensor.F32, 1, 3), x...), Targets: set(t, m.dense(tensor.I32, 1), 0), LSE: vector(t, 1003), DLosses: vector(t, 1),
		DLogits: d, IgnoreIndex: ignored, Saved: &opregistry.Saved{},
	}))
	tensortest.CloseTo(t, []float64{math.Exp(-3) - 1, math.Exp(-2), math.Exp(-4)}, d, tensortest.Tolerance{Rel: 1e-6})
}

func TestScaleSetsTheFlagAndNeverClearsIt(t *testing.T) {
	tests := []struct {
		name   string
		before float64
		values []float64
		want   float64
	}{
		{"finite", 0, []float64{1, 2}, 0},
		{"finite, flag set before", 1, []float64{1, 2}, 1},
		{"Inf", 0, []float64{1, inf}, 1},
		{"NaN", 0, []float64{nan, 2}, 1},
		{"no elements", 0, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMaker(t, 1, false)
			in, out := vector(t, tt.values...), vector(t, make([]float64, len(tt.values))...)
			flag := set(t, m.dense(tensor.I32, 1), tt.before)
			a := optim.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{in}, {out}}, Scale: 2}
			require.NoError(t, call(t, optim.MultiTensorScale, a))
			assert.Equal(t, tt.want, flag.At(0))
			want := make([]float64, len(tt.values))
			for i, v := range tt.values {
				want[i] = 2 * v
			}
			tensortest.CloseTo(t, want, out, tensortest.Tolerance{})
		})
	}
}

func TestL2NormSumsBeyondTheRangeOfF32(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   float64
		flag   float64
	}{
		{"large", []float64{3e30, 4e30}, 5e30, 0},
		{"small", []float64{3e-30, 4e-30}, 5e-30, 0},
		{"Inf", []float64{3, -inf}, inf, 1},
		{"NaN", []float64{3, nan}, nan, 1},
		{"empty", nil, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMaker(t, 1, false)
			a := optim.MultiTensorL2NormArgs{
				NoopFlag: set(t, m.dense(tensor.I32, 1), 0), TensorLists: [][]*tensor.Tensor{{vector(t, tt.values...)}},
				Norm: vector(t, 7), PerTensor: vector(t, 7),
			}
			require.NoError(t, call(t, optim.MultiTensorL2Norm, a))
			tensortest.CloseTo(t, []float64{tt.want}, a.Norm, tensortest.Tolerance{ULP: 1})
			tensortest.CloseTo(t, []float64{tt.want}, a.PerTensor, tensortest.Tolerance{ULP: 1})
			assert.Equal(t, tt.flag, a.NoopFlag.At(0))
		})
	}
	m := newMaker(t, 1, false)
	a := optim.MultiTensorL2NormArgs{NoopFlag: m.dense(tensor.I32, 1), TensorLists: [][]*tensor.Tensor{{}}, Norm: vector(t, 7)}
	require.NoError(t, call(t, optim.MultiTensorL2Norm, a))
	assert.Zero(t, a.Norm.At(0), "an empty list")
}

func TestAdamIgnoresTheFlag(t *testing.T) {
	for _, flag := range []float64{0, 1} {
		m := newMaker(t, 1, false)
		p := vector(t, 1)
		a := optim.MultiTensorAdamArgs{
			NoopFlag:    set(t, m.dense(tensor.I32, 1), flag),
			TensorLists: [][]*tensor.Tensor{{vector(t, 5)}, {p}, {vector(t, 0)}, {vector(t, 0)}},
			LR:          0.125, Beta1: 0.9, Beta2: 0.99, Step: 1, Mode: optim.AdamDecay, BiasCorrection: true,
		}
		require.NoError(t, call(t, optim.MultiTensorAdam, a))
		assert.InDelta(t, 0.875, p.At(0), 1e-6, "the first step is lr long")
	}
}

func TestWhatIsNotServedIsDeclinedBeforeAnythingIsWritten(t *testing.T) {
	m := newMaker(t, 1, false)
	transposed := func(rows, cols int) *tensor.Tensor {
		x, err := m.fill(m.dense(tensor.F32, cols, rows)).Transpose(0, 1)
		require.NoError(t, err)
		return x
	}
	double := func(shape ...int) *tensor.Tensor { return m.fill(m.dense(tensor.F64, shape...)) }
	t.Run("dtype", func(t *testing.T) {
		a := norm.ResidualAddArgs{A: double(4, 5), B: double(4, 5), Output: double(4, 5)}
		declined(t, norm.ResidualAdd, a, "dtype f64")
	})
	t.Run("dtype of the output alone", func(t *testing.T) {
		a := norm.RMSNormFwdArgs{
			Input: m.fill(m.dense(tensor.F32, 4, 5)), Weight: m.fill(m.dense(tensor.F32, 5)), Output: double(4, 5),
			RSigma: m.fill(m.dense(tensor.F32, 4)), Eps: 1, Saved: &opregistry.Saved{},
		}
		declined(t, norm.RMSNormFwd, a, "dtype f64 of output")
	})
	t.Run("last axis", func(t *testing.T) {
		a := activation.SwiGLUArgs{Input: transposed(4, 10), Output: m.fill(m.dense(tensor.F32, 4, 5))}
		declined(t, activation.SwiGLU, a, "dense rows")
	})
	t.Run("no one pitch", func(t *testing.T) {
		a := activation.SwiGLUArgs{Input: m.fill(m.dense(tensor.F32, 2, 3, 10)), Output: m.fill(m.dense(tensor.F32, 2, 3, 5))}
		wide, err := m.fill(m.dense(tensor.F32, 2, 4, 10)).Slice(1, 0, 3)
		require.NoError(t, err)
		a.Input = wide
		declined(t, activation.SwiGLU, a, "one pitch")
	})
	t.Run("lists", func(t *testing.T) {
		a := buildScale(m)
		a.TensorLists = [][]*tensor.Tensor{{m.fill(m.dense(tensor.F32, 4)), double(3)}, {m.fill(m.dense(tensor.F32, 4)), double(3)}}
		declined(t, optim.MultiTensorScale, a, "dtype f64")
	})
	t.Run("heads", func(t *testing.T) {
		a := buildRope(m)
		x := m.fill(m.dense(tensor.F32, 2, 2, 4, 4))
		view, err := x.Transpose(2, 3)
		require.NoError(t, err)
		a.QKVFormat, a.CuSeqlens, a.StartPositions, a.CPSize, a.CPRank = attention.SBHD, nil, nil, 1, 0
		a.Input, a.Output, a.Freqs = view, m.fill(m.dense(tensor.F32, 2, 2, 4, 4)), m.fill(m.dense(tensor.F32, 2, 4))
		declined(t, rope.FusedRopeForward, a, "dense last axis")
	})
}

func declined[A any](t *testing.T, op *opregistry.Op[A], a A, why string) {
	t.Helper()
	var before [][]byte
	for _, o := range op.Operands(a) {
		before = append(before, tensortest.Bytes(o.Tensor))
	}
	err := call(t, op, a)
	require.ErrorIs(t, err, opregistry.ErrUnsupported)
	require.ErrorContains(t, err, why)
	for i, o := range op.Operands(a) {
		assert.Equal(t, before[i], tensortest.Bytes(o.Tensor), o.Name)
	}
}

// Package ops requires that subnormals are kept: here every result is subnormal, and exact.
func TestSubnormalsAreKept(t *testing.T) {
	const n, unit = 67, 0x1p-149
	x, y, sum, half := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	identity := make([]float64, n*n)
	for i := range n {
		x[i], y[i] = float64(2*(i*997-30000))*unit, float64(i*1009)*unit
		sum[i], half[i] = x[i]+y[i], x[i]/2
		identity[i*n+i] = 1
	}
	fresh := func() *tensor.Tensor { return vector(t, make([]float64, n)...) }
	row := func(v *tensor.Tensor) *tensor.Tensor { return reshaped(t, v, 1, n) }

	out := fresh()
	require.NoError(t, call(t, norm.ResidualAdd, norm.ResidualAddArgs{A: vector(t, x...), B: vector(t, y...), Output: out}))
	assert.Equal(t, sum, out.Float64s())

	out = fresh()
	require.NoError(t, call(t, activation.ReLU, activation.ActivationArgs{Input: vector(t, y...), Output: out}))
	assert.Equal(t, y, out.Float64s())

	out = fresh()
	flag, err := tensor.FromSlice([]int32{0}, 1)
	require.NoError(t, err)
	lists := [][]*tensor.Tensor{{vector(t, x...)}, {out}}
	require.NoError(t, call(t, optim.MultiTensorScale, optim.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: lists, Scale: 0.5}))
	assert.Equal(t, half, out.Float64s())

	out = fresh()
	weights := reshaped(t, vector(t, identity...), n, n)
	require.NoError(t, call(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: weights, B: row(vector(t, x...)), D: row(out)}))
	assert.Equal(t, x, out.Float64s())
}

func reshaped(t *testing.T, x *tensor.Tensor, shape ...int) *tensor.Tensor {
	t.Helper()
	view, err := x.Reshape(shape...)
	require.NoError(t, err)
	return view
}

// A result computed from an exponential may be 0 where the exponential is smaller than 2⁻¹²⁶.
func TestGatesOfTinyExponentials(t *testing.T) {
	for x := -110.0; x < -80; x += 0.25 {
		out := vector(t, 1)
		require.NoError(t, call(t, activation.SiLU, activation.ActivationArgs{Input: vector(t, x), Output: out}))
		want := x * math.Exp(x)
		assert.InDelta(t, want, out.At(0), 1e-5*math.Abs(want)+0x1p-126*math.Abs(x), "silu(%g)", x)
	}
}
