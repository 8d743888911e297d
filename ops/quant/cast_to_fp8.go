package quant

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FP8TensorMeta is the state of delayed scaling of n tensors.
type FP8TensorMeta struct {
	Scale       *tensor.Tensor // f32 [n]
	ScaleInv    *tensor.Tensor // f32 [n]
	AmaxHistory *tensor.Tensor // f32 [length, n]
}

// CastToFP8Args are the arguments of CastToFP8.
type CastToFP8Args struct {
	Input         *tensor.Tensor // any compute dtype
	FP8MetaTensor FP8TensorMeta
	FP8Tensor     int            // which of the n tensors
	Output        *tensor.Tensor // an fp8 dtype, shape of input
}

// CastToFP8 is Quantize by DelayedScaling with entry k of the state of n tensors:
//
//	out = fp8(x·scale[k])      scale_inv[k] = 1/scale[k]
//	amax_history[0,k] = max(amax_history[0,k], max|x|)
//
// Rounding is that of Quantize; NaNs are ignored in the amax. Input and scale are read, output is
// written, scale_inv and the history are updated; operands that are written or updated share memory
// with no other operand.
var CastToFP8 = opregistry.NewOp("cast_to_fp8", opregistry.Schema[CastToFP8Args]{
	Doc: "rounds a tensor to fp8 with one of many delayed scales",
	Validate: func(a CastToFP8Args) error {
		c := check.Call{Op: "cast_to_fp8"}
		if c.Compute("input", a.Input) && c.Kind("output", a.Output, check.OfFP8) {
			c.SameShape("output", a.Output, "input", a.Input)
		}
		m := a.FP8MetaTensor
		if c.DType("fp8_meta_tensor.scale", m.Scale, tensor.F32) && c.Rank("fp8_meta_tensor.scale", m.Scale, 1) {
			n := m.Scale.NumElements()
			if c.DType("fp8_meta_tensor.scale_inv", m.ScaleInv, tensor.F32) {
				c.SameShape("fp8_meta_tensor.scale_inv", m.ScaleInv, "fp8_meta_tensor.scale", m.Scale)
			}
			if c.DType("fp8_meta_tensor.amax_history", m.AmaxHistory, tensor.F32) && c.Rank("fp8_meta_tensor.amax_history", m.AmaxHistory, 2) {
				if s := m.AmaxHistory.Shape(); s[0] < 1 || s[1] != n {
					c.Fail("fp8_meta_tensor.amax_history", "at least one row of "+check.Itoa(n)+", one a scale", "%v", m.AmaxHistory)
				}
			}
			if c.Err == nil && (a.FP8Tensor < 0 || a.FP8Tensor >= n) {
				c.Fail("fp8_tensor", "an index in [0, "+check.Itoa(n)+")", "%d", a.FP8Tensor)
			}
		}
		if c.Err == nil {
			c.AllApart(5, a.field, castToFP8Name)
		}
		return c.Err
	},
	Operands: func(a CastToFP8Args) []opregistry.Operand {
		m := a.FP8MetaTensor
		return check.Operands{}.Read("input", a.Input).Read("fp8_meta_tensor.scale", m.Scale).
			Update("fp8_meta_tensor.scale_inv", m.ScaleInv).Update("fp8_meta_tensor.amax_history", m.AmaxHistory).
			Write("output", a.Output)
	},
})

func (a CastToFP8Args) field(i int) (t *tensor.Tensor, written bool) {
	switch i {
	case 0:
		return a.Input, false
	case 1:
		return a.FP8MetaTensor.Scale, false
	case 2:
		return a.FP8MetaTensor.ScaleInv, true
	case 3:
		return a.FP8MetaTensor.AmaxHistory, true
	default:
		return a.Output, true
	}
}

func castToFP8Name(i int) string {
	return [...]string{"input", "fp8_meta_tensor.scale", "fp8_meta_tensor.scale_inv", "fp8_meta_tensor.amax_history", "output"}[i]
}
