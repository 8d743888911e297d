package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

func TestAdam(t *testing.T) {
	t.Parallel()
	// At the first step u = g/(|g| + ε): 0.5/(0.5 + 0.5).
	first := optim.MultiTensorAdamArgs{LR: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, BiasCorrection: true}
	tests := []struct {
		name    string
		edit    func(a *optim.MultiTensorAdamArgs)
		p, m, v float64
	}{
		{"no decay", func(a *optim.MultiTensorAdamArgs) { a.Mode = optim.AdamDecay }, 0.75, 0.25, 0.0625},
		{"decay", func(a *optim.MultiTensorAdamArgs) { a.Mode, a.WeightDecay = optim.AdamDecay, 0.25 }, 0.625, 0.25, 0.0625},
		{"l2 makes g 1", func(a *optim.MultiTensorAdamArgs) { a.Mode, a.WeightDecay = optim.AdamL2, 0.5 }, 1 - 0.5/1.5, 0.5, 0.25},
		// Without correction u = 0.25/(0.25 + 0.5).
		{"no correction", func(a *optim.MultiTensorAdamArgs) { a.Mode, a.BiasCorrection = optim.AdamDecay, false }, 1 - 0.5/3, 0.25, 0.0625},
		{"flag is ignored", func(a *optim.MultiTensorAdamArgs) { a.Mode, a.NoopFlag = optim.AdamDecay, i32(t, 1) }, 0.75, 0.25, 0.0625},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, p, m, v := f32(t, 0.5), f32(t, 1), f32(t, 0), f32(t, 0)
			a := first
			a.NoopFlag, a.TensorLists = i32(t, 0), [][]*tensor.Tensor{{g}, {p}, {m}, {v}}
			tt.edit(&a)
			run(t, optim.MultiTensorAdam, a)
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
	run(t, optim.MultiTensorAdam, optim.MultiTensorAdamArgs{
		NoopFlag: i32(t, 0), TensorLists: [][]*tensor.Tensor{{g}, {p}, {m}, {v}, {master}},
		LR: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.5, Step: 1, Mode: optim.AdamDecay, BiasCorrection: true,
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
			a := optim.MultiTensorL2NormArgs{
				NoopFlag: i32(t, tt.flag), TensorLists: [][]*tensor.Tensor{tt.give}, Norm: out(t, tensor.F32, 1), PerTensor: out(t, tensor.F32, len(tt.give)),
			}
			run(t, optim.MultiTensorL2Norm, a)
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
			run(t, optim.MultiTensorScale, optim.MultiTensorScaleArgs{NoopFlag: flag, TensorLists: [][]*tensor.Tensor{{f32(t, tt.give...)}, {y}}, Scale: 3})
			want(t, y, tt.want...)
			want(t, flag, tt.set)
		})
	}
}
