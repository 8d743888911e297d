package quant_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/quant"
	"github.com/primus-fl/primus/tensor"
)

// outputs returns what a scaling writes for a matrix [40, 70].
func outputs(s quant.Scaling, square bool) quant.Quantized {
	switch s {
	case quant.DelayedScaling, quant.CurrentScaling:
		return quant.Quantized{Data: checktest.Zeros(tensor.F8E4M3, 40, 70), ColumnwiseData: checktest.Zeros(tensor.F8E4M3, 70, 40), ScaleInv: checktest.F32(1), Scale: checktest.F32(1), Amax: checktest.F32(1)}
	case quant.BlockScaling:
		if square {
			return quant.Quantized{Data: checktest.Zeros(tensor.F8E5M2, 40, 70), ScaleInv: checktest.F32(1, 1), ColumnwiseData: checktest.Zeros(tensor.F8E5M2, 70, 40), ColumnwiseScaleInv: checktest.F32(1, 1)}
		}
		return quant.Quantized{Data: checktest.Zeros(tensor.F8E5M2, 40, 70), ScaleInv: checktest.F32(40, 1), ColumnwiseData: checktest.Zeros(tensor.F8E5M2, 70, 40), ColumnwiseScaleInv: checktest.F32(70, 1)}
	case quant.MXFP8Scaling:
		return quant.Quantized{
			Data: checktest.Zeros(tensor.F8E4M3, 40, 70), ScaleInv: checktest.Zeros(tensor.U8, 40, 3),
			ColumnwiseData: checktest.Zeros(tensor.F8E4M3, 40, 70), ColumnwiseScaleInv: checktest.Zeros(tensor.U8, 2, 70),
		}
	case quant.NVFP4Scaling:
		z := quant.Quantized{Data: checktest.Zeros(tensor.U8, 40, 35), ScaleInv: checktest.Zeros(tensor.F8E4M3, 40, 5), ColumnwiseData: checktest.Zeros(tensor.U8, 70, 20), ColumnwiseScaleInv: checktest.Zeros(tensor.F8E4M3, 70, 3), Amax: checktest.F32(1)}
		if square {
			z.ScaleInv, z.ColumnwiseScaleInv = checktest.Zeros(tensor.F8E4M3, 3, 5), checktest.Zeros(tensor.F8E4M3, 5, 3)
		}
		return z
	}
	return quant.Quantized{}
}

func quantizing(s quant.Scaling) func() quant.QuantizeArgs {
	return func() quant.QuantizeArgs {
		return quant.QuantizeArgs{Tensor: checktest.F32(5, 8, 70), Quantizer: quant.Quantizer{Scaling: s}, Output: outputs(s, false), Noop: checktest.F32(1)}
	}
}

