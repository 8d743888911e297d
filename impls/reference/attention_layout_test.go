package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

func TestFAPrepare(t *testing.T) {
	t.Parallel()
	x, y := f64(t, []int{2, 1, 2, 3}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), out(t, tensor.F64, 3, 1, 2, 2, 1)
	run(t, attention.FAPrepareFwd, attention.FAPrepareFwdArgs{QKVI: x, Output: y})
	want(t, y, 1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12)
	z := out(t, tensor.F64, 2, 1, 2, 3)
	part := func(v ...float64) *tensor.Tensor { return f64(t, []int{1, 2, 2, 1}, v...) }
	run(t, attention.FAPrepareBwd, attention.FAPrepareBwdArgs{Q: part(1, 4, 7, 10), K: part(2, 5, 8, 11), V: part(3, 6, 9, 12), Output: z})
	want(t, z, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
}

func TestConvertTHD(t *testing.T) {
	t.Parallel()
	rows, packed := out(t, tensor.F64, 2, 3, 1, 1), out(t, tensor.F64, 5, 1, 1)
	run(t, attention.ConvertTHDToBSHD, attention.ConvertTHDArgs{Tensor: f64(t, []int{4, 1, 1}, 1, 2, 3, 99), CuSeqlens: i32(t, 0, 1, 3), Output: rows})
	want(t, rows, 1, 0, 0, 2, 3, 0)
	run(t, attention.ConvertBSHDToTHD, attention.ConvertTHDArgs{Tensor: rows, CuSeqlens: i32(t, 0, 1, 3), Output: packed})
	want(t, packed, 1, 2, 3, 0, 0)
}

func TestCopyToKVCache(t *testing.T) {
	t.Parallel()
	// Pages of two positions: the first sequence lies in pages 2 and 0 and gets its
	// third and fourth token, the second begins in page 1.
	k, v := f64(t, []int{3, 2, 1, 1}, 0, 0, 0, 0, 1, 2), f64(t, []int{3, 2, 1, 1}, 0, 0, 0, 0, 10, 20)
	run(t, attention.CopyToKVCache, attention.CopyToKVCacheArgs{
		NewK: f64(t, []int{3, 1, 1}, 3, 4, 5), NewV: f64(t, []int{3, 1, 1}, 30, 40, 50), KCache: k, VCache: v,
		PageTable: of(t, tensor.I32, []int{2, 2}, 2, 0, 1, -1), CuNewLens: i32(t, 0, 2, 3), CuCachedLens: i32(t, 0, 4, 5), QKVFormat: attention.THD,
	})
	want(t, k, 3, 4, 5, 0, 1, 2)
	want(t, v, 30, 40, 50, 0, 10, 20)

	// Slots 0 and 3 move to the front; slot 1 held a sequence that has ended.
	k, v = f64(t, []int{4, 2, 1, 1}, 1, 0, 2, 2, 3, 3, 4, 0), f64(t, []int{4, 2, 1, 1}, 0, 0, 0, 0, 0, 0, 0, 0)
	run(t, attention.CopyToKVCache, attention.CopyToKVCacheArgs{
		NewK: f64(t, []int{1, 4, 1, 1}, 5, 6, 99, 99), NewV: f64(t, []int{1, 4, 1, 1}, 7, 8, 99, 99), KCache: k, VCache: v, IsNonPaged: true,
		PageTable: of(t, tensor.I32, []int{4, 1}, 0, 3, 1, 2), CuNewLens: i32(t, 0, 1, 2, 2, 2), CuCachedLens: i32(t, 0, 2, 4, 4, 4), QKVFormat: attention.SBHD,
	})
	want(t, k, 1, 5, 4, 6, 3, 3, 4, 0)
	want(t, v, 0, 7, 0, 8, 0, 0, 0, 0)
}

// One head of one key and one value element: the state is a number.
func TestGatedDeltaNet(t *testing.T) {
	t.Parallel()
	axes := []int{1, 2, 1, 1}
	a := attention.GatedDeltaNetForwardArgs{
		Query: f64(t, axes, 1, 10), Key: f64(t, axes, 0.5, 2), Value: f64(t, axes, 4, 8), G: of(t, tensor.F32, []int{1, 2, 1}, 0, -math.Ln2),
		Beta: f64(t, []int{1, 2, 1}, 0.5, 0.25), InitialState: of(t, tensor.F32, []int{1, 1, 1, 1}, 2),
		Output: out(t, tensor.F64, axes...), FinalState: out(t, tensor.F32, 1, 1, 1, 1),
	}
	run(t, attention.GatedDeltaNetForward, a)
	// S = 2 + 0.5·0.5·(4 − 0.5·2) = 2.75, then 1.375 + 2·0.25·(8 − 2·1.375) = 4.
	want(t, a.Output, 2.75, 40)
	want(t, a.FinalState, 4)

	// Vectors of one element have norm 1; a zero vector stays zero.
	a.UseQKL2Norm, a.Key = true, f64(t, axes, -3, 0)
	run(t, attention.GatedDeltaNetForward, a)
	// S = 2 − 0.5·(4 + 2) = −1, then −0.5.
	want(t, a.Output, -1, -0.5)
}
