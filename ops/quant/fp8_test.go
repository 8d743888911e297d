package quant_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

func TestFP8Scales(t *testing.T) {
	type scale = quant.MultiTensorComputeScaleAndScaleInvArgs
	checktest.Validation(t, quant.MultiTensorComputeScaleAndScaleInv, func() scale {
		return scale{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.List(), checktest.List(), checktest.List()}, MaxFP8: 448}
	}, []checktest.Refusal[scale]{
		{Name: "scale/lists", Edit: func(a *scale) { a.TensorLists = a.TensorLists[:2] }, Operand: "tensor_lists", Want: "3 lists (amax, scale, scale_inv)"},
		{Name: "scale/dtype", Edit: func(a *scale) { a.TensorLists[0][0] = checktest.Zeros(tensor.BF16, 3) }, Operand: "tensor_lists[0][0]", Want: "dtype f32"},
		{Name: "scale/max", Edit: func(a *scale) { a.MaxFP8 = 0 }, Operand: "max_fp8", Want: "a number > 0"},
		{Name: "scale/epsilon", Edit: func(a *scale) { a.Epsilon = -1 }, Operand: "epsilon", Want: "a number >= 0"},
		{Name: "scale/overlap", Edit: func(a *scale) { a.TensorLists[2][0] = a.TensorLists[0][0] }, Operand: "tensor_lists[2][0]", Want: "memory apart from tensor_lists[0][0]"},
	})
	type e8m0 = quant.MultiTensorComputeScaleInvE8M0Args
	checktest.Validation(t, quant.MultiTensorComputeScaleInvE8M0, func() e8m0 {
		return e8m0{NoopFlag: checktest.I32(0), TensorLists: [][]*tensor.Tensor{checktest.ListOf(tensor.BF16), checktest.ListOf(tensor.U8)}}
	}, []checktest.Refusal[e8m0]{
		{Name: "e8m0/lists", Edit: func(a *e8m0) { a.TensorLists = nil }, Operand: "tensor_lists", Want: "2 lists (amax, scale_inv)"},
		{Name: "e8m0/amax", Edit: func(a *e8m0) { a.TensorLists[0][1] = checktest.F32(2, 2) }, Operand: "tensor_lists[0][1]", Want: "dtype bf16"},
		{Name: "e8m0/scale", Edit: func(a *e8m0) { a.TensorLists[1][1] = checktest.Zeros(tensor.F8E4M3, 2, 2) }, Operand: "tensor_lists[1][1]", Want: "dtype u8"},
	})
	type amax = quant.ComputeAmaxArgs
	checktest.Validation(t, quant.ComputeAmax, func() amax { return amax{Input: checktest.Zeros(tensor.BF16, 3), Amax: checktest.F32(1)} }, []checktest.Refusal[amax]{
		{Name: "amax/input", Edit: func(a *amax) { a.Input = checktest.Zeros(tensor.F8E4M3, 3) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "amax/amax", Edit: func(a *amax) { a.Amax = checktest.F32(0) }, Operand: "amax", Want: "1 element (1)"},
		{Name: "amax/overlap", Edit: func(a *amax) { a.Input = a.Amax }, Operand: "amax", Want: "memory apart from input"},
	})
	type fused = quant.FusedAmaxAndScaleUpdateArgs
	checktest.Validation(t, quant.FusedAmaxAndScaleUpdateAfterReduction, func() fused {
		return fused{
			AmaxReductionBuffer: checktest.F32(5), AmaxHistories: []*tensor.Tensor{checktest.F32(4, 3), checktest.F32(1, 2)}, Scales: []*tensor.Tensor{checktest.F32(3), checktest.F32(2)},
			AmaxComputeAlgo: quant.AmaxMax, FP8DType: tensor.F8E4M3,
		}
	}, []checktest.Refusal[fused]{
		{Name: "fused/buffer", Edit: func(a *fused) { a.AmaxReductionBuffer = checktest.F32(4) }, Operand: "amax_reduction_buffer", Want: "5 elements"},
		{Name: "fused/scales", Edit: func(a *fused) { a.Scales = a.Scales[:1] }, Operand: "scales", Want: "2 tensors (n)"},
		{Name: "fused/history", Edit: func(a *fused) { a.AmaxHistories[1] = checktest.F32(2) }, Operand: "amax_histories[1]", Want: "2 axes"},
		{Name: "fused/length of history", Edit: func(a *fused) { a.AmaxHistories[1] = checktest.F32(0, 2) }, Operand: "amax_histories[1]", Want: "at least one row"},
		{Name: "fused/scale", Edit: func(a *fused) { a.Scales[0] = checktest.F32(4) }, Operand: "scales[0]", Want: "3 elements"},
		{Name: "fused/algo", Edit: func(a *fused) { a.AmaxComputeAlgo = 0 }, Operand: "amax_compute_algo", Want: "most_recent or max"},
		{Name: "fused/dtype", Edit: func(a *fused) { a.FP8DType = tensor.F16 }, Operand: "fp8_dtype", Want: "f8e4m3 or f8e5m2"},
		{Name: "fused/margin", Edit: func(a *fused) { a.Margin = float32(math.Inf(1)) }, Operand: "margin", Want: "a finite number"},
		{Name: "fused/overlap", Edit: func(a *fused) { a.Scales[1] = checktest.Flat(a.AmaxHistories[0], 2) }, Operand: "scales[1]", Want: "memory apart from amax_histories[0]"},
	})
	checktest.Operands(t, quant.FusedAmaxAndScaleUpdateAfterReduction, fused{AmaxReductionBuffer: checktest.F32(1), AmaxHistories: []*tensor.Tensor{checktest.F32(1, 1)}, Scales: []*tensor.Tensor{checktest.F32(1)}},
		checktest.Access{"amax_reduction_buffer": opregistry.AccessRead, "amax_histories[0]": opregistry.AccessUpdate, "scales[0]": opregistry.AccessUpdate})
}