func TestQuantize(t *testing.T) {
	type args = quant.QuantizeArgs
	checktest.Validation(t, quant.Quantize, quantizing(quant.DelayedScaling), []checktest.Refusal[args]{
		{Name: "delayed/no tensor", Edit: func(a *args) { a.Tensor = nil }, Operand: "tensor", Want: "a tensor"},
		{Name: "delayed/scalar", Edit: func(a *args) { a.Tensor = checktest.F32() }, Operand: "tensor", Want: "shape [.. cols]"},
		{Name: "delayed/dtype", Edit: func(a *args) { a.Tensor = checktest.Zeros(tensor.F8E4M3, 40, 70) }, Operand: "tensor", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "delayed/no scaling", Edit: func(a *args) { a.Quantizer.Scaling = quant.NoScaling }, Operand: "quantizer.scaling", Want: "delayed, current, block, mxfp8 or nvfp4"},
		{Name: "delayed/scaling", Edit: func(a *args) { a.Quantizer.Scaling = 6 }, Operand: "quantizer.scaling", Want: "a scaling of this package"},
		{Name: "delayed/pow2", Edit: func(a *args) { a.Quantizer.ForcePow2Scales = true }, Operand: "quantizer.force_pow_2_scales", Want: "current or block scaling"},
		{Name: "delayed/epsilon", Edit: func(a *args) { a.Quantizer.AmaxEpsilon = 1 }, Operand: "quantizer.amax_epsilon", Want: "current or block scaling"},
		{Name: "delayed/2d", Edit: func(a *args) { a.Quantizer.Block2D = true }, Operand: "quantizer.block_2d", Want: "block or nvfp4 scaling"},
		{Name: "delayed/stochastic", Edit: func(a *args) { a.Quantizer.Stochastic = true }, Operand: "quantizer.stochastic", Want: "nvfp4 scaling"},
		{Name: "delayed/no data", Edit: func(a *args) { a.Output.Data, a.Output.ColumnwiseData = nil, nil }, Operand: "output", Want: "data by rows, by columns, or both"},
		{Name: "delayed/dtype of data", Edit: func(a *args) { a.Output.Data = checktest.Zeros(tensor.U8, 40, 70) }, Operand: "output.data", Want: "dtype f8e4m3 or f8e5m2"},
		{Name: "delayed/shape of data", Edit: func(a *args) { a.Output.Data = checktest.Zeros(tensor.F8E4M3, 70, 40) }, Operand: "output.data", Want: "40 rows of 70"},
		{Name: "delayed/shape of columnwise", Edit: func(a *args) { a.Output.ColumnwiseData = checktest.Zeros(tensor.F8E4M3, 40, 70) }, Operand: "output.columnwise_data", Want: "70 rows of 40"},
		{Name: "delayed/two dtypes", Edit: func(a *args) { a.Output.ColumnwiseData = checktest.Zeros(tensor.F8E5M2, 70, 40) }, Operand: "output.columnwise_data", Want: "the dtype of output.data"},
		{Name: "delayed/no scale_inv", Edit: func(a *args) { a.Output.ScaleInv = nil }, Operand: "output.scale_inv", Want: "a tensor"},
		{Name: "delayed/two scales", Edit: func(a *args) { a.Output.Scale = checktest.F32(2) }, Operand: "output.scale", Want: "1 element (1)"},
		{Name: "delayed/amax of f64", Edit: func(a *args) { a.Output.Amax = checktest.Zeros(tensor.F64, 1) }, Operand: "output.amax", Want: "dtype f32"},
		{Name: "delayed/columnwise scale", Edit: func(a *args) { a.Output.ColumnwiseScaleInv = checktest.F32(1) }, Operand: "output.columnwise_scale_inv", Want: "nothing with this delayed scaling"},
		{Name: "delayed/noop", Edit: func(a *args) { a.Noop = checktest.I32(1) }, Operand: "noop", Want: "dtype f32"},
		{Name: "delayed/amax is scale", Edit: func(a *args) { a.Output.Amax = a.Output.Scale }, Operand: "output.amax", Want: "memory apart from output.scale"},
		{Name: "delayed/noop is amax", Edit: func(a *args) { a.Noop = a.Output.Amax }, Operand: "output.amax", Want: "memory apart from noop"},
	})
	checktest.Validation(t, quant.Quantize, quantizing(quant.CurrentScaling), []checktest.Refusal[args]{
		{Name: "current/epsilon", Edit: func(a *args) { a.Quantizer.AmaxEpsilon = -1 }, Operand: "quantizer.amax_epsilon", Want: "a number >= 0"},
		{Name: "current/epsilon of NaN", Edit: func(a *args) { a.Quantizer.AmaxEpsilon = float32(math.NaN()) }, Operand: "quantizer.amax_epsilon", Want: "a number >= 0"},
		{Name: "current/no amax", Edit: func(a *args) { a.Output.Amax = nil }, Operand: "output.amax", Want: "a tensor"},
	})
	checktest.Validation(t, quant.Quantize, quantizing(quant.BlockScaling), []checktest.Refusal[args]{
		{Name: "block/scale", Edit: func(a *args) { a.Output.Scale = checktest.F32(1) }, Operand: "output.scale", Want: "nothing with this block scaling"},
		{Name: "block/amax", Edit: func(a *args) { a.Output.Amax = checktest.F32(1) }, Operand: "output.amax", Want: "nothing with this block scaling"},
		{Name: "block/scales of blocks in 2d", Edit: func(a *args) { a.Quantizer.Block2D = true }, Operand: "output.scale_inv", Want: "1 rows of 1"},
		{Name: "block/dtype of scales", Edit: func(a *args) { a.Output.ScaleInv = checktest.Zeros(tensor.U8, 40, 1) }, Operand: "output.scale_inv", Want: "dtype f32"},
		{Name: "block/scales without data", Edit: func(a *args) { a.Output.Data = nil }, Operand: "output.scale_inv", Want: "nothing with this block scaling and without its data"},
		{Name: "block/no scales", Edit: func(a *args) { a.Output.ColumnwiseScaleInv = nil }, Operand: "output.columnwise_scale_inv", Want: "a tensor"},
	})
	checktest.Validation(t, quant.Quantize, quantizing(quant.MXFP8Scaling), []checktest.Refusal[args]{
		{Name: "mxfp8/scales", Edit: func(a *args) { a.Output.ScaleInv = checktest.Zeros(tensor.U8, 40, 2) }, Operand: "output.scale_inv", Want: "40 rows of 3"},
		{Name: "mxfp8/columnwise scales", Edit: func(a *args) { a.Output.ColumnwiseScaleInv = checktest.Zeros(tensor.U8, 70, 2) }, Operand: "output.columnwise_scale_inv", Want: "2 rows of 70"},
		{Name: "mxfp8/transposed", Edit: func(a *args) { a.Output.ColumnwiseData = checktest.Zeros(tensor.F8E4M3, 70, 40) }, Operand: "output.columnwise_data", Want: "40 rows of 70"},
	})
	checktest.Validation(t, quant.Quantize, quantizing(quant.NVFP4Scaling), []checktest.Refusal[args]{
		{Name: "nvfp4/fp8 data", Edit: func(a *args) { a.Output.Data = checktest.Zeros(tensor.F8E4M3, 40, 70) }, Operand: "output.data", Want: "dtype u8"},
		{Name: "nvfp4/unpacked", Edit: func(a *args) { a.Output.Data = checktest.Zeros(tensor.U8, 40, 70) }, Operand: "output.data", Want: "40 rows of 35"},
		{Name: "nvfp4/scales of e5m2", Edit: func(a *args) { a.Output.ScaleInv = checktest.Zeros(tensor.F8E5M2, 40, 5) }, Operand: "output.scale_inv", Want: "dtype f32, f8e4m3 or u8"},
		{Name: "nvfp4/odd rows", Edit: func(a *args) { a.Tensor = checktest.F32(40, 71) }, Operand: "output.data", Want: "an even length"},
		{Name: "nvfp4/no amax", Edit: func(a *args) { a.Output.Amax = nil }, Operand: "output.amax", Want: "a tensor"},
		{Name: "nvfp4/data twice", Edit: func(a *args) {
			a.Tensor, a.Output.Data, a.Output.ScaleInv = checktest.F32(2, 2), checktest.Zeros(tensor.U8, 2, 1), checktest.Zeros(tensor.F8E4M3, 2, 1)
			a.Output.ColumnwiseData, a.Output.ColumnwiseScaleInv = a.Output.Data, checktest.Zeros(tensor.F8E4M3, 2, 1)
		}, Operand: "output.columnwise_data", Want: "memory apart from output.data"},
	})
	checktest.Accepted(t, quant.Quantize, quantizing(quant.NVFP4Scaling), map[string]func(a *args){
		"2d":      func(a *args) { a.Quantizer.Block2D, a.Output = true, outputs(quant.NVFP4Scaling, true) },
		"rows":    func(a *args) { a.Output.ColumnwiseData, a.Output.ColumnwiseScaleInv = nil, nil },
		"columns": func(a *args) { a.Output.Data, a.Output.ScaleInv = nil, nil },
		"random":  func(a *args) { a.Quantizer.Stochastic = true },
		"no noop": func(a *args) { a.Noop = nil },
	})

	a := quantizing(quant.DelayedScaling)()
	checktest.Operands(t, quant.Quantize, a, checktest.Access{
		"tensor": opregistry.AccessRead, "noop": opregistry.AccessRead, "output.data": opregistry.AccessUpdate, "output.columnwise_data": opregistry.AccessUpdate,
		"output.scale_inv": opregistry.AccessUpdate, "output.scale": opregistry.AccessRead, "output.amax": opregistry.AccessUpdate,
	})
	a.Noop = nil
	checktest.Operands(t, quant.Quantize, a, checktest.Access{
		"tensor": opregistry.AccessRead, "output.data": opregistry.AccessWrite, "output.columnwise_data": opregistry.AccessWrite,
		"output.scale_inv": opregistry.AccessWrite, "output.scale": opregistry.AccessRead, "output.amax": opregistry.AccessUpdate,
	})
	b := quantizing(quant.NVFP4Scaling)()
	b.Noop = nil
	checktest.Operands(t, quant.Quantize, b, checktest.Access{
		"tensor": opregistry.AccessRead, "output.data": opregistry.AccessWrite, "output.columnwise_data": opregistry.AccessWrite,
		"output.scale_inv": opregistry.AccessWrite, "output.columnwise_scale_inv": opregistry.AccessWrite, "output.amax": opregistry.AccessWrite,
	})
}

