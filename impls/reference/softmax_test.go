package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func TestSoftmax(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		op    *opregistry.Op[softmax.SoftmaxArgs]
		shape []int
		scale float32
		x, y  []float64
	}{
		{"rows", softmax.ScaledSoftmaxForward, []int{1, 1, 2, 2}, 2, []float64{0, ln3 / 2, 500, 500}, []float64{0.25, 0.75, 0.5, 0.5}},
		{"scale 0", softmax.ScaledSoftmaxForward, []int{1, 1, 1, 2}, 0, []float64{1, 9}, []float64{0.5, 0.5}},
		{"infinities", softmax.ScaledSoftmaxForward, []int{1, 3, 1, 2}, 1, []float64{0, -inf, 0, inf, -inf, -inf}, []float64{1, 0, nan, nan, nan, nan}},
		{"triangle", softmax.ScaledUpperTriangMaskedSoftmaxForward, []int{1, 2, 2}, 1, []float64{5, nan, 0, ln3}, []float64{1, 0, 0.25, 0.75}},
		{"aligned, square", softmax.ScaledAlignedCausalMaskedSoftmaxForward, []int{1, 1, 2, 2}, 1, []float64{5, nan, 0, ln3}, []float64{1, 0, 0.25, 0.75}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			y := out(t, tensor.F64, tt.shape...)
			run(t, tt.op, softmax.SoftmaxArgs{Input: f64(t, tt.shape, tt.x...), Output: y, ScaleFactor: tt.scale})
			want(t, y, tt.y...)
		})
	}
}

// The FlagOS plugin's reference builds a square mask and raises an error when the numbers of
// queries and keys differ.
func TestAlignedCausal_UpstreamRaisesUnlessSquare(t *testing.T) {
	t.Parallel()
	a := softmax.SoftmaxArgs{Input: f64(t, []int{1, 1, 2, 3}, 0, 0, nan, 0, 0, 0), Output: out(t, tensor.F64, 1, 1, 2, 3), ScaleFactor: 1}
	run(t, softmax.ScaledAlignedCausalMaskedSoftmaxForward, a)
	want(t, a.Output, 0.5, 0.5, 0, 1./3, 1./3, 1./3)

	a = softmax.SoftmaxArgs{Input: f64(t, []int{1, 1, 3, 2}, nan, nan, 0, nan, 0, 0), Output: out(t, tensor.F64, 1, 1, 3, 2), ScaleFactor: 1}
	run(t, softmax.ScaledAlignedCausalMaskedSoftmaxForward, a)
	want(t, a.Output, 0, 0, 1, 0, 0.5, 0.5)

	b := softmax.SoftmaxBackwardArgs{
		OutputGrads: f64(t, []int{1, 1, 3, 2}, nan, nan, 5, nan, 2, 4), SoftmaxResults: a.Output, Output: out(t, tensor.F64, 1, 1, 3, 2), ScaleFactor: 2,
	}
	run(t, softmax.ScaledAlignedCausalMaskedSoftmaxBackward, b)
	want(t, b.Output, 0, 0, 0, 0, -1, 1)
}

func TestSoftmaxBackward(t *testing.T) {
	t.Parallel()
	// Σ y·dy = 3.5
	for _, op := range []*opregistry.Op[softmax.SoftmaxBackwardArgs]{softmax.ScaledSoftmaxBackward, softmax.ScaledMaskedSoftmaxBackward} {
		dy := f64(t, []int{1, 1, 1, 2}, 2, 4)
		run(t, op, softmax.SoftmaxBackwardArgs{OutputGrads: dy, SoftmaxResults: f64(t, []int{1, 1, 1, 2}, 0.25, 0.75), Output: dy, ScaleFactor: 2})
		want(t, dy, 2*0.25*-1.5, 2*0.75*0.5)
	}
	dx := out(t, tensor.F64, 1, 2, 2)
	run(t, softmax.ScaledUpperTriangMaskedSoftmaxBackward, softmax.SoftmaxBackwardArgs{
		OutputGrads: f64(t, []int{1, 2, 2}, 5, nan, 2, 4), SoftmaxResults: f64(t, []int{1, 2, 2}, 1, 0, 0.25, 0.75), Output: dx, ScaleFactor: 2,
	})
	want(t, dx, 0, 0, 2*0.25*-1.5, 2*0.75*0.5)
}

