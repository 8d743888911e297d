package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FP8TensorMeta is the state of delayed scaling of n tensors.
type FP8TensorMeta struct {
	Scale       *tensor.Tensor `op:"0 scale read f32 [n]"`
	ScaleInv    *tensor.Tensor `op:"1 scale_inv update f32 [n]"`
	AmaxHistory *tensor.Tensor `op:"2 amax_history update f32 [length>0 n]"`
}

// CastToFP8Args are the arguments of CastToFP8.
type CastToFP8Args struct {
	Input         *tensor.Tensor `op:"0 input read compute [..]"`
	FP8MetaTensor FP8TensorMeta  `op:"1 fp8_meta_tensor"`
	FP8Tensor     int            `op:"4 fp8_tensor"`
	Output        *tensor.Tensor `op:"5 output write fp8 [..]"`
}

// CastToFP8 is Quantize by DelayedScaling with entry k of the state of n tensors.
var CastToFP8 = opregistry.NewOp("cast_to_fp8", opregistry.Schema[CastToFP8Args]{
	Doc: "rounds a tensor to fp8 with one of many delayed scales",
	Formula: `
		cast_to_fp8 is quantize by delayed scaling with entry k of the state of n tensors:

		  out = fp8(x·scale[k])      scale_inv[k] = 1/scale[k]
		  amax_history[0,k] = max(amax_history[0,k], max|x|)

		Rounding is that of quantize; NaNs are ignored in the amax.

		Arguments:

		  fp8_tensor  which of the n tensors

		Example:

		  input=[1 -2 0.3] fp8_meta_tensor.scale=[1 2] fp8_meta_tensor.scale_inv=[1 1]
		    fp8_meta_tensor.amax_history=[[0 1]] fp8_tensor=1 → fp8_meta_tensor.scale_inv=[1 0.5]
		    fp8_meta_tensor.amax_history=[[0 2]] output=f8e4m3[2 -4 0.625]
	`,
	Check: func(c *opregistry.Check, a *CastToFP8Args) {
		if n := a.FP8MetaTensor.Scale.NumElements(); a.FP8Tensor < 0 || a.FP8Tensor >= n {
			c.Fail("fp8_tensor", "an index in [0, "+check.Itoa(n)+")", "%d", a.FP8Tensor)
		}
	},
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "as quantize"},
})
