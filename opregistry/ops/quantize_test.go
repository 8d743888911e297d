package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// outputs returns what a scaling writes for a matrix [40, 70].
func outputs(s ops.Scaling, square bool) ops.Quantized {
	switch s {
	case ops.DelayedScaling, ops.CurrentScaling:
		return ops.Quantized{Data: of(tensor.F8E4M3, 40, 70), ColumnwiseData: of(tensor.F8E4M3, 70, 40), ScaleInv: f32(1), Scale: f32(1), Amax: f32(1)}
	case ops.BlockScaling:
		if square {
			return ops.Quantized{Data: of(tensor.F8E5M2, 40, 70), ScaleInv: f32(1, 1), ColumnwiseData: of(tensor.F8E5M2, 70, 40), ColumnwiseScaleInv: f32(1, 1)}
		}
		return ops.Quantized{Data: of(tensor.F8E5M2, 40, 70), ScaleInv: f32(40, 1), ColumnwiseData: of(tensor.F8E5M2, 70, 40), ColumnwiseScaleInv: f32(70, 1)}
	case ops.MXFP8Scaling:
		return ops.Quantized{
			Data: of(tensor.F8E4M3, 40, 70), ScaleInv: of(tensor.U8, 40, 3),
			ColumnwiseData: of(tensor.F8E4M3, 40, 70), ColumnwiseScaleInv: of(tensor.U8, 2, 70),
		}
	case ops.NVFP4Scaling:
		z := ops.Quantized{Data: of(tensor.U8, 40, 35), ScaleInv: of(tensor.F8E4M3, 40, 5), ColumnwiseData: of(tensor.U8, 70, 20), ColumnwiseScaleInv: of(tensor.F8E4M3, 70, 3), Amax: f32(1)}
		if square {
			z.ScaleInv, z.ColumnwiseScaleInv = of(tensor.F8E4M3, 3, 5), of(tensor.F8E4M3, 5, 3)
		}
		return z
	}
	return ops.Quantized{}
}

func quantizing(s ops.Scaling) func() ops.QuantizeArgs {
	return func() ops.QuantizeArgs {
		return ops.QuantizeArgs{Tensor: f32(5, 8, 70), Quantizer: ops.Quantizer{Scaling: s}, Output: outputs(s, false), Noop: f32(1)}
	}
}

