package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestFP8Scales(t *testing.T) {
	type scale = ops.MultiTensorComputeScaleAndScaleInvArgs
	testValidation(t, ops.MultiTensorComputeScaleAndScaleInv, func() scale {
		return scale{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{list(), list(), list()}, MaxFP8: 448}
	}, []refusal[scale]{
		{"scale/lists", func(a *scale) { a.TensorLists = a.TensorLists[:2] }, "tensor_lists", "3 lists (amax, scale, scale_inv)"},
		{"scale/dtype", func(a *scale) { a.TensorLists[0][0] = of(tensor.BF16, 3) }, "tensor_lists[0][0]", "dtype f32"},
		{"scale/max", func(a *scale) { a.MaxFP8 = 0 }, "max_fp8", "a number > 0"},
		{"scale/epsilon", func(a *scale) { a.Epsilon = -1 }, "epsilon", "a number >= 0"},
		{"scale/overlap", func(a *scale) { a.TensorLists[2][0] = a.TensorLists[0][0] }, "tensor_lists[2][0]", "memory apart from tensor_lists[0][0]"},
	})
	type e8m0 = ops.MultiTensorComputeScaleInvE8M0Args
	testValidation(t, ops.MultiTensorComputeScaleInvE8M0, func() e8m0 {
		return e8m0{NoopFlag: i32(0), TensorLists: [][]*tensor.Tensor{listOf(tensor.BF16), listOf(tensor.U8)}}
	}, []refusal[e8m0]{
		{"e8m0/lists", func(a *e8m0) { a.TensorLists = nil }, "tensor_lists", "2 lists (amax, scale_inv)"},
		{"e8m0/amax", func(a *e8m0) { a.TensorLists[0][1] = f32(2, 2) }, "tensor_lists[0][1]", "dtype bf16"},
		{"e8m0/scale", func(a *e8m0) { a.TensorLists[1][1] = of(tensor.F8E4M3, 2, 2) }, "tensor_lists[1][1]", "dtype u8"},
	})
	type amax = ops.ComputeAmaxArgs
	testValidation(t, ops.ComputeAmax, func() amax { return amax{Input: of(tensor.BF16, 3), Amax: f32(1)} }, []refusal[amax]{
		{"amax/input", func(a *amax) { a.Input = of(tensor.F8E4M3, 3) }, "input", "dtype f32, bf16, f16 or f64"},
		{"amax/amax", func(a *amax) { a.Amax = f32(0) }, "amax", "1 elements"},
		{"amax/overlap", func(a *amax) { a.Input = a.Amax }, "amax", "memory apart from input"},
	})
	type fused = ops.FusedAmaxAndScaleUpdateArgs
	testValidation(t, ops.FusedAmaxAndScaleUpdateAfterReduction, func() fused {
		return fused{
			AmaxReductionBuffer: f32(5), AmaxHistories: []*tensor.Tensor{f32(4, 3), f32(1, 2)}, Scales: []*tensor.Tensor{f32(3), f32(2)},
			AmaxComputeAlgo: ops.AmaxMax, FP8DType: tensor.F8E4M3,
		}
	}, []refusal[fused]{
		{"fused/buffer", func(a *fused) { a.AmaxReductionBuffer = f32(4) }, "amax_reduction_buffer", "5 elements"},
		{"fused/scales", func(a *fused) { a.Scales = a.Scales[:1] }, "scales", "2 tensors, as amax_histories"},
		{"fused/history", func(a *fused) { a.AmaxHistories[1] = f32(2) }, "amax_histories[1]", "2 axes"},
		{"fused/length of history", func(a *fused) { a.AmaxHistories[1] = f32(0, 2) }, "amax_histories[1]", "at least one row"},
		{"fused/scale", func(a *fused) { a.Scales[0] = f32(4) }, "scales[0]", "3 elements"},
		{"fused/algo", func(a *fused) { a.AmaxComputeAlgo = 0 }, "amax_compute_algo", "most_recent or max"},
		{"fused/dtype", func(a *fused) { a.FP8DType = tensor.F16 }, "fp8_dtype", "f8e4m3 or f8e5m2"},
		{"fused/margin", func(a *fused) { a.Margin = float32(math.Inf(1)) }, "margin", "a finite number"},
		{"fused/overlap", func(a *fused) { a.Scales[1] = flat(a.AmaxHistories[0], 2) }, "scales[1]", "memory apart from amax_histories[0]"},
	})
	testOperands(t, ops.FusedAmaxAndScaleUpdateAfterReduction, fused{AmaxReductionBuffer: f32(1), AmaxHistories: []*tensor.Tensor{f32(1, 1)}, Scales: []*tensor.Tensor{f32(1)}},
		access{"amax_reduction_buffer": opregistry.AccessRead, "amax_histories[0]": opregistry.AccessUpdate, "scales[0]": opregistry.AccessUpdate})
}

