package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

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
			a := rope.FusedRopeArgs{
				Input: f64(t, []int{1, 1, 1, len(tt.x)}, tt.x...), Freqs: of(t, tensor.F32, []int{1, len(tt.angles)}, tt.angles...),
				Output: y, QKVFormat: attention.SBHD, Interleaved: tt.interleaved,
			}
			run(t, rope.FusedRopeForward, a)
			tensortest.CloseTo(t, tt.want, y, tensortest.Tolerance{Abs: 1e-6})
			run(t, rope.FusedRopeBackward, a)
			tensortest.CloseTo(t, tt.back, y, tensortest.Tolerance{Abs: 1e-6})
		})
	}
}

// The position follows from the first element of a vector [1 0] that is rotated by an angle of
// 0.1·position.
func TestRopePositions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give rope.FusedRopeArgs
		axes []int
		want []float64
	}{
		{"sbhd", rope.FusedRopeArgs{QKVFormat: attention.SBHD}, []int{3, 2, 1, 2}, []float64{0, 0, 1, 1, 2, 2}},
		{"bshd", rope.FusedRopeArgs{QKVFormat: attention.BSHD}, []int{2, 3, 1, 2}, []float64{0, 1, 2, 0, 1, 2}},
		{"start", rope.FusedRopeArgs{QKVFormat: attention.SBHD, StartPositions: i32(t, 3, 0)}, []int{2, 2, 1, 2}, []float64{3, 0, 4, 1}},
		{"thd", rope.FusedRopeArgs{QKVFormat: attention.THD, CuSeqlens: i32(t, 0, 2, 2, 5)}, []int{5, 1, 2}, []float64{0, 1, 0, 1, 2}},
		{"rank 0 of 2", rope.FusedRopeArgs{QKVFormat: attention.SBHD, CPSize: 2}, []int{4, 1, 1, 2}, []float64{0, 1, 6, 7}},
		{"rank 1 of 2", rope.FusedRopeArgs{QKVFormat: attention.SBHD, CPSize: 2, CPRank: 1}, []int{4, 1, 1, 2}, []float64{2, 3, 4, 5}},
		{"thd, rank 1 of 2", rope.FusedRopeArgs{QKVFormat: attention.THD, CuSeqlens: i32(t, 0, 4, 12), CPSize: 2, CPRank: 1}, []int{6, 1, 2}, []float64{1, 2, 2, 3, 4, 5}},
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
			run(t, rope.FusedRopeForward, a)
			tensortest.CloseTo(t, turned, a.Output, tensortest.Tolerance{Abs: 1e-6})
		})
	}
}
