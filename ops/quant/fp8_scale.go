package quant

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorComputeScaleAndScaleInvArgs are the arguments of MultiTensorComputeScaleAndScaleInv.
type MultiTensorComputeScaleAndScaleInvArgs struct {
	NoopFlag        *tensor.Tensor     `op:"0 noop_flag read i32 (1)"`
	TensorLists     [][]*tensor.Tensor `op:"1 tensor_lists"`
	MaxFP8          float32            `op:"2 max_fp8 >0"`
	ForcePow2Scales bool               `op:"3 force_pow2_scales"`
	Epsilon         float32            `op:"4 epsilon >=0"`
}

// MultiTensorComputeScaleAndScaleInv computes, element by element, the scales that use the whole
// range of an fp8 dtype.
var MultiTensorComputeScaleAndScaleInv = opregistry.NewOp("multi_tensor_compute_scale_and_scale_inv", opregistry.Schema[MultiTensorComputeScaleAndScaleInvArgs]{
	Doc: "fp8 scales and their reciprocals from maxima",
	Formula: `
		multi_tensor_compute_scale_and_scale_inv computes, element by element, the scales that use
		the whole range of an fp8 dtype:

		  a = max(amax, epsilon)
		  scale = max_fp8 / a      scale_inv = 1 / scale

		The quotients are rounded to f32. A scale is 1 where a is 0, infinite or NaN, and the
		largest f32 where the quotient is beyond it. With force_pow2_scales it is then rounded down
		to a power of two, never up, so that a·scale stays within max_fp8. Source: TransformerEngine
		2.14.

		Arguments:

		  noop_flag  not read: infinities and NaN have their own rule
		  max_fp8    largest value of the fp8 dtype
		  epsilon    lower bound of amax

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[2 0 7] max_fp8=448 force_pow2_scales=1 →
		    tensor_lists[1][0]=[128 1 64] tensor_lists[2][0]=[0.007812 1 0.01562]
	`,
	Lists:     "amax read f32 lead; scale write f32; scale_inv write f32",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "two quotients, the second of the first"},
})

// MultiTensorComputeScaleInvE8M0Args are the arguments of MultiTensorComputeScaleInvE8M0.
type MultiTensorComputeScaleInvE8M0Args struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag read i32 (1)"`
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists"`
}

// MultiTensorComputeScaleInvE8M0 computes the decoding scales of MXFP8 blocks in E4M3, element by
// element.
var MultiTensorComputeScaleInvE8M0 = opregistry.NewOp("multi_tensor_compute_scale_inv_e8m0", opregistry.Schema[MultiTensorComputeScaleInvE8M0Args]{
	Doc: "E8M0 scales of MXFP8 blocks from maxima",
	Formula: `
		multi_tensor_compute_scale_inv_e8m0 computes the decoding scales of MXFP8 blocks in E4M3,
		element by element:

		  scale_inv = the least 2^(e−127) ≥ amax/448, stored as e

		The exponent is rounded up, so that amax/scale_inv stays within 448. e is 0 for an amax of
		0, 254 for infinity and 255 for NaN. Source: OCP Microscaling Formats
		1.0, with the rounding of TransformerEngine 2.14.

		Arguments:

		  noop_flag  not read

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=bf16[448 449.9 0 7] → tensor_lists[1][0]=u8[127 128 0
		    121]
	`,
	Lists:     "amax read bf16 lead; scale_inv write u8",
	Tolerance: opregistry.Exact("an exponent; 448 divides no bf16 to near a power of two that it is not"),
})

// ComputeAmaxArgs are the arguments of ComputeAmax.
type ComputeAmaxArgs struct {
	Input *tensor.Tensor `op:"0 input read compute"`
	Amax  *tensor.Tensor `op:"1 amax write f32 (1)"`
}

// ComputeAmax computes the largest magnitude of a tensor.
var ComputeAmax = opregistry.NewOp("compute_amax", opregistry.Schema[ComputeAmaxArgs]{
	Doc: "largest magnitude of a tensor",
	Formula: `
		compute_amax computes the largest magnitude of a tensor:

		  amax = max_i |x[i]|

		NaNs are ignored; amax is 0 when there are no other elements. A magnitude of f64 is rounded
		to f32. Source: TransformerEngine 2.14.

		Example:

		  input=[1 -3 nan 2] → amax=[3]
	`,
	Tolerance: opregistry.Exact("one of the elements"),
})