func TestQuantize(t *testing.T) {
	type args = ops.QuantizeArgs
	testValidation(t, ops.Quantize, quantizing(ops.DelayedScaling), []refusal[args]{
		{"delayed/no tensor", func(a *args) { a.Tensor = nil }, "tensor", "a tensor"},
		{"delayed/scalar", func(a *args) { a.Tensor = f32() }, "tensor", "at least 1 axes"},
		{"delayed/dtype", func(a *args) { a.Tensor = of(tensor.F8E4M3, 40, 70) }, "tensor", "dtype f32, bf16, f16 or f64"},
		{"delayed/no scaling", func(a *args) { a.Quantizer.Scaling = ops.NoScaling }, "quantizer.scaling", "delayed, current, block, mxfp8 or nvfp4"},
		{"delayed/scaling", func(a *args) { a.Quantizer.Scaling = 6 }, "quantizer.scaling", "a scaling of this package"},
		{"delayed/pow2", func(a *args) { a.Quantizer.ForcePow2Scales = true }, "quantizer.force_pow_2_scales", "current or block scaling"},
		{"delayed/epsilon", func(a *args) { a.Quantizer.AmaxEpsilon = 1 }, "quantizer.amax_epsilon", "current or block scaling"},
		{"delayed/2d", func(a *args) { a.Quantizer.Block2D = true }, "block_2d", "block or nvfp4 scaling"},
		{"delayed/stochastic", func(a *args) { a.Quantizer.Stochastic = true }, "quantizer.stochastic", "nvfp4 scaling"},
		{"delayed/no data", func(a *args) { a.Output.Data, a.Output.ColumnwiseData = nil, nil }, "output", "data by rows, by columns, or both"},
		{"delayed/dtype of data", func(a *args) { a.Output.Data = of(tensor.U8, 40, 70) }, "output.data", "dtype f8e4m3 or f8e5m2"},
		{"delayed/shape of data", func(a *args) { a.Output.Data = of(tensor.F8E4M3, 70, 40) }, "output.data", "40 rows of 70"},
		{"delayed/shape of columnwise", func(a *args) { a.Output.ColumnwiseData = of(tensor.F8E4M3, 40, 70) }, "output.columnwise_data", "70 rows of 40"},
		{"delayed/two dtypes", func(a *args) { a.Output.ColumnwiseData = of(tensor.F8E5M2, 70, 40) }, "output.columnwise_data", "the dtype of output.data"},
		{"delayed/no scale_inv", func(a *args) { a.Output.ScaleInv = nil }, "output.scale_inv", "a tensor"},
		{"delayed/two scales", func(a *args) { a.Output.Scale = f32(2) }, "output.scale", "1 elements"},
		{"delayed/amax of f64", func(a *args) { a.Output.Amax = of(tensor.F64, 1) }, "output.amax", "dtype f32"},
		{"delayed/columnwise scale", func(a *args) { a.Output.ColumnwiseScaleInv = f32(1) }, "output.columnwise_scale_inv", "nothing with this delayed scaling"},
		{"delayed/noop", func(a *args) { a.Noop = i32(1) }, "noop", "dtype f32"},
		{"delayed/amax is scale", func(a *args) { a.Output.Amax = a.Output.Scale }, "output.amax", "memory apart from output.scale"},
		{"delayed/noop is amax", func(a *args) { a.Noop = a.Output.Amax }, "output.amax", "memory apart from noop"},
	})
	testValidation(t, ops.Quantize, quantizing(ops.CurrentScaling), []refusal[args]{
		{"current/epsilon", func(a *args) { a.Quantizer.AmaxEpsilon = -1 }, "quantizer.amax_epsilon", "a number >= 0"},
		{"current/epsilon of NaN", func(a *args) { a.Quantizer.AmaxEpsilon = float32(math.NaN()) }, "quantizer.amax_epsilon", "a number >= 0"},
		{"current/no amax", func(a *args) { a.Output.Amax = nil }, "output.amax", "a tensor"},
	})
	testValidation(t, ops.Quantize, quantizing(ops.BlockScaling), []refusal[args]{
		{"block/scale", func(a *args) { a.Output.Scale = f32(1) }, "output.scale", "nothing with this block scaling"},
		{"block/amax", func(a *args) { a.Output.Amax = f32(1) }, "output.amax", "nothing with this block scaling"},
		{"block/scales of blocks in 2d", func(a *args) { a.Quantizer.Block2D = true }, "output.scale_inv", "1 rows of 1"},
		{"block/dtype of scales", func(a *args) { a.Output.ScaleInv = of(tensor.U8, 40, 1) }, "output.scale_inv", "dtype f32"},
		{"block/scales without data", func(a *args) { a.Output.Data = nil }, "output.scale_inv", "nothing with this block scaling and without its data"},
		{"block/no scales", func(a *args) { a.Output.ColumnwiseScaleInv = nil }, "output.columnwise_scale_inv", "a tensor"},
	})
	testValidation(t, ops.Quantize, quantizing(ops.MXFP8Scaling), []refusal[args]{
		{"mxfp8/scales", func(a *args) { a.Output.ScaleInv = of(tensor.U8, 40, 2) }, "output.scale_inv", "40 rows of 3"},
		{"mxfp8/columnwise scales", func(a *args) { a.Output.ColumnwiseScaleInv = of(tensor.U8, 70, 2) }, "output.columnwise_scale_inv", "2 rows of 70"},
		{"mxfp8/transposed", func(a *args) { a.Output.ColumnwiseData = of(tensor.F8E4M3, 70, 40) }, "output.columnwise_data", "40 rows of 70"},
	})
	testValidation(t, ops.Quantize, quantizing(ops.NVFP4Scaling), []refusal[args]{
		{"nvfp4/fp8 data", func(a *args) { a.Output.Data = of(tensor.F8E4M3, 40, 70) }, "output.data", "dtype u8"},
		{"nvfp4/unpacked", func(a *args) { a.Output.Data = of(tensor.U8, 40, 70) }, "output.data", "40 rows of 35"},
		{"nvfp4/scales of e5m2", func(a *args) { a.Output.ScaleInv = of(tensor.F8E5M2, 40, 5) }, "output.scale_inv", "dtype f8e4m3"},
		{"nvfp4/odd rows", func(a *args) { a.Tensor = f32(40, 71) }, "output.data", "an even length"},
		{"nvfp4/no amax", func(a *args) { a.Output.Amax = nil }, "output.amax", "a tensor"},
		{"nvfp4/data twice", func(a *args) {
			a.Tensor, a.Output.Data, a.Output.ScaleInv = f32(2, 2), of(tensor.U8, 2, 1), of(tensor.F8E4M3, 2, 1)
			a.Output.ColumnwiseData, a.Output.ColumnwiseScaleInv = a.Output.Data, of(tensor.F8E4M3, 2, 1)
		}, "output.columnwise_data", "memory apart from output.data"},
	})
	testAccepted(t, ops.Quantize, quantizing(ops.NVFP4Scaling), map[string]func(a *args){
		"2d":      func(a *args) { a.Quantizer.Block2D, a.Output = true, outputs(ops.NVFP4Scaling, true) },
		"rows":    func(a *args) { a.Output.ColumnwiseData, a.Output.ColumnwiseScaleInv = nil, nil },
		"columns": func(a *args) { a.Output.Data, a.Output.ScaleInv = nil, nil },
		"random":  func(a *args) { a.Quantizer.Stochastic = true },
		"no noop": func(a *args) { a.Noop = nil },
	})

	a := quantizing(ops.DelayedScaling)()
	testOperands(t, ops.Quantize, a, access{
		"tensor": opregistry.AccessRead, "noop": opregistry.AccessRead, "output.data": opregistry.AccessUpdate, "output.columnwise_data": opregistry.AccessUpdate,
		"output.scale_inv": opregistry.AccessUpdate, "output.scale": opregistry.AccessRead, "output.amax": opregistry.AccessUpdate,
	})
	a.Noop = nil
	testOperands(t, ops.Quantize, a, access{
		"tensor": opregistry.AccessRead, "output.data": opregistry.AccessWrite, "output.columnwise_data": opregistry.AccessWrite,
		"output.scale_inv": opregistry.AccessWrite, "output.scale": opregistry.AccessRead, "output.amax": opregistry.AccessUpdate,
	})
	b := quantizing(ops.NVFP4Scaling)()
	b.Noop = nil
	testOperands(t, ops.Quantize, b, access{
		"tensor": opregistry.AccessRead, "output.data": opregistry.AccessWrite, "output.columnwise_data": opregistry.AccessWrite,
		"output.scale_inv": opregistry.AccessWrite, "output.columnwise_scale_inv": opregistry.AccessWrite, "output.amax": opregistry.AccessWrite,
	})
}

