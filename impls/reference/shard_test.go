package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

func TestPartialAmax(t *testing.T) {
	t.Parallel()
	// Elements 3 to 8 of a matrix of 3×4 in tiles of 2×2.
	y := out(t, tensor.F32, 2, 2)
	run(t, quant.FP8BlockScalingComputePartialAmax, quant.PartialAmaxArgs{Tensor: f32(t, -1, 2, nan, 4, -5, 6), Amax: y, H: 3, W: 4, StartOffset: 3, BlockLen: 2})
	want(t, y, 2, 5, 6, 0)

	a := quant.NVFP4MultiTensorComputePartialAmaxArgs{Calls: []quant.NVFP4PartialAmaxArgs{{
		PartialAmaxArgs: quant.PartialAmaxArgs{Tensor: f32(t, 3, -7), Amax: out(t, tensor.F32, 1, 2), H: 1, W: 32, StartOffset: 15, BlockLen: 16},
		GlobalAmax:      out(t, tensor.F32, 1),
	}}}
	run(t, quant.NVFP4MultiTensorComputePartialAmax, a)
	want(t, a.Calls[0].Amax, 3, 7)
	want(t, a.Calls[0].GlobalAmax, 7)
}

// Upstream's kernel writes whole rows of a tile and relies on an all-gather to repair the elements
// beyond the shard. The reference writes nothing there.
func TestPartialCast_UpstreamWritesBeyondTheShard(t *testing.T) {
	t.Parallel()
	y := out(t, tensor.F8E4M3, 3) // guarded
	run(t, quant.FP8BlockScalingPartialCast, quant.PartialCastArgs{
		Inp: f32(t, 1, 2, 900), Out: y, Scale: of(t, tensor.F32, []int{1, 2}, 2, 0.5), H: 2, W: 4, StartOffset: 1, BlockLen: 2,
	})
	want(t, y, 2, 1, 448)
}

// Upstream's base class declares arguments that its kernels do not take; the op has those of the
// kernels.
func TestMXFP8Partial_UpstreamBaseClassDiffers(t *testing.T) {
	t.Parallel()
	// Elements 31 to 34 of a matrix of 2×33: two of the first row, two of the second.
	amax := quant.MXFP8PartialAmaxArgs{Input: f32(t, 1, -2, 3, 4), AmaxRowwise: out(t, tensor.F32, 2, 2), AmaxColwise: out(t, tensor.F32, 1, 33), Rows: 2, Cols: 33, StartOffset: 31}
	run(t, quant.MXFP8ScalingComputePartialAmax, amax)
	want(t, amax.AmaxRowwise, 1, 2, 4, 0)
	columns := make([]float64, 33)
	columns[31], columns[32], columns[0], columns[1] = 1, 2, 3, 4
	want(t, amax.AmaxColwise, columns...)

	codes := make([]float64, 33)
	for i := range codes {
		codes[i] = 127
	}
	codes[0] = 128
	cast := quant.MXFP8PartialCastArgs{
		Input: f32(t, 1, -2, 3, nan), OutputRowwise: out(t, tensor.F8E4M3, 4), OutputColwise: out(t, tensor.F8E4M3, 4),
		ScaleInvRowwise: of(t, tensor.U8, []int{2, 2}, 126, 125, 127, 0), ScaleInvColwise: of(t, tensor.U8, []int{1, 33}, codes...),
		Rows: 2, Cols: 33, StartOffset: 31,
	}
	run(t, quant.MXFP8ScalingPartialCast, cast)
	want(t, cast.OutputRowwise, 2, -8, 3, nan)
	want(t, cast.OutputColwise, 1, -2, 1.5, nan)
}

func TestNVFP4PartialCast(t *testing.T) {
	t.Parallel()
	y := of(t, tensor.U8, []int{2}, 0xff, 0xab)
	// S/s is 8/2 in the first tile and 8/16 in the second one.
	run(t, quant.NVFP42DPartialCast, quant.NVFP42DPartialCastArgs{
		Inp: f32(t, 0.5, -9, 2), Out: y, Scale: of(t, tensor.F32, []int{1, 2}, 2.01, 16), GlobalScale: f32(t, 8), H: 1, W: 6, StartOffset: 2, BlockLen: 4,
	})
	want(t, y, 0xf4, 0xa2)
	first, err := y.Slice(0, 0, 1)
	require.NoError(t, err)
	// A scale that rounds to 0 makes everything but 0 the largest value.
	run(t, quant.NVFP42DPartialCast, quant.NVFP42DPartialCastArgs{
		Inp: f32(t, 1e-9, 0), Out: first, Scale: of(t, tensor.F32, []int{1, 1}, 1e-5), GlobalScale: f32(t, 0), H: 1, W: 2, BlockLen: 16,
	})
	want(t, y, 0x07, 0xa2)
}