func TestLayoutOps(t *testing.T) {
	type transpose = ops.FP8TransposeArgs
	testValidation(t, ops.FP8Transpose, func() transpose { return transpose{of(tensor.F8E4M3, 2, 3, 5), of(tensor.F8E4M3, 5, 6)} }, []refusal[transpose]{
		{"fp8/dtype", func(a *transpose) { a.Input = f32(2, 3, 5) }, "input", "dtype f8e4m3 or f8e5m2 or u8"},
		{"fp8/dtypes", func(a *transpose) { a.Out = of(tensor.U8, 5, 6) }, "out", "the dtype of input"},
		{"fp8/shape", func(a *transpose) { a.Out = of(tensor.F8E4M3, 6, 5) }, "out", "5 rows of 6"},
		{"fp8/overlap", func(a *transpose) { a.Input = of(tensor.F8E4M3, 1, 3); a.Out, _ = a.Input.Transpose(0, 1) }, "out", "memory apart from input"},
	})
	type swap = ops.SwapFirstDimsArgs
	testValidation(t, ops.SwapFirstDims, func() swap { return swap{of(tensor.I32, 2, 3, 5), of(tensor.I32, 3, 2, 5)} }, []refusal[swap]{
		{"swap/vector", func(a *swap) { a.Tensor = f32(3) }, "tensor", "at least 2 axes"},
		{"swap/dtype", func(a *swap) { a.Out = f32(3, 2, 5) }, "out", "the dtype of tensor"},
		{"swap/shape", func(a *swap) { a.Out = of(tensor.I32, 2, 3, 5) }, "out", "with the first two axes exchanged"},
		{"swap/rank", func(a *swap) { a.Out = of(tensor.I32, 3, 10) }, "out", "with the first two axes exchanged"},
	})
	type packed = ops.NVFP4DataTransposeArgs
	testValidation(t, ops.NVFP4DataTranspose, func() packed { return packed{of(tensor.U8, 4, 3), of(tensor.U8, 6, 2)} }, []refusal[packed]{
		{"packed/odd", func(a *packed) { a.Input = of(tensor.U8, 5, 3) }, "input", "an even number of rows"},
		{"packed/shape", func(a *packed) { a.Out = of(tensor.U8, 3, 4) }, "out", "6 rows of 2"},
		{"packed/dtype", func(a *packed) { a.Out = of(tensor.F8E4M3, 6, 2) }, "out", "dtype u8"},
	})
	type multi = ops.NVFP42DMultiTensorTransposeArgs
	testValidation(t, ops.NVFP42DMultiTensorTranspose, func() multi {
		return multi{
			[]*tensor.Tensor{of(tensor.U8, 18, 10)}, []*tensor.Tensor{of(tensor.U8, 20, 9)},
			[]*tensor.Tensor{of(tensor.F8E4M3, 128, 2)}, []*tensor.Tensor{of(tensor.F8E4M3, 20, 2)},
		}
	}, []refusal[multi]{
		{"multi/lists", func(a *multi) { a.RowwiseScaleInvList = nil }, "rowwise_scale_inv_list", "1 elements, as rowwise_data_list"},
		{"multi/data", func(a *multi) { a.ColumnwiseDataList[0] = of(tensor.U8, 20, 10) }, "columnwise_data_list[0]", "20 rows of 9"},
		{"multi/few rows of scales", func(a *multi) { a.RowwiseScaleInvList[0] = of(tensor.F8E4M3, 17, 2) }, "rowwise_scale_inv_list[0]", "at least 18 rows of 2"},
		{"multi/overlap", func(a *multi) {
			a.RowwiseDataList[0], a.ColumnwiseDataList[0] = of(tensor.U8, 2, 1), of(tensor.U8, 2, 1)
			a.RowwiseScaleInvList[0] = of(tensor.F8E4M3, 2, 1)
			a.ColumnwiseScaleInvList[0] = a.RowwiseScaleInvList[0]
		}, "columnwise_scale_inv_list[0]", "memory apart from rowwise_scale_inv_list[0]"},
	})
	type splits = ops.SplitsToOffsetsArgs
	testValidation(t, ops.SplitsToOffsets, func() splits { return splits{[]int{2, 0, 3}, 8, i64(0, 0, 0, 0)} }, []refusal[splits]{
		{"splits/dtype", func(a *splits) { a.Output = i32(0, 0, 0, 0) }, "output", "dtype i64"},
		{"splits/length", func(a *splits) { a.Output = i64(0, 0, 0) }, "output", "4 elements"},
		{"splits/last", func(a *splits) { a.LogicalLastDim = -1 }, "logical_last_dim", "a length >= 0"},
		{"splits/negative", func(a *splits) { a.FirstDims[1] = -1 }, "first_dims[1]", "a length >= 0"},
		{"splits/product", func(a *splits) { a.FirstDims[1] = math.MaxInt / 4 }, "first_dims[1]", "offsets fit in i64"},
		{"splits/sum", func(a *splits) { a.LogicalLastDim, a.FirstDims[0], a.FirstDims[2] = 1, math.MaxInt-1, 2 }, "first_dims[2]", "offsets fit in i64"},
	})
}