func TestMaskedSoftmax(t *testing.T) {
	t.Parallel()
	row := []int{1, 1, 1, 3}
	tests := []struct {
		name    string
		mask    tensor.DType
		x, m, y []float64
	}{
		{"masked", tensor.U8, []float64{0, 9, ln3}, []float64{0, 1, 0}, []float64{0.25, 0, 0.75}},
		{"bool", tensor.Bool, []float64{0, 9, ln3}, []float64{0, 1, 0}, []float64{0.25, 0, 0.75}},
		{"only 1 masks", tensor.U8, []float64{0, 0, ln3}, []float64{2, 1, 255}, []float64{0.25, 0, 0.75}},
		{"replaced, not added to", tensor.U8, []float64{0, 1e6, 0}, []float64{0, 1, 0}, []float64{0.5, 0, 0.5}},
		{"not looked at", tensor.U8, []float64{0, nan, 0}, []float64{0, 1, 0}, []float64{0.5, 0, 0.5}},
		{"masked throughout", tensor.U8, []float64{1, 2, nan}, []float64{1, 1, 1}, []float64{0, 0, 0}},
		{"below the masked logit", tensor.U8, []float64{-2e4, 0, -3e4}, []float64{0, 1, 0}, []float64{0, 0, 0}},
		{"next to the masked logit", tensor.U8, []float64{-1e4 + ln3, 0, -2e4}, []float64{0, 1, 0}, []float64{0.75, 0.25, 0}},
		{"nan", tensor.U8, []float64{nan, 0, 0}, []float64{0, 1, 0}, []float64{nan, nan, nan}},
		{"added", tensor.F32, []float64{0, 1, 1}, []float64{1, 0, -inf}, []float64{0.5, 0.5, 0}},
		{"added 1 is no mask", tensor.BF16, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"nothing but −∞", tensor.F64, []float64{0, 0, 0}, []float64{-inf, -inf, -inf}, []float64{nan, nan, nan}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := softmax.ScaledMaskedSoftmaxForwardArgs{
				Input: f64(t, row, tt.x...), Mask: of(t, tt.mask, row, tt.m...), Output: out(t, tensor.F64, row...), ScaleFactor: 1,
			}
			run(t, softmax.ScaledMaskedSoftmaxForward, a)
			want(t, a.Output, tt.y...)
		})
	}
}

// The mask of a batch is that of all its heads, and one mask may serve all batches.
func TestMaskedSoftmaxBroadcast(t *testing.T) {
	t.Parallel()
	x, y := f64(t, []int{2, 2, 1, 2}, 0, 0, 0, 0, 0, 0, 0, 0), out(t, tensor.F64, 2, 2, 1, 2)
	run(t, softmax.ScaledMaskedSoftmaxForward, softmax.ScaledMaskedSoftmaxForwardArgs{Input: x, Mask: of(t, tensor.U8, []int{2, 1, 1, 2}, 1, 0, 0, 1), Output: y})
	want(t, y, 0, 1, 0, 1, 1, 0, 1, 0)
	run(t, softmax.ScaledMaskedSoftmaxForward, softmax.ScaledMaskedSoftmaxForwardArgs{Input: x, Mask: of(t, tensor.U8, []int{1, 1, 1, 2}, 1, 0), Output: y})
	want(t, y, 0, 1, 0, 1, 0, 1, 0, 1)
}

// The FlagOS plugin's reference rounds scale·x to the dtype of x first: bf16 cannot hold 30.3.
func TestSoftmax_UpstreamRoundsLogits(t *testing.T) {
	t.Parallel()
	y := out(t, tensor.BF16, 1, 1, 1, 2)
	run(t, softmax.ScaledSoftmaxForward, softmax.SoftmaxArgs{Input: of(t, tensor.BF16, []int{1, 1, 1, 2}, 100, 101), Output: y, ScaleFactor: 0.3})
	p := 1 / (1 + math.Exp(-0.3))
	tensortest.CloseTo(t, []float64{1 - p, p}, y, tensortest.Tolerance{Rel: 0x1p-8})
}
