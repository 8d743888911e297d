package quant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorComputeScaleAndScaleInvArgs are the arguments of MultiTensorComputeScaleAndScaleInv.
type MultiTensorComputeScaleAndScaleInvArgs struct {
	NoopFlag        *tensor.Tensor     // i32 [1], not read: infinities and NaN have their own rule
	TensorLists     [][]*tensor.Tensor // amax, scale, scale_inv, all f32
	MaxFP8          float32            // largest value of the fp8 dtype
	ForcePow2Scales bool
	Epsilon         float32 // lower bound of amax
}

// MultiTensorComputeScaleAndScaleInv computes, element by element, the scales that use the whole
// range of an fp8 dtype:
//
//	a = max(amax, epsilon)
//	scale = max_fp8 / a      scale_inv = 1 / scale
//
// The quotients are rounded to f32. A scale is 1 where a is 0, infinite or NaN, and the largest f32
// where the quotient is beyond it. With ForcePow2Scales it is then rounded down to a power of two,
// never up, so that a·scale stays within max_fp8. amax is read; scale and scale_inv are written and
// share memory with no other operand. Source: TransformerEngine 2.14.
var MultiTensorComputeScaleAndScaleInv = opregistry.NewOp("multi_tensor_compute_scale_and_scale_inv", opregistry.Schema[MultiTensorComputeScaleAndScaleInvArgs]{
	Doc: "fp8 scales and their reciprocals from maxima",
	Validate: func(a MultiTensorComputeScaleAndScaleInvArgs) error {
		c := check.Call{Op: "multi_tensor_compute_scale_and_scale_inv"}
		if len(a.TensorLists) != 3 {
			c.Fail("tensor_lists", "3 lists (amax, scale, scale_inv)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag, check.OfF32, check.OfF32, check.OfF32)
		c.Positive("max_fp8", a.MaxFP8)
		notNegative(&c, "epsilon", a.Epsilon)
		c.MultiTensorApart(a.TensorLists, check.AfterFirst, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorComputeScaleAndScaleInvArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessWrite)
	},
})

// MultiTensorComputeScaleInvE8M0Args are the arguments of MultiTensorComputeScaleInvE8M0.
type MultiTensorComputeScaleInvE8M0Args struct {
	NoopFlag    *tensor.Tensor     // i32 [1], not read
	TensorLists [][]*tensor.Tensor // amax bf16, scale_inv u8
}

// MultiTensorComputeScaleInvE8M0 computes the decoding scales of MXFP8 blocks in
// E4M3, element by element:
//
//	scale_inv = the least 2^(e−127) ≥ amax/448, stored as e
//
// The exponent is rounded up, so that amax/scale_inv stays within 448. e is 0 for
// an amax of 0, 254 for infinity and 255 for NaN: tensor.CeilFloat8E8M0. amax is
// read, scale_inv written; it shares memory with no other operand. Source: OCP
// Microscaling Formats 1.0, with the rounding of TransformerEngine 2.14.
var MultiTensorComputeScaleInvE8M0 = opregistry.NewOp("multi_tensor_compute_scale_inv_e8m0", opregistry.Schema[MultiTensorComputeScaleInvE8M0Args]{
	Doc: "E8M0 scales of MXFP8 blocks from maxima",
	Validate: func(a MultiTensorComputeScaleInvE8M0Args) error {
		c := check.Call{Op: "multi_tensor_compute_scale_inv_e8m0"}
		if len(a.TensorLists) != 2 {
			c.Fail("tensor_lists", "2 lists (amax, scale_inv)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag, check.OfBF16, check.OfU8)
		c.MultiTensorApart(a.TensorLists, check.OnlySecond, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorComputeScaleInvE8M0Args) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessWrite)
	},
})

// ComputeAmaxArgs are the arguments of ComputeAmax.
type ComputeAmaxArgs struct {
	Input *tensor.Tensor // any compute dtype
	Amax  *tensor.Tensor // f32 [1]
}

// ComputeAmax computes the largest magnitude of a tensor:
//
//	amax = max_i |x[i]|
//
// x is read, amax is written; they are disjoint. NaNs are ignored; amax is 0 when there are no
// other elements. A magnitude of f64 is rounded to f32. Source: TransformerEngine 2.14.
var ComputeAmax = opregistry.NewOp("compute_amax", opregistry.Schema[ComputeAmaxArgs]{
	Doc: "largest magnitude of a tensor",
	Validate: func(a ComputeAmaxArgs) error {
		c := check.Call{Op: "compute_amax"}
		if c.Compute("input", a.Input) && c.Scalar("amax", a.Amax) {
			c.Disjoint("amax", a.Amax, "input", a.Input)
		}
		return c.Err
	},
	Operands: func(a ComputeAmaxArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Write("amax", a.Amax)
	},
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
	AmaxReductionBuffer *tensor.Tensor   // f32, the amax for each scale, reduced over the ranks
	AmaxHistories       []*tensor.Tensor // f32 [length, n_i]
	Scales              []*tensor.Tensor // f32 [n_i]
	AmaxComputeAlgo     AmaxComputeAlgo
	FP8DType            tensor.DType // F8E4M3 or F8E5M2
	Margin              float32
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
// history nor scale changes. The buffer is read; histories and scales are updated in place and
// share memory with no other operand. Source: TransformerEngine 2.14; Micikevicius et al. 2022,
// arXiv:2209.05433.
var FusedAmaxAndScaleUpdateAfterReduction = opregistry.NewOp("fused_amax_and_scale_update_after_reduction", opregistry.Schema[FusedAmaxAndScaleUpdateArgs]{
	Doc: "rolls amax histories and updates the scales of delayed scaling",
	Validate: func(a FusedAmaxAndScaleUpdateArgs) error {
		c := check.Call{Op: "fused_amax_and_scale_update_after_reduction"}
		c.DType("amax_reduction_buffer", a.AmaxReductionBuffer, tensor.F32)
		if c.Err == nil && len(a.Scales) != len(a.AmaxHistories) {
			c.Fail("scales", check.Itoa(len(a.AmaxHistories))+" tensors, as amax_histories", "%d", len(a.Scales))
		}
		total := 0
		for i, h := range a.AmaxHistories {
			if c.Err != nil {
				return c.Err
			}
			s := a.Scales[i]
			if c.DType("amax_histories", h, tensor.F32) && c.Rank("amax_histories", h, 2) {
				if h.Shape()[0] < 1 {
					c.Fail("amax_histories", "at least one row", "%v", h)
				}
				if c.DType("scales", s, tensor.F32) {
					c.Elements("scales", s, h.Shape()[1], "one a column of the history")
				}
				total += h.Shape()[1]
			}
			Locate(&c, "", i)
		}
		if c.Err == nil {
			c.Elements("amax_reduction_buffer", a.AmaxReductionBuffer, total, "one a column of the histories")
		}
		if c.Err == nil && a.AmaxComputeAlgo != AmaxMostRecent && a.AmaxComputeAlgo != AmaxMax {
			c.Fail("amax_compute_algo", "most_recent or max", "%v", a.AmaxComputeAlgo)
		}
		if c.Err == nil && !check.OfFP8.Holds(a.FP8DType) {
			c.Fail("fp8_dtype", "f8e4m3 or f8e5m2", "%v", a.FP8DType)
		}
		if c.Err == nil && a.Margin-a.Margin != 0 {
			c.Fail("margin", "a finite number", "%v", a.Margin)
		}
		n := len(a.Scales)
		c.AllApart(2*n+1, func(i int) (*tensor.Tensor, bool) {
			switch {
			case i < n:
				return a.AmaxHistories[i], true
			case i < 2*n:
				return a.Scales[i-n], true
			}
			return a.AmaxReductionBuffer, false
		}, func(i int) string {
			switch {
			case i < n:
				return check.Indexed("amax_histories", i)
			case i < 2*n:
				return check.Indexed("scales", i-n)
			}
			return "amax_reduction_buffer"
		})
		return c.Err
	},
	Operands: func(a FusedAmaxAndScaleUpdateArgs) []opregistry.Operand {
		o := check.Operands{}.Read("amax_reduction_buffer", a.AmaxReductionBuffer)
		for i := range a.Scales {
			o = o.Update(check.Indexed("amax_histories", i), a.AmaxHistories[i]).Update(check.Indexed("scales", i), a.Scales[i])
		}
		return o
	},
})

func notNegative(c *check.Call, name string, v float32) {
	if c.Err == nil && !(v >= 0) {
		c.Fail(name, "a number >= 0", "%v", v)
	}
}

// Locate adds the index to the name of the operand in the fault that was just found in element i of
// a list: "head.tail" becomes "head_list[i].tail" with the suffix "_list". In this way names are
// formed only for a fault.
func Locate(c *check.Call, suffix string, i int) {
	if c.Err == nil {
		return
	}
	if e, ok := errors.AsType[*opregistry.ArgError](c.Err); ok {
		head, tail, nested := strings.Cut(e.Operand, ".")
		e.Operand = check.Indexed(head+suffix, i)
		if nested {
			e.Operand += "." + tail
		}
	}
}