func TestDequantize(t *testing.T) {
	type args = quant.DequantizeArgs
	good := func() args {
		return args{Input: outputs(quant.NVFP4Scaling, false), Scaling: quant.NVFP4Scaling, Output: checktest.Zeros(tensor.BF16, 40, 70)}
	}
	checktest.Validation(t, quant.Dequantize, good, []checktest.Refusal[args]{
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "no scaling", Edit: func(a *args) { a.Scaling = quant.NoScaling }, Operand: "scaling", Want: "delayed, current, block, mxfp8 or nvfp4"},
		{Name: "scaling", Edit: func(a *args) { a.Scaling = -1 }, Operand: "scaling", Want: "a scaling of this package"},
		{Name: "no data", Edit: func(a *args) { a.Input = quant.Quantized{} }, Operand: "input", Want: "data by rows, by columns, or both"},
		{Name: "no amax", Edit: func(a *args) { a.Input.Amax = nil }, Operand: "input.amax", Want: "a tensor"},
		{Name: "scales of 2d", Edit: func(a *args) { a.Block2D = true }, Operand: "input.scale_inv", Want: "3 rows of 5"},
		{Name: "shape", Edit: func(a *args) { a.Output = checktest.F32(40, 64) }, Operand: "input.data", Want: "40 rows of 32"},
	})
	checktest.Accepted(t, quant.Dequantize, good, map[string]func(a *args){
		"delayed, amax and scale left over": func(a *args) { a.Input, a.Scaling = outputs(quant.DelayedScaling, false), quant.DelayedScaling },
		"current, only what is needed": func(a *args) {
			a.Input, a.Scaling = quant.Quantized{ColumnwiseData: checktest.Zeros(tensor.F8E5M2, 70, 40), ScaleInv: checktest.F32(1)}, quant.CurrentScaling
		},
		"2d": func(a *args) {
			a.Input, a.Scaling, a.Block2D = outputs(quant.BlockScaling, true), quant.BlockScaling, true
		},
	})
}