func TestLayoutOps(t *testing.T) {
	type transpose = quant.FP8TransposeArgs
	checktest.Validation(t, quant.FP8Transpose, func() transpose {
		return transpose{checktest.Zeros(tensor.F8E4M3, 2, 3, 5), checktest.Zeros(tensor.F8E4M3, 5, 6)}
	}, []checktest.Refusal[transpose]{
		{Name: "fp8/dtype", Edit: func(a *transpose) { a.Input = checktest.F32(2, 3, 5) }, Operand: "input", Want: "dtype f8e4m3, f8e5m2 or u8"},
		{Name: "fp8/dtypes", Edit: func(a *transpose) { a.Out = checktest.Zeros(tensor.U8, 5, 6) }, Operand: "out", Want: "the dtype of input"},
		{Name: "fp8/shape", Edit: func(a *transpose) { a.Out = checktest.Zeros(tensor.F8E4M3, 6, 5) }, Operand: "out", Want: "shape [5 6], as [cols rows]"},
		{Name: "fp8/overlap", Edit: func(a *transpose) { a.Input = checktest.Zeros(tensor.F8E4M3, 1, 3); a.Out, _ = a.Input.Transpose(0, 1) }, Operand: "out", Want: "memory apart from input"},
	})
	type swap = quant.SwapFirstDimsArgs
	checktest.Validation(t, quant.SwapFirstDims, func() swap { return swap{checktest.Zeros(tensor.I32, 2, 3, 5), checktest.Zeros(tensor.I32, 3, 2, 5)} }, []checktest.Refusal[swap]{
		{Name: "swap/vector", Edit: func(a *swap) { a.Tensor = checktest.I32(1, 2, 3) }, Operand: "tensor", Want: "at least 2 axes"},
		{Name: "swap/dtype", Edit: func(a *swap) { a.Out = checktest.F32(3, 2, 5) }, Operand: "out", Want: "the dtype of tensor"},
		{Name: "swap/shape", Edit: func(a *swap) { a.Out = checktest.Zeros(tensor.I32, 2, 3, 5) }, Operand: "out", Want: "with the first two axes exchanged"},
		{Name: "swap/rank", Edit: func(a *swap) { a.Out = checktest.Zeros(tensor.I32, 3, 10) }, Operand: "out", Want: "with the first two axes exchanged"},
	})
	type packed = quant.NVFP4DataTransposeArgs
	checktest.Validation(t, quant.NVFP4DataTranspose, func() packed { return packed{checktest.Zeros(tensor.U8, 4, 3), checktest.Zeros(tensor.U8, 6, 2)} }, []checktest.Refusal[packed]{
		{Name: "packed/odd", Edit: func(a *packed) { a.Input = checktest.Zeros(tensor.U8, 5, 3) }, Operand: "input", Want: "shape [2*h w]"},
		{Name: "packed/shape", Edit: func(a *packed) { a.Out = checktest.Zeros(tensor.U8, 3, 4) }, Operand: "out", Want: "shape [6 2], as [2*w h]"},
		{Name: "packed/dtype", Edit: func(a *packed) { a.Out = checktest.Zeros(tensor.F8E4M3, 6, 2) }, Operand: "out", Want: "dtype u8"},
	})
	type multi = quant.NVFP42DMultiTensorTransposeArgs
	checktest.Validation(t, quant.NVFP42DMultiTensorTranspose, func() multi {
		return multi{
			[]*tensor.Tensor{checktest.Zeros(tensor.U8, 18, 10)}, []*tensor.Tensor{checktest.Zeros(tensor.U8, 20, 9)},
			[]*tensor.Tensor{checktest.Zeros(tensor.F8E4M3, 128, 2)}, []*tensor.Tensor{checktest.Zeros(tensor.F8E4M3, 20, 2)},
		}
	}, []checktest.Refusal[multi]{
		{Name: "multi/lists", Edit: func(a *multi) { a.RowwiseScaleInvList = nil }, Operand: "rowwise_scale_inv_list", Want: "1 tensors (n)"},
		{Name: "multi/data", Edit: func(a *multi) { a.ColumnwiseDataList[0] = checktest.Zeros(tensor.U8, 20, 10) }, Operand: "columnwise_data_list[0]", Want: "shape [20 9]"},
		{Name: "multi/few rows of scales", Edit: func(a *multi) { a.RowwiseScaleInvList[0] = checktest.Zeros(tensor.F8E4M3, 17, 2) }, Operand: "rowwise_scale_inv_list[0]", Want: "at least 18 rows of 2"},
		{Name: "multi/overlap", Edit: func(a *multi) {
			a.RowwiseDataList[0], a.ColumnwiseDataList[0] = checktest.Zeros(tensor.U8, 2, 1), checktest.Zeros(tensor.U8, 2, 1)
			a.RowwiseScaleInvList[0] = checktest.Zeros(tensor.F8E4M3, 2, 1)
			a.ColumnwiseScaleInvList[0] = a.RowwiseScaleInvList[0]
		}, Operand: "columnwise_scale_inv_list[0]", Want: "memory apart from rowwise_scale_inv_list[0]"},
	})
	type splits = quant.SplitsToOffsetsArgs
	checktest.Validation(t, quant.SplitsToOffsets, func() splits { return splits{[]int{2, 0, 3}, 8, checktest.I64(0, 0, 0, 0)} }, []checktest.Refusal[splits]{
		{Name: "splits/dtype", Edit: func(a *splits) { a.Output = checktest.I32(0, 0, 0, 0) }, Operand: "output", Want: "dtype i64"},
		{Name: "splits/length", Edit: func(a *splits) { a.Output = checktest.I64(0, 0, 0) }, Operand: "output", Want: "4 elements"},
		{Name: "splits/last", Edit: func(a *splits) { a.LogicalLastDim = -1 }, Operand: "logical_last_dim", Want: "a number >= 0"},
		{Name: "splits/negative", Edit: func(a *splits) { a.FirstDims[1] = -1 }, Operand: "first_dims[1]", Want: "a length >= 0"},
		{Name: "splits/product", Edit: func(a *splits) { a.FirstDims[1] = math.MaxInt / 4 }, Operand: "first_dims[1]", Want: "offsets fit in i64"},
		{Name: "splits/sum", Edit: func(a *splits) { a.LogicalLastDim, a.FirstDims[0], a.FirstDims[2] = 1, math.MaxInt-1, 2 }, Operand: "first_dims[2]", Want: "offsets fit in i64"},
	})
}

