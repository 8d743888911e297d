package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// one is a list of one tensor for each element.
func one(t *testing.T, v ...float64) [][]*tensor.Tensor {
	t.Helper()
	var lists [][]*tensor.Tensor
	for _, x := range v {
		lists = append(lists, []*tensor.Tensor{f32(t, x)})
	}
	return lists
}

// As in TestAdam, u is 0.5/(0.5 + 0.5) at the first step for a gradient of 0.5.
func capturable(t *testing.T, flag, inv float64, v ...float64) optim.MultiTensorAdamCapturableArgs {
	t.Helper()
	return optim.MultiTensorAdamCapturableArgs{
		NoopFlag: i32(t, flag), TensorLists: one(t, v...), LR: f32(t, 0.5), Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5,
		Step: i32(t, 1), Mode: optim.AdamDecay, BiasCorrection: true, InvScale: f32(t, inv),
	}
}

func TestAdamCapturable_UpstreamIgnoresInvScale(t *testing.T) {
	t.Parallel()
	a := capturable(t, 0, 0.25, 2, 1, 0, 0)
	run(t, optim.MultiTensorAdamCapturable, a)
	for i, v := range []float64{0.5, 0.75, 0.25, 0.0625} {
		want(t, a.TensorLists[i][0], v)
	}
}

func TestAdamCapturableEndsAtAFlagOf1(t *testing.T) {
	t.Parallel()
	for _, flag := range []float64{1, 2} {
		a := capturable(t, flag, 0.25, 2, 1, 0, 0)
		run(t, optim.MultiTensorAdamCapturable, a)
		grad := 2.0
		if flag != 1 {
			grad = 0.5
		}
		want(t, a.TensorLists[0][0], grad)
	}
}

func TestAdamCapturableMaster(t *testing.T) {
	t.Parallel()
	a := capturable(t, 0, 0.25, 2, 99, 0, 0, 1+0x1p-9)
	a.TensorLists[1][0] = of(t, tensor.BF16, []int{1}, 99)
	run(t, optim.MultiTensorAdamCapturableMaster, a)
	want(t, a.TensorLists[4][0], 0.75+0x1p-9)
	assert.Equal(t, []float64{0.75}, a.TensorLists[1][0].Float64s())
}

// The unscaled gradient is stored in its dtype and used before it is rounded.
func TestAdamCapturableUsesTheUnroundedGradient(t *testing.T) {
	t.Parallel()
	a := capturable(t, 0, 1+0x1p-12, 0, 1, 0, 0)
	a.TensorLists[0][0] = of(t, tensor.BF16, []int{1}, 0.5)
	run(t, optim.MultiTensorAdamCapturable, a)
	assert.Equal(t, []float64{0.5}, a.TensorLists[0][0].Float64s())
	want(t, a.TensorLists[2][0], 0.25*(1+0x1p-12))
}

func TestAdamFP8(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                    string
		master, scale, amax     float64
		p, wantAmax, wantMaster float64
	}{
		{"plain", 1, 8, 0.5, 6, 0.75, 0.75},
		{"amax is not lowered", 1, 8, 3, 6, 3, 0.75},
		{"saturates", 1, 1e6, 0, 448, 0.75, 0.75},
		{"negative", -1, 2, 0, -2.5, 1.25, -1.25},
		{"nan stays and does not count", nan, 2, 0.5, nan, 0.5, nan},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			lists := one(t, 0.5, 0, 0, 0, tt.master, tt.scale, tt.amax, 99)
			lists[1][0] = out(t, tensor.F8E4M3, 1)
			run(t, optim.MultiTensorAdamFP8, optim.MultiTensorAdamArgs{
				NoopFlag: i32(t, 1), TensorLists: lists, LR: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, Mode: optim.AdamDecay, BiasCorrection: true,
			})
			want(t, lists[1][0], tt.p)
			want(t, lists[4][0], tt.wantMaster)
			want(t, lists[6][0], tt.wantAmax)
			want(t, lists[7][0], 1/tt.scale)
		})
	}
}

