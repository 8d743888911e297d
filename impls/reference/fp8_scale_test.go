package reference_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

func scales(t *testing.T, pow2 bool, epsilon float32, amax ...float64) (scale, inv []float64) {
	t.Helper()
	a := quant.MultiTensorComputeScaleAndScaleInvArgs{
		NoopFlag: i32(t, 0), TensorLists: [][]*tensor.Tensor{{f32(t, amax...)}, {out(t, tensor.F32, len(amax))}, {out(t, tensor.F32, len(amax))}},
		MaxFP8: 448, ForcePow2Scales: pow2, Epsilon: epsilon,
	}
	run(t, quant.MultiTensorComputeScaleAndScaleInv, a)
	return a.TensorLists[1][0].Float64s(), a.TensorLists[2][0].Float64s()
}

func TestComputeScale(t *testing.T) {
	t.Parallel()
	scale, inv := scales(t, false, 0, 448, 2, 0, inf, nan, 0x1p-140, 3)
	assert.Equal(t, []float64{1, 224, 1, 1, 1, math.MaxFloat32, float64(float32(448.0 / 3))}, scale)
	assert.InDelta(t, 1, inv[0], 0)
	assert.InDelta(t, float32(1.0/224), inv[1], 0)
	assert.InDelta(t, float32(1/math.MaxFloat32), inv[5], 0)
	scale, _ = scales(t, true, 0, 448, 0x1p-140)
	assert.Equal(t, []float64{1, 0x1p127}, scale)
}

// Upstream rounds log2 of the scale to the nearest integer: 256 for an amax of 2, which turns 2
// into 512, beyond 448.
func TestComputeScale_UpstreamRoundsPowersOfTwoToNearest(t *testing.T) {
	t.Parallel()
	scale, _ := scales(t, true, 0, 2, 1.76, 1.75, 3.6)
	assert.Equal(t, []float64{128, 128, 256, 64}, scale)
	for i, amax := range []float64{2, 1.76, 1.75, 3.6} {
		assert.LessOrEqual(t, amax*scale[i], 448.0)
	}
}

// Upstream adds epsilon to amax.
func TestComputeScale_UpstreamAddsEpsilon(t *testing.T) {
	t.Parallel()
	scale, _ := scales(t, false, 0.5, 1, 0.25, 0, nan)
	assert.Equal(t, []float64{448, 896, 896, 1}, scale)
}

// Upstream takes floor(log2(amax)) + 127 and omits the division by 448.
func TestScaleInvE8M0_UpstreamForgetsTheLargestValue(t *testing.T) {
	t.Parallel()
	amax := []float64{448, 449, 450, 224, 1, 0, inf, nan, 0x1p127}
	a := quant.MultiTensorComputeScaleInvE8M0Args{
		NoopFlag: i32(t, 0), TensorLists: [][]*tensor.Tensor{{of(t, tensor.BF16, []int{9}, amax...)}, {out(t, tensor.U8, 9)}},
	}
	run(t, quant.MultiTensorComputeScaleInvE8M0, a)
	// 449 is 448 in bf16; 2¹²⁷/448 lies between 2¹¹⁸ and 2¹¹⁹.
	assert.Equal(t, []float64{127, 127, 128, 126, 119, 0, 254, 255, 246}, a.TensorLists[1][0].Float64s())
}

func TestComputeAmax(t *testing.T) {
	t.Parallel()
	y := out(t, tensor.F32, 1)
	run(t, quant.ComputeAmax, quant.ComputeAmaxArgs{Input: f32(t, 1, nan, -3, 2), Amax: y})
	want(t, y, 3)
	run(t, quant.ComputeAmax, quant.ComputeAmaxArgs{Input: f32(t, nan), Amax: y})
	want(t, y, 0)
	run(t, quant.ComputeAmax, quant.ComputeAmaxArgs{Input: f32(t), Amax: y})
	want(t, y, 0)
}

func TestFusedAmaxAndScaleUpdate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		algo    quant.AmaxComputeAlgo
		buffer  float64
		history []float64
		rolled  []float64
		scale   float64 // 99 before
	}{
		{"most recent", quant.AmaxMostRecent, 2, []float64{1, 4, 8}, []float64{0, 8, 2}, 56},
		{"max", quant.AmaxMax, 2, []float64{16, 4, 8}, []float64{0, 8, 2}, 14},
		{"the oldest leaves", quant.AmaxMax, 2, []float64{16, 1, 1}, []float64{0, 1, 2}, 56},
		{"no new amax", quant.AmaxMostRecent, 0, []float64{4, 1, 1}, []float64{0, 1, 4}, 28},
		{"nothing known", quant.AmaxMax, 0, []float64{0, 5, 6}, []float64{0, 5, 6}, 99},
		{"inf", quant.AmaxMostRecent, inf, []float64{1, 2, 3}, []float64{0, 3, inf}, 99},
		{"inf in the history", quant.AmaxMax, 1, []float64{1, inf, 3}, []float64{0, 3, 1}, 99},
		{"nan", quant.AmaxMostRecent, nan, []float64{1, 2, 3}, []float64{0, 3, nan}, 99},
		{"nan does not count", quant.AmaxMax, nan, []float64{1, 2, 4}, []float64{0, 4, nan}, 28},
		{"quotient beyond f32", quant.AmaxMostRecent, 0x1p-140, []float64{1, 2, 3}, []float64{0, 3, 0x1p-140}, math.MaxFloat32},
		{"one row", quant.AmaxMax, 2, []float64{7}, []float64{0}, 56},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := quant.FusedAmaxAndScaleUpdateArgs{
				AmaxReductionBuffer: f32(t, tt.buffer), AmaxHistories: []*tensor.Tensor{of(t, tensor.F32, []int{len(tt.history), 1}, tt.history...)},
				Scales: []*tensor.Tensor{f32(t, 99)}, AmaxComputeAlgo: tt.algo, FP8DType: tensor.F8E4M3, Margin: 2,
			}
			run(t, quant.FusedAmaxAndScaleUpdateAfterReduction, a)
			want(t, a.AmaxHistories[0], tt.rolled...)
			want(t, a.Scales[0], tt.scale)
		})
	}
}