func TestBgradQuantize(t *testing.T) {
	type args = quant.BgradQuantizeArgs
	good := func() args {
		return args{Input: checktest.F32(40, 70), Quantizer: quant.Quantizer{Scaling: quant.MXFP8Scaling}, Output: outputs(quant.MXFP8Scaling, false), DBias: checktest.F32(70)}
	}
	checktest.Validation(t, quant.BgradQuantize, good, []checktest.Refusal[args]{
		{Name: "no dbias", Edit: func(a *args) { a.DBias = nil }, Operand: "dbias", Want: "a tensor"},
		{Name: "dtype of dbias", Edit: func(a *args) { a.DBias = checktest.Zeros(tensor.BF16, 70) }, Operand: "dbias", Want: "the dtype of input"},
		{Name: "length of dbias", Edit: func(a *args) { a.DBias = checktest.F32(40) }, Operand: "dbias", Want: "70 elements"},
		{Name: "dbias is dy", Edit: func(a *args) { a.DBias = checktest.Flat(a.Input, 70) }, Operand: "dbias", Want: "memory apart from input"},
		{Name: "outputs of nothing", Edit: func(a *args) { a.Quantizer = quant.Quantizer{} }, Operand: "output.data", Want: "nothing with this none scaling"},
	})
	checktest.Accepted(t, quant.BgradQuantize, good, map[string]func(a *args){
		"no scaling": func(a *args) { a.Quantizer, a.Output = quant.Quantizer{}, quant.Quantized{} },
	})
}