func TestShards(t *testing.T) {
	type amax = ops.PartialAmaxArgs
	goodAmax := func() amax {
		return amax{Tensor: f32(50), Amax: f32(2, 3), H: 20, W: 40, StartOffset: 750, BlockLen: 16}
	}
	refusals := []refusal[amax]{
		{"matrix", func(a *amax) { a.Tensor = f32(5, 10) }, "tensor", "1 axes"},
		{"dtype", func(a *amax) { a.Tensor = of(tensor.U8, 50) }, "tensor", "dtype f32, bf16, f16 or f64"},
		{"end", func(a *amax) { a.StartOffset = 751 }, "start_offset", "an offset >= 0 with which 50 elements lie in a matrix of 20×40"},
		{"begin", func(a *amax) { a.StartOffset = -1 }, "start_offset", "an offset >= 0"},
		{"h", func(a *amax) { a.H = -1 }, "h", "a length >= 0"},
		{"w", func(a *amax) { a.W = -1 }, "w", "a length >= 0"},
		{"overflow", func(a *amax) { a.H, a.W = math.MaxInt/2, 3 }, "w", "a matrix whose elements can be counted"},
		{"block_len", func(a *amax) { a.BlockLen = 0 }, "block_len", "a length >= 1"},
		{"tiles", func(a *amax) { a.Amax = f32(3, 2) }, "amax", "2 rows of 3"},
		{"overlap", func(a *amax) { a.Amax, _ = flat(a.Tensor, 6).Reshape(2, 3) }, "amax", "memory apart from tensor"},
	}
	t.Run("fp8", func(t *testing.T) {
		testValidation(t, ops.FP8BlockScalingComputePartialAmax, goodAmax, refusals)
	})
	t.Run("nvfp4", func(t *testing.T) { testValidation(t, ops.NVFP42DComputePartialAmax, goodAmax, refusals) })

	type many = ops.NVFP4MultiTensorComputePartialAmaxArgs
	testValidation(t, ops.NVFP4MultiTensorComputePartialAmax, func() many {
		return many{[]ops.NVFP4PartialAmaxArgs{{goodAmax(), f32(1)}, {goodAmax(), f32(1)}}}
	}, []refusal[many]{
		{"many/end", func(a *many) { a.Calls[1].StartOffset = 751 }, "start_offset_list[1]", "an offset >= 0"},
		{"many/global", func(a *many) { a.Calls[1].GlobalAmax = nil }, "global_amax_list[1]", "a tensor"},
		{"many/overlap", func(a *many) { a.Calls[1].GlobalAmax = a.Calls[0].GlobalAmax }, "global_amax_list[1]", "memory apart from global_amax_list[0]"},
	})
	type cast = ops.PartialCastArgs
	testValidation(t, ops.FP8BlockScalingPartialCast, func() cast {
		return cast{Inp: f32(50), Out: of(tensor.F8E4M3, 50), Scale: f32(2, 3), H: 20, W: 40, StartOffset: 750, BlockLen: 16}
	}, []refusal[cast]{
		{"cast/out", func(a *cast) { a.Out = of(tensor.U8, 50) }, "out", "dtype f8e4m3 or f8e5m2"},
		{"cast/length", func(a *cast) { a.Out = of(tensor.F8E4M3, 51) }, "out", "50 elements"},
		{"cast/scale", func(a *cast) { a.Scale = f32(6) }, "scale", "2 axes"},
	})
	type mxAmax = ops.MXFP8PartialAmaxArgs
	testValidation(t, ops.MXFP8ScalingComputePartialAmax, func() mxAmax {
		return mxAmax{Input: of(tensor.BF16, 9), AmaxRowwise: of(tensor.BF16, 33, 2), AmaxColwise: of(tensor.BF16, 2, 40), Rows: 33, Cols: 40}
	}, []refusal[mxAmax]{
		{"mx/rows", func(a *mxAmax) { a.Rows = -1 }, "rows", "a length >= 0"},
		{"mx/rowwise", func(a *mxAmax) { a.AmaxRowwise = of(tensor.BF16, 2, 33) }, "amax_rowwise", "33 rows of 2"},
		{"mx/colwise", func(a *mxAmax) { a.AmaxColwise = of(tensor.BF16, 40, 2) }, "amax_colwise", "2 rows of 40"},
		{"mx/dtype", func(a *mxAmax) { a.AmaxColwise = f32(2, 40) }, "amax_colwise", "the dtype of input"},
	})
	type mxCast = ops.MXFP8PartialCastArgs
	testValidation(t, ops.MXFP8ScalingPartialCast, func() mxCast {
		return mxCast{
			Input: of(tensor.BF16, 9), OutputRowwise: of(tensor.F8E4M3, 9), OutputColwise: of(tensor.F8E4M3, 9),
			ScaleInvRowwise: of(tensor.U8, 33, 2), ScaleInvColwise: of(tensor.U8, 2, 40), Rows: 33, Cols: 40,
		}
	}, []refusal[mxCast]{
		{"mxcast/e5m2", func(a *mxCast) { a.OutputColwise = of(tensor.F8E5M2, 9) }, "output_colwise", "dtype f8e4m3"},
		{"mxcast/scale", func(a *mxCast) { a.ScaleInvRowwise = f32(33, 2) }, "scale_inv_rowwise", "dtype u8"},
		{"mxcast/same", func(a *mxCast) { a.OutputColwise = a.OutputRowwise }, "output_colwise", "memory apart from output_rowwise"},
	})
	type fp4 = ops.NVFP42DPartialCastArgs
	goodFP4 := func() fp4 {
		return fp4{Inp: f32(9), Out: of(tensor.U8, 5), Scale: f32(2, 3), GlobalScale: f32(1), H: 20, W: 40, StartOffset: 2, BlockLen: 16}
	}
	testValidation(t, ops.NVFP42DPartialCast, goodFP4, []refusal[fp4]{
		{"fp4/odd offset", func(a *fp4) { a.StartOffset = 3 }, "start_offset", "an even offset"},
		{"fp4/odd rows", func(a *fp4) { a.W = 41 }, "w", "an even length"},
		{"fp4/length", func(a *fp4) { a.Out = of(tensor.U8, 4) }, "out", "5 elements"},
		{"fp4/dtype", func(a *fp4) { a.Out = of(tensor.F8E4M3, 5) }, "out", "dtype u8"},
		{"fp4/global", func(a *fp4) { a.GlobalScale = f32(2) }, "global_scale", "1 elements"},
	})
	testOperands(t, ops.NVFP42DPartialCast, goodFP4(), access{
		"inp": opregistry.AccessRead, "scale": opregistry.AccessRead, "global_scale": opregistry.AccessRead, "out": opregistry.AccessUpdate,
	})
	even := goodFP4()
	even.Inp = f32(10)
	testOperands(t, ops.NVFP42DPartialCast, even, access{
		"inp": opregistry.AccessRead, "scale": opregistry.AccessRead, "global_scale": opregistry.AccessRead, "out": opregistry.AccessWrite,
	})
	type fp4s = ops.NVFP4MultiTensor2DPartialCastArgs
	testValidation(t, ops.NVFP4MultiTensor2DPartialCast, func() fp4s { return fp4s{[]fp4{goodFP4(), goodFP4()}} }, []refusal[fp4s]{
		{"fp4s/second", func(a *fp4s) { a.Calls[1].StartOffset = 3 }, "start_offset_list[1]", "an even offset"},
		{"fp4s/overlap", func(a *fp4s) { a.Calls[1].Out = a.Calls[0].Out }, "out_list[1]", "memory apart from out_list[0]"},
	})
}