// AmaxComputeAlgo selects the amax of a history.
type AmaxComputeAlgo int

// The algorithms.
const (
	AmaxMostRecent AmaxComputeAlgo = iota + 1 // the one of this step
	AmaxMax                                   // the largest of the history and this step
)

// String returns the name of the algorithm in TransformerEngine's recipes.
func (m AmaxComputeAlgo) String() string {
	switch m {
	case AmaxMostRecent:
		return "most_recent"
	case AmaxMax:
		return "max"
	default:
		return fmt.Sprintf("amax_compute_algo(%d)", int(m))
	}
}

// FusedAmaxAndScaleUpdateArgs are the arguments of FusedAmaxAndScaleUpdateAfterReduction.
type FusedAmaxAndScaleUpdateArgs struct {
	AmaxReductionBuffer *tensor.Tensor   `op:"0 amax_reduction_buffer read f32"`
	AmaxHistories       []*tensor.Tensor `op:"1 amax_histories update f32 len=n"`
	Scales              []*tensor.Tensor `op:"2 scales update f32 len=n"`
	AmaxComputeAlgo     AmaxComputeAlgo  `op:"3 amax_compute_algo"`
	FP8DType            tensor.DType     `op:"4 fp8_dtype was=fp8_d_type"`
	Margin              float32          `op:"5 margin finite"`
}

// FusedAmaxAndScaleUpdateAfterReduction ends a step of delayed scaling.
var FusedAmaxAndScaleUpdateAfterReduction = opregistry.NewOp("fused_amax_and_scale_update_after_reduction", opregistry.Schema[FusedAmaxAndScaleUpdateArgs]{
	Doc: "rolls amax histories and updates the scales of delayed scaling",
	Formula: `
		fused_amax_and_scale_update_after_reduction ends a step of delayed scaling. The columns of
		all histories h, in order, belong to the successive numbers of the buffer; for each column

		  last = buffer, or h[0] where that is 0
		  h = h[1], …, h[length−1], last
		  amax = last, or max(h) where amax_compute_algo is max
		  scale = fp8_max·2^−margin / amax      h[0] = 0

		A scale does not change where amax is 0, infinite or NaN, and is the largest f32 where the
		quotient is beyond it; NaNs of the history are ignored in the maximum. Where last is 0,
		neither history nor scale changes. Source: TransformerEngine 2.14; Micikevicius et al. 2022,
		arXiv:2209.05433.

		Arguments:

		  amax_reduction_buffer  the amax for each scale, reduced over the ranks
		  amax_histories         [length, n_i]
		  scales                 [n_i]
		  fp8_dtype              F8E4M3 or F8E5M2

		Example:

		  amax_reduction_buffer=[2 0] amax_histories[0]=[[1 0] [4 0]] scales[0]=[1 5]
		    amax_compute_algo=max fp8_dtype=f8e4m3 → amax_histories[0]=[[0 0] [2 0]] scales[0]=[112
		    5]
	`,
	Check: func(c *opregistry.Check, a *FusedAmaxAndScaleUpdateArgs) {
		total := 0
		for i, h := range a.AmaxHistories {
			if len(h.Shape()) != 2 {
				c.Rank(check.Indexed("amax_histories", i), h, 2)
				return
			}
			if h.Shape()[0] < 1 {
				c.Fail(check.Indexed("amax_histories", i), "at least one row", "%v", h)
				return
			}
			n := h.Shape()[1]
			if s := a.Scales[i]; s.NumElements() != n {
				c.Elements(check.Indexed("scales", i), s, n, "one per column of the history")
			}
			total += n
		}
		c.Elements("amax_reduction_buffer", a.AmaxReductionBuffer, total, "one per column of the histories")
		if c.OK() && a.AmaxComputeAlgo != AmaxMostRecent && a.AmaxComputeAlgo != AmaxMax {
			c.Fail("amax_compute_algo", "most_recent or max", "%v", a.AmaxComputeAlgo)
		}
		if c.OK() && !opregistry.FP8.Has(a.FP8DType) {
			c.Fail("fp8_dtype", "f8e4m3 or f8e5m2", "%v", a.FP8DType)
		}
	},
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "a quotient; the rest is moved"},
})