func TestShards(t *testing.T) {
	type amax = quant.PartialAmaxArgs
	goodAmax := func() amax {
		return amax{Tensor: checktest.F32(50), Amax: checktest.F32(2, 3), H: 20, W: 40, StartOffset: 750, BlockLen: 16}
	}
	refusals := []checktest.Refusal[amax]{
		{Name: "matrix", Edit: func(a *amax) { a.Tensor = checktest.F32(5, 10) }, Operand: "tensor", Want: "1 axis"},
		{Name: "dtype", Edit: func(a *amax) { a.Tensor = checktest.Zeros(tensor.U8, 50) }, Operand: "tensor", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "end", Edit: func(a *amax) { a.StartOffset = 751 }, Operand: "start_offset", Want: "an offset >= 0 with which 50 elements lie in a matrix of 20×40"},
		{Name: "begin", Edit: func(a *amax) { a.StartOffset = -1 }, Operand: "start_offset", Want: "an offset >= 0"},
		{Name: "h", Edit: func(a *amax) { a.H = -1 }, Operand: "h", Want: "a length >= 0"},
		{Name: "w", Edit: func(a *amax) { a.W = -1 }, Operand: "w", Want: "a length >= 0"},
		{Name: "overflow", Edit: func(a *amax) { a.H, a.W = math.MaxInt/2, 3 }, Operand: "w", Want: "a matrix whose elements can be counted"},
		{Name: "block_len", Edit: func(a *amax) { a.BlockLen = 0 }, Operand: "block_len", Want: "a number >= 1"},
		{Name: "tiles", Edit: func(a *amax) { a.Amax = checktest.F32(3, 2) }, Operand: "amax", Want: "shape [2 3]"},
		{Name: "overlap", Edit: func(a *amax) { a.Amax, _ = checktest.Flat(a.Tensor, 6).Reshape(2, 3) }, Operand: "amax", Want: "memory apart from tensor"},
	}
	t.Run("fp8", func(t *testing.T) {
		checktest.Validation(t, quant.FP8BlockScalingComputePartialAmax, goodAmax, refusals)
	})
	t.Run("nvfp4", func(t *testing.T) { checktest.Validation(t, quant.NVFP42DComputePartialAmax, goodAmax, refusals) })

	type many = quant.NVFP4MultiTensorComputePartialAmaxArgs
	checktest.Validation(t, quant.NVFP4MultiTensorComputePartialAmax, func() many {
		return many{[]quant.NVFP4PartialAmaxArgs{{goodAmax(), checktest.F32(1)}, {goodAmax(), checktest.F32(1)}}}
	}, []checktest.Refusal[many]{
		{Name: "many/end", Edit: func(a *many) { a.Calls[1].StartOffset = 751 }, Operand: "calls[1].start_offset", Want: "an offset >= 0"},
		{Name: "many/global", Edit: func(a *many) { a.Calls[1].GlobalAmax = nil }, Operand: "calls[1].global_amax", Want: "a tensor"},
		{Name: "many/overlap", Edit: func(a *many) { a.Calls[1].GlobalAmax = a.Calls[0].GlobalAmax }, Operand: "calls[1].global_amax", Want: "memory apart from calls[0].global_amax"},
	})
	type cast = quant.PartialCastArgs
	checktest.Validation(t, quant.FP8BlockScalingPartialCast, func() cast {
		return cast{Inp: checktest.F32(50), Out: checktest.Zeros(tensor.F8E4M3, 50), Scale: checktest.F32(2, 3), H: 20, W: 40, StartOffset: 750, BlockLen: 16}
	}, []checktest.Refusal[cast]{
		{Name: "cast/out", Edit: func(a *cast) { a.Out = checktest.Zeros(tensor.U8, 50) }, Operand: "out", Want: "dtype f8e4m3 or f8e5m2"},
		{Name: "cast/length", Edit: func(a *cast) { a.Out = checktest.Zeros(tensor.F8E4M3, 51) }, Operand: "out", Want: "the shape of inp, [50]"},
		{Name: "cast/scale", Edit: func(a *cast) { a.Scale = checktest.F32(6) }, Operand: "scale", Want: "shape [2 3]"},
	})
	type mxAmax = quant.MXFP8PartialAmaxArgs
	checktest.Validation(t, quant.MXFP8ScalingComputePartialAmax, func() mxAmax {
		return mxAmax{Input: checktest.Zeros(tensor.BF16, 9), AmaxRowwise: checktest.Zeros(tensor.BF16, 33, 2), AmaxColwise: checktest.Zeros(tensor.BF16, 2, 40), Rows: 33, Cols: 40}
	}, []checktest.Refusal[mxAmax]{
		{Name: "mx/rows", Edit: func(a *mxAmax) { a.Rows = -1 }, Operand: "rows", Want: "a length >= 0"},
		{Name: "mx/rowwise", Edit: func(a *mxAmax) { a.AmaxRowwise = checktest.Zeros(tensor.BF16, 2, 33) }, Operand: "amax_rowwise", Want: "shape [33 2]"},
		{Name: "mx/colwise", Edit: func(a *mxAmax) { a.AmaxColwise = checktest.Zeros(tensor.BF16, 40, 2) }, Operand: "amax_colwise", Want: "shape [2 40]"},
		{Name: "mx/dtype", Edit: func(a *mxAmax) { a.AmaxColwise = checktest.F32(2, 40) }, Operand: "amax_colwise", Want: "the dtype of input"},
	})
	type mxCast = quant.MXFP8PartialCastArgs
	checktest.Validation(t, quant.MXFP8ScalingPartialCast, func() mxCast {
		return mxCast{
			Input: checktest.Zeros(tensor.BF16, 9), OutputRowwise: checktest.Zeros(tensor.F8E4M3, 9), OutputColwise: checktest.Zeros(tensor.F8E4M3, 9),
			ScaleInvRowwise: checktest.Zeros(tensor.U8, 33, 2), ScaleInvColwise: checktest.Zeros(tensor.U8, 2, 40), Rows: 33, Cols: 40,
		}
	}, []checktest.Refusal[mxCast]{
		{Name: "mxcast/e5m2", Edit: func(a *mxCast) { a.OutputColwise = checktest.Zeros(tensor.F8E5M2, 9) }, Operand: "output_colwise", Want: "dtype f8e4m3"},
		{Name: "mxcast/scale", Edit: func(a *mxCast) { a.ScaleInvRowwise = checktest.F32(33, 2) }, Operand: "scale_inv_rowwise", Want: "dtype u8"},
		{Name: "mxcast/same", Edit: func(a *mxCast) { a.OutputColwise = a.OutputRowwise }, Operand: "output_colwise", Want: "memory apart from output_rowwise"},
	})
	type fp4 = quant.NVFP42DPartialCastArgs
	goodFP4 := func() fp4 {
		return fp4{Inp: checktest.F32(9), Out: checktest.Zeros(tensor.U8, 5), Scale: checktest.F32(2, 3), GlobalScale: checktest.F32(1), H: 20, W: 40, StartOffset: 2, BlockLen: 16}
	}
	checktest.Validation(t, quant.NVFP42DPartialCast, goodFP4, []checktest.Refusal[fp4]{
		{Name: "fp4/odd offset", Edit: func(a *fp4) { a.StartOffset = 3 }, Operand: "start_offset", Want: "an even offset"},
		{Name: "fp4/odd rows", Edit: func(a *fp4) { a.W = 41 }, Operand: "w", Want: "an even length"},
		{Name: "fp4/length", Edit: func(a *fp4) { a.Out = checktest.Zeros(tensor.U8, 4) }, Operand: "out", Want: "5 elements"},
		{Name: "fp4/dtype", Edit: func(a *fp4) { a.Out = checktest.Zeros(tensor.F8E4M3, 5) }, Operand: "out", Want: "dtype u8"},
		{Name: "fp4/global", Edit: func(a *fp4) { a.GlobalScale = checktest.F32(2) }, Operand: "global_scale", Want: "1 element (1)"},
	})
	checktest.Operands(t, quant.NVFP42DPartialCast, goodFP4(), checktest.Access{
		"inp": opregistry.AccessRead, "scale": opregistry.AccessRead, "global_scale": opregistry.AccessRead, "out": opregistry.AccessUpdate,
	})
	even := goodFP4()
	even.Inp = checktest.F32(10)
	checktest.Operands(t, quant.NVFP42DPartialCast, even, checktest.Access{
		"inp": opregistry.AccessRead, "scale": opregistry.AccessRead, "global_scale": opregistry.AccessRead, "out": opregistry.AccessWrite,
	})
	type fp4s = quant.NVFP4MultiTensor2DPartialCastArgs
	checktest.Validation(t, quant.NVFP4MultiTensor2DPartialCast, func() fp4s { return fp4s{[]fp4{goodFP4(), goodFP4()}} }, []checktest.Refusal[fp4s]{
		{Name: "fp4s/second", Edit: func(a *fp4s) { a.Calls[1].StartOffset = 3 }, Operand: "calls[1].start_offset", Want: "an even offset"},
		{Name: "fp4s/overlap", Edit: func(a *fp4s) { a.Calls[1].Out = a.Calls[0].Out }, Operand: "calls[1].out", Want: "memory apart from calls[0].out"},
	})
}