func TestNVFP4Scales(t *testing.T) {
	type global = ops.NVFP4ComputeGlobalScaleArgs
	testValidation(t, ops.NVFP4ComputeGlobalScale, func() global { return global{f32(3), f32(3)} }, []refusal[global]{
		{"global/dtype", func(a *global) { a.GlobalAmaxes = of(tensor.BF16, 3) }, "global_amaxes", "dtype f32"},
		{"global/shape", func(a *global) { a.GlobalScaleTensor = f32(2) }, "global_scale_tensor", "the shape of global_amaxes"},
		{"global/overlap", func(a *global) { a.GlobalScaleTensor = shifted(&a.GlobalAmaxes) }, "global_scale_tensor", "the same view as global_amaxes"},
	})
	type block = ops.NVFP4ComputePerBlockScaleArgs
	testValidation(t, ops.NVFP4ComputePerBlockScale, func() block { return block{f32(3, 2), f32(3, 2), f32(1)} }, []refusal[block]{
		{"block/shape", func(a *block) { a.Scale = f32(6) }, "scale", "the shape of block_amax"},
		{"block/global", func(a *block) { a.GlobalAmax = nil }, "global_amax", "a tensor"},
		{"block/overlap", func(a *block) { a.BlockAmax, a.Scale = f32(1), f32(1); a.GlobalAmax = a.Scale }, "scale", "memory apart from global_amax"},
	})
	type expand = ops.NVFP4ExpandScaleToFP8Args
	testValidation(t, ops.NVFP4ExpandScaleToFP8, func() expand { return expand{f32(3, 2), of(tensor.F8E4M3, 128, 2), 16} }, []refusal[expand]{
		{"expand/cols", func(a *expand) { a.Output = of(tensor.F8E4M3, 128, 3) }, "output", "rows of 2, one scale a tile"},
		{"expand/dtype", func(a *expand) { a.Output = of(tensor.F8E5M2, 128, 2) }, "output", "dtype f8e4m3"},
		{"expand/block_len", func(a *expand) { a.BlockLen = 0 }, "block_len", "a length >= 1"},
	})
	type fused = ops.NVFP4FusedScaleArgs
	good := func() fused {
		return fused{BlockAmax: f32(3, 2), GlobalAmax: f32(1), PerBlockScale: f32(3, 2), TargetScale: of(tensor.F8E4M3, 48, 2), TargetAmax: f32(1), BlockLen: 16}
	}
	testValidation(t, ops.NVFP4FusedScale, good, []refusal[fused]{
		{"fused/scale", func(a *fused) { a.PerBlockScale = f32(2, 3) }, "per_block_scale", "the shape of block_amax"},
		{"fused/target", func(a *fused) { a.TargetScale = nil }, "target_scale", "a tensor"},
		{"fused/overlap", func(a *fused) { a.TargetAmax = a.GlobalAmax }, "target_amax", "memory apart from global_amax"},
	})
	type many = ops.NVFP4MultiTensorFusedScaleArgs
	testValidation(t, ops.NVFP4MultiTensorFusedScale, func() many { return many{[]fused{good(), good()}} }, []refusal[many]{
		{"many/second", func(a *many) { a.Calls[1].TargetAmax = nil }, "target_amax_list[1]", "a tensor"},
		{"many/overlap", func(a *many) { a.Calls[1].TargetAmax = a.Calls[0].TargetAmax }, "target_amax_list[1]", "memory apart from target_amax_list[0]"},
	})
}

