package quant

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorComputeScaleAndScaleInvArgs are the arguments of MultiTensorComputeScaleAndScaleInv.
type MultiTensorComputeScaleAndScaleInvArgs struct {
	NoopFlag        *tensor.Tensor     `op:"0 noop_flag read i32 (1)"` // not read: infinities and NaN have their own rule
	TensorLists     [][]*tensor.Tensor `op:"1 tensor_lists"`
	MaxFP8          float32            `op:"2 max_fp8 >0"` // largest value of the fp8 dtype
	ForcePow2Scales bool               `op:"3 force_pow2_scales"`
	Epsilon         float32            `op:"4 epsilon >=0"` // lower bound of amax
}

// MultiTensorComputeScaleAndScaleInv computes, element by element, the scales that use the whole
// range of an fp8 dtype:
//
//	a = max(amax, epsilon)
//	scale = max_fp8 / a      scale_inv = 1 / scale
//
// The quotients are rounded to f32. A scale is 1 where a is 0, infinite or NaN, and the largest f32
// where the quotient is beyond it. With ForcePow2Scales it is then rounded down to a power of two,
// never up, so that a·scale stays within max_fp8. Source: TransformerEngine 2.14.
var MultiTensorComputeScaleAndScaleInv = opregistry.NewOp("multi_tensor_compute_scale_and_scale_inv", opregistry.Schema[MultiTensorComputeScaleAndScaleInvArgs]{
	Doc:       "fp8 scales and their reciprocals from maxima",
	Lists:     "amax read f32 lead; scale write f32; scale_inv write f32",
	Tolerance: opregistry.Tolerance{Wide: tensor.Tolerance{Rel: 0x1p-22, ULP: 2}, Narrow: tensor.Tolerance{ULP: 1}, Reason: "two quotients, the second of the first"},
})

// MultiTensorComputeScaleInvE8M0Args are the arguments of MultiTensorComputeScaleInvE8M0.
type MultiTensorComputeScaleInvE8M0Args struct {
	NoopFlag    *tensor.Tensor     `op:"0 noop_flag read i32 (1)"` // not read
	TensorLists [][]*tensor.Tensor `op:"1 tensor_lists"`
}

// MultiTensorComputeScaleInvE8M0 computes the decoding scales of MXFP8 blocks in
// E4M3, element by element:
//
//	scale_inv = the least 2^(e−127) ≥ amax/448, stored as e
//
// The exponent is rounded up, so that amax/scale_inv stays within 448. e is 0 for
// an amax of 0, 254 for infinity and 255 for NaN: tensor.CeilFloat8E8M0. Source:
// OCP Microscaling Formats 1.0, with the rounding of TransformerEngine 2.14.
var MultiTensorComputeScaleInvE8M0 = opregistry.NewOp("multi_tensor_compute_scale_inv_e8m0", opregistry.Schema[MultiTensorComputeScaleInvE8M0Args]{
	Doc:       "E8M0 scales of MXFP8 blocks from maxima",
	Lists:     "amax read bf16 lead; scale_inv write u8",
	Tolerance: opregistry.Exact("an exponent; 448 divides no bf16 to near a power of two that it is not"),
})

// ComputeAmaxArgs are the arguments of ComputeAmax.
type ComputeAmaxArgs struct {
	Input *tensor.Tensor `op:"0 input read compute"`
	Amax  *tensor.Tensor `op:"1 amax write f32 (1)"`
}

// ComputeAmax computes the largest magnitude of a tensor:
//
//	amax = max_i |x[i]|
//
// NaNs are ignored; amax is 0 when there are no other elements. A magnitude of f64 is rounded to
// f32. Source: TransformerEngine 2.14.
var ComputeAmax = opregistry.NewOp("compute_amax", opregistry.Schema[ComputeAmaxArgs]{
	Doc:       "largest magnitude of a tensor",
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
	AmaxReductionBuffer *tensor.Tensor   `op:"0 amax_reduction_buffer read f32"`  // the amax for each scale, reduced over the ranks
	AmaxHistories       []*tensor.Tensor `op:"1 amax_histories update f32 len=n"` // [length, n_i]
	Scales              []*tensor.Tensor `op:"2 scales update f32 len=n"`         // [n_i]
	AmaxComputeAlgo     AmaxComputeAlgo  `op:"3 amax_compute_algo"`
	FP8DType            tensor.DType     `op:"4 fp8_dtype was=fp8_d_type"` // F8E4M3 or F8E5M2
	Margin              float32          `op:"5 margin finite"`
}

// FusedAmaxAndScaleUpdateAfterReduction ends a step of delayed scaling. The columns of all
// histories h, in order, belong to the successive numbers of the buffer; for each column
//
//	last = buffer, or h[0] where that is 0
//	h = h[1], …, h[length−1], last
//	amax = last, or max(h) with AmaxMax
//	scale = fp8_max·2^−margin / amax      h[0] = 0
//
// A scale does not change where amax is 0, infinite or NaN, and is the largest f32 where the
// quotient is beyond it; NaNs of the history are ignored in the maximum. Where last is 0, neither
// history nor scale changes. Source: TransformerEngine 2.14; Micikevicius et al. 2022,
// arXiv:2209.05433.
var FusedAmaxAndScaleUpdateAfterReduction = opregistry.NewOp("fused_amax_and_scale_update_after_reduction", opregistry.Schema[FusedAmaxAndScaleUpdateArgs]{
	Doc: "rolls amax histories and updates the scales of delayed scaling",
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