func TestDequantize(t *testing.T) {
	type args = ops.DequantizeArgs
	good := func() args {
		return args{Input: outputs(ops.NVFP4Scaling, false), Scaling: ops.NVFP4Scaling, Output: of(tensor.BF16, 40, 70)}
	}
	testValidation(t, ops.Dequantize, good, []refusal[args]{
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"no scaling", func(a *args) { a.Scaling = ops.NoScaling }, "scaling", "delayed, current, block, mxfp8 or nvfp4"},
		{"scaling", func(a *args) { a.Scaling = -1 }, "scaling", "a scaling of this package"},
		{"no data", func(a *args) { a.Input = ops.Quantized{} }, "input", "data by rows, by columns, or both"},
		{"no amax", func(a *args) { a.Input.Amax = nil }, "input.amax", "a tensor"},
		{"scales of 2d", func(a *args) { a.Block2D = true }, "input.scale_inv", "3 rows of 5"},
		{"shape", func(a *args) { a.Output = f32(40, 64) }, "input.data", "40 rows of 32"},
	})
	testAccepted(t, ops.Dequantize, good, map[string]func(a *args){
		"delayed, amax and scale left over": func(a *args) { a.Input, a.Scaling = outputs(ops.DelayedScaling, false), ops.DelayedScaling },
		"current, only what is needed": func(a *args) {
			a.Input, a.Scaling = ops.Quantized{ColumnwiseData: of(tensor.F8E5M2, 70, 40), ScaleInv: f32(1)}, ops.CurrentScaling
		},
		"2d": func(a *args) { a.Input, a.Scaling, a.Block2D = outputs(ops.BlockScaling, true), ops.BlockScaling, true },
	})
}