func TestPlumbing(t *testing.T) {
	var number int
	var object any
	assert.NoError(t, ops.GetCuDNNVersion.Validate(ops.QueryArgs{Result: &number}))
	assert.ErrorContains(t, ops.GetCuBLASLtVersion.Validate(ops.QueryArgs{}), `op "get_cublaslt_version": argument "result": got nil, want an object`)
	overlap := ops.CreateCommOverlapArgs{BufferDType: tensor.BF16, Helper: object, TPSize: 8, Result: &object}
	assert.ErrorContains(t, ops.CreateCommOverlap.Validate(overlap), `"helper"`)
	overlap.Helper = 1
	assert.NoError(t, ops.CreateCommOverlapP2P.Validate(overlap))
	overlap.TPSize = 0
	assert.ErrorContains(t, ops.CreateCommOverlapP2P.Validate(overlap), `"tp_size": got 0, want a number of ranks >= 1`)

	send := ops.NVSHMEMSendOnCurrentStreamArgs{Src: f32(2), Dst: f32(2), Signal: i64(0)}
	assert.NoError(t, ops.NVSHMEMSendOnCurrentStream.Validate(send))
	testOperands(t, ops.NVSHMEMSendOnCurrentStream, send, access{"src": opregistry.AccessRead, "dst": opregistry.AccessWrite, "signal": opregistry.AccessUpdate})
	send.Dst = nil
	assert.ErrorContains(t, ops.NVSHMEMSendOnCurrentStream.Validate(send), `"dst"`)

	pointers := ops.ConvertHostPointersToTensorArgs{TensorLists: [][]*tensor.Tensor{{f32(1)}, {f32(1)}}, Result: i64(0, 0)}
	assert.NoError(t, ops.ConvertHostPointersToTensor.Validate(pointers))
	pointers.TensorLists[1] = nil
	assert.ErrorContains(t, ops.ConvertHostPointersToTensor.Validate(pointers), `"tensor_lists[1]": got 0, want 1 elements`)

	grouped := ops.GroupedSwizzleForGemmArgs{TensorList: []ops.Quantized{{ScaleInv: of(tensor.U8, 2, 2)}}, Scaling: ops.MXFP8Scaling, Rowwise: true}
	assert.NoError(t, ops.GroupedSwizzleForGemm.Validate(grouped))
	testOperands(t, ops.GroupedSwizzleForGemm, grouped, access{"tensor_list[0].scale_inv": opregistry.AccessUpdate})
	grouped.Columnwise = true
	assert.ErrorContains(t, ops.GroupedSwizzleForGemm.Validate(grouped), `"tensor_list[0]"`)
	grouped.Scaling = ops.BlockScaling
	assert.ErrorContains(t, ops.GroupedSwizzleForGemm.Validate(grouped), `got block, want mxfp8 or nvfp4`)
}
