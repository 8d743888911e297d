package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// Two sequences of four and eight tokens over two ranks: chunks of one and two.
func TestTHDGetPartitionedIndices(t *testing.T) {
	t.Parallel()
	for rank, indices := range [][]float64{{0, 3, 4, 5, 10, 11}, {1, 2, 6, 7, 8, 9}} {
		y := out(t, tensor.I32, 6)
		run(t, attention.THDGetPartitionedIndices, attention.THDGetPartitionedIndicesArgs{CuSeqlens: i32(t, 0, 4, 12), WorldSize: 2, Rank: rank, Output: y})
		want(t, y, indices...)
	}
}

// Two sequences of two and four tokens, and a token that belongs to none.
func TestTHDReadHalfTensor(t *testing.T) {
	t.Parallel()
	x := f64(t, []int{7, 1, 1}, 1, 2, 3, 4, 5, 6, 7)
	for half, tokens := range [][]float64{{1, 3, 4}, {2, 5, 6}} {
		y := out(t, tensor.F64, 3, 1, 1)
		run(t, attention.THDReadHalfTensor, attention.THDReadHalfTensorArgs{Tensor: x, CuSeqlens: i32(t, 0, 2, 6), HalfIdx: half, Half: y})
		want(t, y, tokens...)
	}
}

func TestTHDSecondHalfLSE(t *testing.T) {
	t.Parallel()
	cu := i32(t, 0, 2, 6)
	lse := of(t, tensor.F32, []int{2, 1, 4}, 1, 2, 99, 99, 3, 4, 5, 6)
	half := out(t, tensor.F32, 2, 1, 2)
	run(t, attention.THDReadSecondHalfLSE, attention.THDReadSecondHalfLSEArgs{LSE: lse, CuSeqlens: cu, HalfLSE: half})
	want(t, half, 2, 0, 5, 6)
	packed := of(t, tensor.F32, []int{1, 6}, 1, 2, 3, 4, 5, 6)
	half = out(t, tensor.F32, 1, 4)
	run(t, attention.THDReadSecondHalfLSE, attention.THDReadSecondHalfLSEArgs{LSE: packed, CuSeqlens: cu, LSEPacked: true, HalfLSE: half})
	want(t, half, 2, 5, 6, 0)

	run(t, attention.THDSecondHalfLSECorrection, attention.THDSecondHalfLSECorrectionArgs{
		LSE: lse, LSEPerStep: of(t, tensor.F32, []int{2, 1, 2}, 2+ln3, 99, -inf, 6), CuSeqlens: cu,
	})
	want(t, lse, 1, 2+math.Log(4), 99, 99, 3, 4, 5, 6+math.Ln2)
	run(t, attention.THDSecondHalfLSECorrection, attention.THDSecondHalfLSECorrectionArgs{
		LSE: packed, LSEPerStep: of(t, tensor.F32, []int{1, 3}, 2, 5+ln3, -inf), CuSeqlens: cu, LSEPacked: true,
	})
	want(t, packed, 1, 2+math.Ln2, 3, 4, 5+math.Log(4), 6)
}

func TestTHDOutCorrection(t *testing.T) {
	t.Parallel()
	cu := i32(t, 0, 2, 6)
	y := f64(t, []int{6, 1, 1}, 1, 2, 3, 4, 5, 6)
	run(t, attention.THDOutCorrection, attention.THDOutCorrectionArgs{
		Out: y, OutPerStep: f64(t, []int{3, 1, 1}, 10, 20, 0), CuSeqlens: cu, OnlySecondHalf: true,
		LSE: of(t, tensor.F32, []int{2, 1, 4}, 0, ln3, 0, 0, 0, 0, 0, -inf), LSEPerStep: of(t, tensor.F32, []int{2, 1, 2}, 0, 0, ln3, 0),
	})
	want(t, y, 1, 2+10.0/3, 3, 4, 5+60, 6) // 0·inf adds nothing
	y = f64(t, []int{2, 1, 1}, 1, 2)
	run(t, attention.THDOutCorrection, attention.THDOutCorrectionArgs{
		Out: y, OutPerStep: f64(t, []int{2, 1, 1}, 10, 20), CuSeqlens: i32(t, 0, 2), LSEPacked: true,
		LSE: of(t, tensor.F32, []int{1, 2}, 0, ln3), LSEPerStep: of(t, tensor.F32, []int{1, 2}, -inf, ln3),
	})
	want(t, y, 1, 22)
}

func TestTHDGradCorrection(t *testing.T) {
	t.Parallel()
	cu := i32(t, 0, 2, 6)
	correct := func(first, second attention.Correction, step ...float64) *tensor.Tensor {
		g := f64(t, []int{7, 1, 1}, 1, 2, 3, 4, 5, 6, 7)
		run(t, attention.THDGradCorrection, attention.THDGradCorrectionArgs{
			Grad: g, GradPerStep: f64(t, []int{len(step), 1, 1}, step...), CuSeqlens: cu, FirstHalf: first, SecondHalf: second,
		})
		return g
	}
	want(t, correct(attention.AddCorrection, attention.CopyCorrection, 10, 20, 30, 40, 50, 60, 70), 11, 20, 33, 44, 50, 60, 7)
	want(t, correct(attention.CopyCorrection, attention.AddCorrection, 10, 20, 30, 40, 50, 60, 70), 10, 22, 30, 40, 55, 66, 7)
	want(t, correct(attention.NoCorrection, attention.AddCorrection, 10, 20, 30), 1, 12, 3, 4, 25, 36, 7)
	want(t, correct(attention.CopyCorrection, attention.NoCorrection, 10, 20, 30), 10, 2, 20, 30, 5, 6, 7)
}