func TestBgradQuantize(t *testing.T) {
	type args = ops.BgradQuantizeArgs
	good := func() args {
		return args{Input: f32(40, 70), Quantizer: ops.Quantizer{Scaling: ops.MXFP8Scaling}, Output: outputs(ops.MXFP8Scaling, false), DBias: f32(70)}
	}
	testValidation(t, ops.BgradQuantize, good, []refusal[args]{
		{"no dbias", func(a *args) { a.DBias = nil }, "dbias", "a tensor"},
		{"dtype of dbias", func(a *args) { a.DBias = of(tensor.BF16, 70) }, "dbias", "the dtype of input"},
		{"length of dbias", func(a *args) { a.DBias = f32(40) }, "dbias", "70 elements"},
		{"dbias is dy", func(a *args) { a.DBias = flat(a.Input, 70) }, "dbias", "memory apart from input"},
		{"outputs of nothing", func(a *args) { a.Quantizer = ops.Quantizer{} }, "output.data", "nothing with this none scaling"},
	})
	testAccepted(t, ops.BgradQuantize, good, map[string]func(a *args){
		"no scaling": func(a *args) { a.Quantizer, a.Output = ops.Quantizer{}, ops.Quantized{} },
	})
}

func TestQuantizeMany(t *testing.T) {
	current := ops.Quantizer{Scaling: ops.CurrentScaling}
	out := func(rows int) ops.Quantized {
		return ops.Quantized{Data: of(tensor.F8E4M3, rows, 4), ScaleInv: f32(1), Scale: f32(1), Amax: f32(1)}
	}
	type multi = ops.MultiTensorQuantizeArgs
	testValidation(t, ops.MultiTensorQuantize, func() multi {
		return multi{TensorList: []*tensor.Tensor{f32(2, 4), f32(3, 4)}, QuantizerList: []ops.Quantizer{current, current}, OutputList: []ops.Quantized{out(2), out(3)}}
	}, []refusal[multi]{
		{"multi/quantizers", func(a *multi) { a.QuantizerList = a.QuantizerList[:1] }, "quantizer_list", "2 elements, as tensor_list"},
		{"multi/outputs", func(a *multi) { a.OutputList = nil }, "output_list", "2 elements, as tensor_list"},
		{"multi/nil", func(a *multi) { a.TensorList[1] = nil }, "tensor_list[1]", "a tensor"},
		{"multi/shape", func(a *multi) { a.OutputList[1].Data = of(tensor.F8E4M3, 2, 4) }, "output_list[1].data", "3 rows of 4"},
		{"multi/no scaling", func(a *multi) { a.QuantizerList[0] = ops.Quantizer{} }, "quantizer_list[0].scaling", "delayed, current"},
		{"multi/overlap", func(a *multi) { a.OutputList[1].Amax = a.OutputList[0].Scale }, "output_list[1].amax", "memory apart from output_list[0].scale"},
	})
	type split = ops.SplitQuantizeArgs
	testValidation(t, ops.SplitQuantize, func() split {
		return split{Tensor: f32(5, 1, 4), SplitSections: []int{2, 3}, QuantizerList: []ops.Quantizer{current, current}, OutputList: []ops.Quantized{out(2), out(3)}}
	}, []refusal[split]{
		{"split/vector", func(a *split) { a.Tensor = f32(5) }, "tensor", "at least 2 axes"},
		{"split/too much", func(a *split) { a.SplitSections[1] = 4 }, "split_sections[1]", "a length in [0, 3]"},
		{"split/negative", func(a *split) { a.SplitSections[0] = -1 }, "split_sections[0]", "a length in [0, 5]"},
		{"split/overflow", func(a *split) { a.SplitSections[1] = math.MaxInt }, "split_sections[1]", "a length in [0, 3]"},
		{"split/rest", func(a *split) { a.SplitSections[1] = 2 }, "split_sections", "lengths that add up to 5"},
		{"split/outputs", func(a *split) { a.OutputList = a.OutputList[:1] }, "output_list", "2 elements, as split_sections"},
		{"split/quantizers", func(a *split) { a.QuantizerList = nil }, "quantizer_list", "2 elements, as split_sections"},
		{"split/quantizer", func(a *split) { a.QuantizerList[1] = ops.Quantizer{} }, "quantizer_list[1].scaling", "delayed, current"},
		{"split/shape", func(a *split) { a.OutputList[0].Data = of(tensor.F8E4M3, 3, 4) }, "output_list[0].data", "2 rows of 4"},
		{"split/overlap", func(a *split) { a.OutputList[1].Scale = a.OutputList[0].Scale }, "output_list[1].scale", "memory apart from output_list[0].scale"},
	})
	type group = ops.BgradGroupQuantizeArgs
	testValidation(t, ops.BgradGroupQuantize, func() group {
		return group{Tensor: f32(5, 4), FirstDims: []int{2, 3}, Quantizer: current, OutputList: []ops.Quantized{out(2), out(3)}, DBias: f32(2, 4)}
	}, []refusal[group]{
		{"group/quantizer", func(a *group) { a.Quantizer = ops.Quantizer{} }, "quantizer.scaling", "delayed, current"},
		{"group/rest", func(a *group) { a.FirstDims[1] = 0 }, "first_dims", "lengths that add up to 5"},
		{"group/shape of dbias", func(a *group) { a.DBias = f32(4, 2) }, "dbias", "2 rows of 4"},
		{"group/dtype of dbias", func(a *group) { a.DBias = of(tensor.F16, 2, 4) }, "dbias", "the dtype of tensor"},
		{"group/overlap", func(a *group) { a.DBias = flat(a.Tensor, 8); a.DBias, _ = a.DBias.Reshape(2, 4) }, "dbias", "memory apart from tensor"},
	})
	assert.NoError(t, ops.GroupQuantize.Validate(ops.GroupQuantizeArgs{Tensor: f32(0, 4), Quantizer: current}), "no sections")
	type cast = ops.CastToFP8Args
	testValidation(t, ops.CastToFP8, func() cast {
		return cast{Input: f32(2, 3), Output: of(tensor.F8E5M2, 2, 3), FP8Tensor: 2, FP8MetaTensor: ops.FP8TensorMeta{Scale: f32(3), ScaleInv: f32(3), AmaxHistory: f32(4, 3)}}
	}, []refusal[cast]{
		{"cast/index", func(a *cast) { a.FP8Tensor = 3 }, "fp8_tensor", "an index in [0, 3)"},
		{"cast/negative index", func(a *cast) { a.FP8Tensor = -1 }, "fp8_tensor", "an index in [0, 3)"},
		{"cast/history", func(a *cast) { a.FP8MetaTensor.AmaxHistory = f32(0, 3) }, "fp8_meta_tensor.amax_history", "at least one row of 3"},
		{"cast/scale_inv", func(a *cast) { a.FP8MetaTensor.ScaleInv = f32(2) }, "fp8_meta_tensor.scale_inv", "the shape of fp8_meta_tensor.scale"},
		{"cast/no scale", func(a *cast) { a.FP8MetaTensor.Scale = nil }, "fp8_meta_tensor.scale", "a tensor"},
		{"cast/dtype", func(a *cast) { a.Output = f32(2, 3) }, "output", "dtype f8e4m3 or f8e5m2"},
		{"cast/overlap", func(a *cast) { a.FP8MetaTensor.ScaleInv = a.FP8MetaTensor.Scale }, "fp8_meta_tensor.scale_inv", "memory apart from fp8_meta_tensor.scale"},
	})
}

func TestScalingNames(t *testing.T) {
	t.Parallel()
	for s, want := range map[ops.Scaling]string{
		ops.NoScaling: "none", ops.DelayedScaling: "delayed", ops.CurrentScaling: "current", ops.BlockScaling: "block", ops.MXFP8Scaling: "mxfp8",
		ops.NVFP4Scaling: "nvfp4", 6: "scaling(6)", -1: "scaling(-1)",
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, "most_recent", ops.AmaxMostRecent.String())
	assert.Equal(t, "max", ops.AmaxMax.String())
	assert.Equal(t, "amax_compute_algo(0)", ops.AmaxComputeAlgo(0).String())
}