func TestNVFP4Scales(t *testing.T) {
	t.Parallel()
	s := out(t, tensor.F32, 6)
	run(t, quant.NVFP4ComputeGlobalScale, quant.NVFP4ComputeGlobalScaleArgs{GlobalAmaxes: f32(t, 6, 0, inf, nan, 0x1p-140, -1), GlobalScaleTensor: s})
	want(t, s, 448, 1, 0, 1, 0x1.fffffep127, 1)

	a := quant.NVFP4FusedScaleArgs{
		BlockAmax: of(t, tensor.F32, []int{2, 2}, 6, 0.75, 3, 12), GlobalAmax: f32(t, 6), PerBlockScale: out(t, tensor.F32, 2, 2),
		TargetScale: out(t, tensor.F8E4M3, 5, 2), TargetAmax: out(t, tensor.F32, 1), BlockLen: 2,
	}
	run(t, quant.NVFP4FusedScale, a)
	want(t, a.PerBlockScale, 448, 56, 224, 896)
	want(t, a.TargetScale, 448, 56, 448, 56, 224, 448, 224, 448, 0, 0)
	want(t, a.TargetAmax, 6)

	rows := out(t, tensor.F8E4M3, 3, 1)
	run(t, quant.NVFP4ExpandScaleToFP8, quant.NVFP4ExpandScaleToFP8Args{Input: of(t, tensor.F32, []int{1, 1}, 33), Output: rows, BlockLen: 2})
	want(t, rows, 32, 32, 0)
}

func TestTransposes(t *testing.T) {
	t.Parallel()
	in, err := tensor.FromSlice([]tensor.Float8E5M2{0x7d, 0x7e, 0xff, 0x01, 0x02, 0x03}, 2, 3) // NaN of different patterns
	require.NoError(t, err)
	y, err := tensor.FromSlice(make([]tensor.Float8E5M2, 6), 3, 2)
	require.NoError(t, err)
	run(t, quant.FP8Transpose, quant.FP8TransposeArgs{Input: in, Out: y})
	assert.Equal(t, []tensor.Float8E5M2{0x7d, 0x01, 0x7e, 0x02, 0xff, 0x03}, tensor.Data[tensor.Float8E5M2](y))

	s := out(t, tensor.F32, 3, 2, 1)
	run(t, quant.SwapFirstDims, quant.SwapFirstDimsArgs{Tensor: of(t, tensor.F32, []int{2, 3, 1}, 1, 2, 3, 4, 5, 6), Out: s})
	want(t, s, 1, 4, 2, 5, 3, 6)

	// Rows 1 2 3 4 and 5 6 7 8, the lower half of a byte first.
	packed := out(t, tensor.U8, 4, 1)
	run(t, quant.NVFP4DataTranspose, quant.NVFP4DataTransposeArgs{Input: of(t, tensor.U8, []int{2, 2}, 0x21, 0x43, 0x65, 0x87), Out: packed})
	want(t, packed, 0x51, 0x62, 0x73, 0x84)

	rowScales := make([]float64, 18*2) // of tiles 1 2 / 3 4
	for i := range rowScales {
		rowScales[i] = float64(i/2/16*2 + i%2 + 1)
	}
	scales := out(t, tensor.F8E4M3, 40, 2)
	a := quant.NVFP42DMultiTensorTransposeArgs{
		RowwiseDataList:        []*tensor.Tensor{of(t, tensor.U8, []int{18, 9}, make([]float64, 18*9)...)},
		ColumnwiseDataList:     []*tensor.Tensor{out(t, tensor.U8, 18, 9)},
		RowwiseScaleInvList:    []*tensor.Tensor{of(t, tensor.F8E4M3, []int{18, 2}, rowScales...)},
		ColumnwiseScaleInvList: []*tensor.Tensor{scales},
	}
	run(t, quant.NVFP42DMultiTensorTranspose, a)
	assert.Equal(t, []float64{1, 3}, scales.Float64s()[:2])
	assert.Equal(t, []float64{1, 3}, scales.Float64s()[30:32])
	assert.Equal(t, []float64{2, 4}, scales.Float64s()[32:34])
	assert.Equal(t, []float64{2, 4}, scales.Float64s()[62:64])
	assert.Equal(t, []float64{0, 0}, scales.Float64s()[64:66], "rows after the tiles")

	offsets := out(t, tensor.I64, 4)
	run(t, quant.SplitsToOffsets, quant.SplitsToOffsetsArgs{FirstDims: []int{2, 0, 1 << 40}, LogicalLastDim: 1 << 20, Output: offsets})
	assert.Equal(t, []int64{0, 1 << 21, 1 << 21, 1<<60 + 1<<21}, tensor.Data[int64](offsets))
}
