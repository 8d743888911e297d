package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestQKVRope(t *testing.T) {
	t.Parallel()
	quarter := math.Pi / 2
	// There is one position with two groups, each of two heads of queries, one of keys and one of
	// values of three elements. Queries rotate by a quarter turn, keys by a half.
	a := rope.FusedQKVRopeArgs{
		QKV:    f64(t, []int{1, 1, 2, 9}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19),
		QFreqs: of(t, tensor.F32, []int{1, 2}, quarter, quarter), KFreqs: of(t, tensor.F32, []int{1, 2}, 2*quarter, 2*quarter),
		Q: out(t, tensor.F64, 1, 1, 4, 2), K: out(t, tensor.F64, 1, 1, 2, 2), V: out(t, tensor.F64, 1, 1, 2, 3),
		QKVSplitArgList: []int{4, 2, 3}, QKVFormat: attention.SBHD,
	}
	run(t, rope.FusedQKVRopeForward, a)
	tol := tensortest.Tolerance{Abs: 1e-5}
	tensortest.CloseTo(t, []float64{-2, 1, -4, 3, -12, 11, -14, 13}, a.Q, tol)
	tensortest.CloseTo(t, []float64{-5, -6, -15, -16}, a.K, tol)
	want(t, a.V, 7, 8, 9, 17, 18, 19)

	// The inverse rotations restore every element.
	back := out(t, tensor.F64, 1, 1, 2, 9)
	given := a.QKV.Float64s()
	a.QKV = back
	run(t, rope.FusedQKVRopeBackward, a)
	tensortest.CloseTo(t, given, back, tol)
}

// The position follows from the first element of a key [1 0] that is rotated by an angle of
// 0.1·position.
func TestQKVRopePositions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give rope.FusedQKVRopeArgs
		axes [2]int
		want []float64
	}{
		{"sbhd", rope.FusedQKVRopeArgs{QKVFormat: attention.SBHD}, [2]int{3, 2}, []float64{0, 0, 1, 1, 2, 2}},
		{"bshd", rope.FusedQKVRopeArgs{QKVFormat: attention.BSHD}, [2]int{2, 3}, []float64{0, 1, 2, 0, 1, 2}},
		{"start", rope.FusedQKVRopeArgs{QKVFormat: attention.SBHD, StartPositions: i32(t, 3, 0)}, [2]int{2, 2}, []float64{3, 0, 4, 1}},
		{"rank 1 of 2", rope.FusedQKVRopeArgs{QKVFormat: attention.SBHD, CPSize: 2, CPRank: 1}, [2]int{4, 1}, []float64{2, 3, 4, 5}},
		{
			"start is of no effect with ranks", rope.FusedQKVRopeArgs{QKVFormat: attention.SBHD, CPSize: 2, StartPositions: i32(t, 9)},
			[2]int{4, 1}, []float64{0, 1, 6, 7},
		},
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
			a, n, m := tt.give, tt.axes[0], tt.axes[1]
			a.QKVSplitArgList = []int{0, 2, 0}
			a.QFreqs, a.KFreqs = of(t, tensor.F32, []int{10, 2}, angles...), of(t, tensor.F32, []int{10, 2}, angles...)
			a.QKV, a.Q, a.K, a.V = f64(t, []int{n, m, 1, 2}, x...), out(t, tensor.F64, n, m, 0, 2), out(t, tensor.F64, n, m, 1, 2), out(t, tensor.F64, n, m, 1, 0)
			run(t, rope.FusedQKVRopeForward, a)
			tensortest.CloseTo(t, turned, a.K, tensortest.Tolerance{Abs: 1e-6})
		})
	}
}