func TestNVFP4Scales(t *testing.T) {
	type global = quant.NVFP4ComputeGlobalScaleArgs
	checktest.Validation(t, quant.NVFP4ComputeGlobalScale, func() global { return global{checktest.F32(3), checktest.F32(3)} }, []checktest.Refusal[global]{
		{Name: "global/dtype", Edit: func(a *global) { a.GlobalAmaxes = checktest.Zeros(tensor.BF16, 3) }, Operand: "global_amaxes", Want: "dtype f32"},
		{Name: "global/shape", Edit: func(a *global) { a.GlobalScaleTensor = checktest.F32(2) }, Operand: "global_scale_tensor", Want: "the shape of global_amaxes"},
		{Name: "global/overlap", Edit: func(a *global) { a.GlobalScaleTensor = checktest.Shifted(&a.GlobalAmaxes) }, Operand: "global_scale_tensor", Want: "the same view as global_amaxes"},
	})
	type block = quant.NVFP4ComputePerBlockScaleArgs
	checktest.Validation(t, quant.NVFP4ComputePerBlockScale, func() block { return block{checktest.F32(3, 2), checktest.F32(3, 2), checktest.F32(1)} }, []checktest.Refusal[block]{
		{Name: "block/shape", Edit: func(a *block) { a.Scale = checktest.F32(6) }, Operand: "scale", Want: "the shape of block_amax"},
		{Name: "block/global", Edit: func(a *block) { a.GlobalAmax = nil }, Operand: "global_amax", Want: "a tensor"},
		{Name: "block/overlap", Edit: func(a *block) { a.BlockAmax, a.Scale = checktest.F32(1), checktest.F32(1); a.GlobalAmax = a.Scale }, Operand: "scale", Want: "memory apart from global_amax"},
	})
	type expand = quant.NVFP4ExpandScaleToFP8Args
	checktest.Validation(t, quant.NVFP4ExpandScaleToFP8, func() expand { return expand{checktest.F32(3, 2), checktest.Zeros(tensor.F8E4M3, 128, 2), 16} }, []checktest.Refusal[expand]{
		{Name: "expand/cols", Edit: func(a *expand) { a.Output = checktest.Zeros(tensor.F8E4M3, 128, 3) }, Operand: "output", Want: "shape [128 2], as [padded w]"},
		{Name: "expand/dtype", Edit: func(a *expand) { a.Output = checktest.Zeros(tensor.F8E5M2, 128, 2) }, Operand: "output", Want: "dtype f8e4m3"},
		{Name: "expand/block_len", Edit: func(a *expand) { a.BlockLen = 0 }, Operand: "block_len", Want: "a number >= 1"},
	})
	type fused = quant.NVFP4FusedScaleArgs
	good := func() fused {
		return fused{BlockAmax: checktest.F32(3, 2), GlobalAmax: checktest.F32(1), PerBlockScale: checktest.F32(3, 2), TargetScale: checktest.Zeros(tensor.F8E4M3, 48, 2), TargetAmax: checktest.F32(1), BlockLen: 16}
	}
	checktest.Validation(t, quant.NVFP4FusedScale, good, []checktest.Refusal[fused]{
		{Name: "fused/scale", Edit: func(a *fused) { a.PerBlockScale = checktest.F32(2, 3) }, Operand: "per_block_scale", Want: "the shape of block_amax"},
		{Name: "fused/target", Edit: func(a *fused) { a.TargetScale = nil }, Operand: "target_scale", Want: "a tensor"},
		{Name: "fused/overlap", Edit: func(a *fused) { a.TargetAmax = a.GlobalAmax }, Operand: "target_amax", Want: "memory apart from global_amax"},
	})
	type many = quant.NVFP4MultiTensorFusedScaleArgs
	checktest.Validation(t, quant.NVFP4MultiTensorFusedScale, func() many { return many{[]fused{good(), good()}} }, []checktest.Refusal[many]{
		{Name: "many/second", Edit: func(a *many) { a.Calls[1].TargetAmax = nil }, Operand: "calls[1].target_amax", Want: "a tensor"},
		{Name: "many/overlap", Edit: func(a *many) { a.Calls[1].TargetAmax = a.Calls[0].TargetAmax }, Operand: "calls[1].target_amax", Want: "memory apart from calls[0].target_amax"},
	})
}