func TestQuantizeMany(t *testing.T) {
	current := quant.Quantizer{Scaling: quant.CurrentScaling}
	out := func(rows int) quant.Quantized {
		return quant.Quantized{Data: checktest.Zeros(tensor.F8E4M3, rows, 4), ScaleInv: checktest.F32(1), Scale: checktest.F32(1), Amax: checktest.F32(1)}
	}
	type multi = quant.MultiTensorQuantizeArgs
	checktest.Validation(t, quant.MultiTensorQuantize, func() multi {
		return multi{TensorList: []*tensor.Tensor{checktest.F32(2, 4), checktest.F32(3, 4)}, QuantizerList: []quant.Quantizer{current, current}, OutputList: []quant.Quantized{out(2), out(3)}}
	}, []checktest.Refusal[multi]{
		{Name: "multi/quantizers", Edit: func(a *multi) { a.QuantizerList = a.QuantizerList[:1] }, Operand: "quantizer_list", Want: "2 elements, as tensor_list"},
		{Name: "multi/outputs", Edit: func(a *multi) { a.OutputList = nil }, Operand: "output_list", Want: "2 elements, as tensor_list"},
		{Name: "multi/nil", Edit: func(a *multi) { a.TensorList[1] = nil }, Operand: "tensor_list[1]", Want: "a tensor"},
		{Name: "multi/shape", Edit: func(a *multi) { a.OutputList[1].Data = checktest.Zeros(tensor.F8E4M3, 2, 4) }, Operand: "output_list[1].data", Want: "3 rows of 4"},
		{Name: "multi/no scaling", Edit: func(a *multi) { a.QuantizerList[0] = quant.Quantizer{} }, Operand: "quantizer_list[0].scaling", Want: "delayed, current"},
		{Name: "multi/overlap", Edit: func(a *multi) { a.OutputList[1].Amax = a.OutputList[0].Scale }, Operand: "output_list[1].amax", Want: "memory apart from output_list[0].scale"},
	})
	type split = quant.SplitQuantizeArgs
	checktest.Validation(t, quant.SplitQuantize, func() split {
		return split{Tensor: checktest.F32(5, 1, 4), SplitSections: []int{2, 3}, QuantizerList: []quant.Quantizer{current, current}, OutputList: []quant.Quantized{out(2), out(3)}}
	}, []checktest.Refusal[split]{
		{Name: "split/vector", Edit: func(a *split) { a.Tensor = checktest.F32(5) }, Operand: "tensor", Want: "at least 2 axes"},
		{Name: "split/too much", Edit: func(a *split) { a.SplitSections[1] = 4 }, Operand: "split_sections[1]", Want: "a length in [0, 3]"},
		{Name: "split/negative", Edit: func(a *split) { a.SplitSections[0] = -1 }, Operand: "split_sections[0]", Want: "a length in [0, 5]"},
		{Name: "split/overflow", Edit: func(a *split) { a.SplitSections[1] = math.MaxInt }, Operand: "split_sections[1]", Want: "a length in [0, 3]"},
		{Name: "split/rest", Edit: func(a *split) { a.SplitSections[1] = 2 }, Operand: "split_sections", Want: "lengths that add up to 5"},
		{Name: "split/outputs", Edit: func(a *split) { a.OutputList = a.OutputList[:1] }, Operand: "output_list", Want: "2 elements, as split_sections"},
		{Name: "split/quantizers", Edit: func(a *split) { a.QuantizerList = nil }, Operand: "quantizer_list", Want: "2 elements, as split_sections"},
		{Name: "split/quantizer", Edit: func(a *split) { a.QuantizerList[1] = quant.Quantizer{} }, Operand: "quantizer_list[1].scaling", Want: "delayed, current"},
		{Name: "split/shape", Edit: func(a *split) { a.OutputList[0].Data = checktest.Zeros(tensor.F8E4M3, 3, 4) }, Operand: "output_list[0].data", Want: "2 rows of 4"},
		{Name: "split/overlap", Edit: func(a *split) { a.OutputList[1].Scale = a.OutputList[0].Scale }, Operand: "output_list[1].scale", Want: "memory apart from output_list[0].scale"},
	})
	type group = quant.BgradGroupQuantizeArgs
	checktest.Validation(t, quant.BgradGroupQuantize, func() group {
		return group{Tensor: checktest.F32(5, 4), FirstDims: []int{2, 3}, Quantizer: current, OutputList: []quant.Quantized{out(2), out(3)}, DBias: checktest.F32(2, 4)}
	}, []checktest.Refusal[group]{
		{Name: "group/quantizer", Edit: func(a *group) { a.Quantizer = quant.Quantizer{} }, Operand: "quantizer.scaling", Want: "delayed, current"},
		{Name: "group/rest", Edit: func(a *group) { a.FirstDims[1] = 0 }, Operand: "first_dims", Want: "lengths that add up to 5"},
		{Name: "group/shape of dbias", Edit: func(a *group) { a.DBias = checktest.F32(4, 2) }, Operand: "dbias", Want: "2 rows of 4"},
		{Name: "group/dtype of dbias", Edit: func(a *group) { a.DBias = checktest.Zeros(tensor.F16, 2, 4) }, Operand: "dbias", Want: "the dtype of tensor"},
		{Name: "group/overlap", Edit: func(a *group) { a.DBias = checktest.Flat(a.Tensor, 8); a.DBias, _ = a.DBias.Reshape(2, 4) }, Operand: "dbias", Want: "memory apart from tensor"},
	})
	assert.NoError(t, quant.GroupQuantize.Validate(quant.GroupQuantizeArgs{Tensor: checktest.F32(0, 4), Quantizer: current}), "no sections")
	type cast = quant.CastToFP8Args
	checktest.Validation(t, quant.CastToFP8, func() cast {
		return cast{Input: checktest.F32(2, 3), Output: checktest.Zeros(tensor.F8E5M2, 2, 3), FP8Tensor: 2, FP8MetaTensor: quant.FP8TensorMeta{Scale: checktest.F32(3), ScaleInv: checktest.F32(3), AmaxHistory: checktest.F32(4, 3)}}
	}, []checktest.Refusal[cast]{
		{Name: "cast/index", Edit: func(a *cast) { a.FP8Tensor = 3 }, Operand: "fp8_tensor", Want: "an index in [0, 3)"},
		{Name: "cast/negative index", Edit: func(a *cast) { a.FP8Tensor = -1 }, Operand: "fp8_tensor", Want: "an index in [0, 3)"},
		{Name: "cast/history", Edit: func(a *cast) { a.FP8MetaTensor.AmaxHistory = checktest.F32(0, 3) }, Operand: "fp8_meta_tensor.amax_history", Want: "shape [length>0 3]"},
		{Name: "cast/scale_inv", Edit: func(a *cast) { a.FP8MetaTensor.ScaleInv = checktest.F32(2) }, Operand: "fp8_meta_tensor.scale_inv", Want: "the shape of fp8_meta_tensor.scale"},
		{Name: "cast/no scale", Edit: func(a *cast) { a.FP8MetaTensor.Scale = nil }, Operand: "fp8_meta_tensor.scale", Want: "a tensor"},
		{Name: "cast/dtype", Edit: func(a *cast) { a.Output = checktest.F32(2, 3) }, Operand: "output", Want: "dtype f8e4m3 or f8e5m2"},
		{Name: "cast/overlap", Edit: func(a *cast) { a.FP8MetaTensor.ScaleInv = a.FP8MetaTensor.Scale }, Operand: "fp8_meta_tensor.scale_inv", Want: "memory apart from fp8_meta_tensor.scale"},
	})
}

func TestScalingNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[quant.Scaling]string{
		quant.NoScaling: "none", quant.DelayedScaling: "delayed", quant.CurrentScaling: "current", quant.BlockScaling: "block", quant.MXFP8Scaling: "mxfp8",
		quant.NVFP4Scaling: "nvfp4", 6: "scaling(6)", -1: "scaling(-1)",
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, "most_recent", quant.AmaxMostRecent.String())
	assert.Equal(t, "max", quant.AmaxMax.String())
	assert.Equal(t, "amax_compute_algo(0)", quant.AmaxComputeAlgo(0).String())
}