func TestAdamParamRemainder(t *testing.T) {
	t.Parallel()
	for _, master := range []uint32{
		0x3f800000, 0x3f807fff, 0x3f808000, 0x3f80ffff, 0x3f7fffff, 0xbf80abcd, 0x00000001, 0x80008000, 0x7f7f7fff, 0x0000ffff,
	} {
		rem := int16(master)
		high := tensor.BFloat16(master >> 16)
		if rem < 0 {
			high++
		}
		args := func(g, lr float32) (optim.MultiTensorAdamArgs, []tensor.BFloat16, []int16) {
			p, r := []tensor.BFloat16{high}, []int16{rem}
			lists := one(t, float64(g), 0, 0, 0, 0)
			var err error
			lists[1][0], err = tensor.FromSlice(p)
			require.NoError(t, err)
			lists[4][0], err = tensor.FromSlice(r)
			require.NoError(t, err)
			return optim.MultiTensorAdamArgs{
				NoopFlag: i32(t, 0), TensorLists: lists, LR: lr, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, Mode: optim.AdamDecay, BiasCorrection: true,
			}, p, r
		}
		// Without a step nothing changes, whatever the bits.
		a, p, r := args(0.5, 0)
		run(t, optim.MultiTensorAdamParamRemainder, a)
		assert.Equal(t, high, p[0], "%#x", master)
		assert.Equal(t, rem, r[0], "%#x", master)
		// A step gives what f32 master weights do.
		a, p, r = args(0.5, 0.5)
		run(t, optim.MultiTensorAdamParamRemainder, a)
		next := math.Float32bits(float32(float64(math.Float32frombits(master)) - 0.25))
		assert.Equal(t, int16(next), r[0], "%#x", master)
		upper := tensor.BFloat16(next >> 16)
		if int16(next) < 0 {
			upper++
		}
		assert.Equal(t, upper, p[0], "%#x", master)
	}
}

// The reference of TransformerEngine-FL has 8 arguments and another order of lists; the order here
// is that of the kernels.
func TestSGD_UpstreamHasAnotherSignature(t *testing.T) {
	t.Parallel()
	// d = 4·0.5 = 2.
	tests := []struct {
		name   string
		edit   func(a *optim.MultiTensorSGDArgs)
		p, mom float64
	}{
		{"momentum", func(*optim.MultiTensorSGDArgs) {}, 10 - 0.25*(0.5*3+0.75*2), 3},
		{"first run", func(a *optim.MultiTensorSGDArgs) { a.FirstRun = true }, 10 - 0.25*2, 2},
		{"nesterov", func(a *optim.MultiTensorSGDArgs) { a.Nesterov = true }, 10 - 0.25*(2+0.5*3), 3},
		{"first run with nesterov", func(a *optim.MultiTensorSGDArgs) { a.Nesterov, a.FirstRun = true, true }, 10 - 0.25*(2+0.5*2), 2},
		{"no momentum", func(a *optim.MultiTensorSGDArgs) { a.Momentum, a.Nesterov, a.FirstRun = 0, true, true }, 10 - 0.25*2, 3},
		{"decay before", func(a *optim.MultiTensorSGDArgs) { a.WD = 0.2 }, 10 - 0.25*(0.5*3+0.75*4), 4.5},
		{"decay after", func(a *optim.MultiTensorSGDArgs) { a.WD, a.WDAfterMomentum = 0.2, true }, 10 - 0.25*(3+2), 3},
		{"flag", func(a *optim.MultiTensorSGDArgs) { a.NoopFlag = i32(t, 7) }, 10, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := optim.MultiTensorSGDArgs{NoopFlag: i32(t, 0), TensorLists: one(t, 4, 10, 3, 99), Momentum: 0.5, Dampening: 0.25, LR: 0.25, Scale: 0.5}
			tt.edit(&a)
			run(t, optim.MultiTensorSGD, a)
			want(t, a.TensorLists[0][0], 4)
			want(t, a.TensorLists[1][0], tt.p)
			want(t, a.TensorLists[2][0], tt.mom)
			if tt.name == "flag" {
				tt.p = 99
			}
			want(t, a.TensorLists[3][0], tt.p)
		})
	}
}

// The copy has more precision than p: it is not rounded to the dtype of p first.
func TestTheCopyOfSGDIsRoundedOnce(t *testing.T) {
	t.Parallel()
	p := of(t, tensor.BF16, []int{1}, 256)
	lists := append(one(t, 1), []*tensor.Tensor{p}, one(t, 0)[0], []*tensor.Tensor{out(t, tensor.F32, 1)})
	run(t, optim.MultiTensorSGD, optim.MultiTensorSGDArgs{NoopFlag: i32(t, 0), TensorLists: lists, LR: 0.25, Scale: 1})
	want(t, p, 256)
	want(t, lists[3][0], 255.75)
}

func TestNumbersInTensors(t *testing.T) {
	t.Parallel()
	x, y, flag := f32(t, 1, -2, inf), out(t, tensor.F32, 3), i32(t, 0)
	run(t, optim.MultiTensorScaleTensor, optim.MultiTensorScaleTensorArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{x}, {y}}, Scale: f32(t, 3)})
	want(t, y, 3, -6, inf)
	want(t, flag, 1)

	x, flag = f32(t, 3, 4), i32(t, 0)
	norm, per := out(t, tensor.F32, 1), out(t, tensor.F32, 1)
	run(t, optim.MultiTensorUnscaleL2Norm, optim.MultiTensorUnscaleL2NormArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{x}}, InvScale: f32(t, -0.5), Norm: norm, PerTensor: per})
	want(t, norm, 2.5)
	want(t, per, 2.5)
	want(t, x, 3, 4)
	want(t, flag, 0)
}
