package softmax

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// SoftmaxArgs are the arguments of a softmax without a mask operand.
type SoftmaxArgs struct {
	Input       *tensor.Tensor // x [b, h, sq, sk], or [b·h, s, s] of the upper triangular op
	Output      *tensor.Tensor // y, shape of x
	ScaleFactor float32
}

// ScaledSoftmaxForward is the softmax of scaled rows:
//
//	z      = scale_factor · x
//	y[.,j] = exp(z[.,j] − max_k z[.,k]) / Σ_k exp(z[.,k] − max_k z[.,k])
//
// over the last axis. x is read, y is written; y may be x. One compute dtype for both; z,
// exponentials and sums are f32 or better, and y is rounded once. scale_factor is finite. A NaN or
// +∞ in a row makes that row NaN, as does a row of nothing but −∞. Source: TransformerEngine 2.14,
// scaled_softmax_forward, where the factor is called scale.
var ScaledSoftmaxForward = newSoftmax("scaled_softmax_forward", 4, "softmax of scaled rows")

// ScaledUpperTriangMaskedSoftmaxForward is ScaledSoftmaxForward with a causal mask: row i of each
// matrix [s, s] is the softmax of its columns j <= i, and 0 in the others, which are not read.
// Otherwise it is like ScaledSoftmaxForward. Source: TransformerEngine 2.14,
// scaled_upper_triang_masked_softmax_forward.
var ScaledUpperTriangMaskedSoftmaxForward = newSoftmax("scaled_upper_triang_masked_softmax_forward", 3, "softmax of scaled rows under a causal mask")

// ScaledAlignedCausalMaskedSoftmaxForward is ScaledSoftmaxForward with a causal mask that is
// aligned to the bottom right: row i of each matrix [sq, sk] is the softmax of its columns j <= i +
// sk − sq, and 0 in the others, which are not read. A row without such a column is 0. Otherwise it
// is like ScaledSoftmaxForward. Source: TransformerEngine 2.14,
// scaled_aligned_causal_masked_softmax_forward.
var ScaledAlignedCausalMaskedSoftmaxForward = newSoftmax("scaled_aligned_causal_masked_softmax_forward", 4,
	"softmax of scaled rows under a causal mask aligned to the last key")

// ScaledMaskedSoftmaxForwardArgs are the arguments of ScaledMaskedSoftmaxForward.
type ScaledMaskedSoftmaxForwardArgs struct {
	Input       *tensor.Tensor // x [b, h, sq, sk]
	Mask        *tensor.Tensor // [b or 1, 1, sq, sk]: u8 or bool, or a compute dtype
	Output      *tensor.Tensor // y, shape of x
	ScaleFactor float32
}

// ScaledMaskedSoftmaxForward is ScaledSoftmaxForward with a mask that all heads share. Where a mask
// of u8 or bool is exactly 1, it replaces the element of x, which is not read:
//
//	z = −10000 where mask = 1, scale_factor · x elsewhere
//
// A row whose largest z is −10000, such as one that is masked completely, gives y = 0. A mask of a
// compute dtype is added:
//
//	z = scale_factor · x + mask
//
// Mask is read and shares no memory with y. Otherwise it is like ScaledSoftmaxForward. Source:
// TransformerEngine 2.14, scaled_masked_softmax_forward; the added mask is that of its FlagOS
// plugin.
var ScaledMaskedSoftmaxForward = opregistry.NewOp("scaled_masked_softmax_forward", opregistry.Schema[ScaledMaskedSoftmaxForwardArgs]{
	Doc: "softmax of scaled rows under a mask",
	Validate: func(a ScaledMaskedSoftmaxForwardArgs) error {
		c := check.Call{Op: "scaled_masked_softmax_forward"}
		softmax(&c, SoftmaxArgs{Input: a.Input, Output: a.Output, ScaleFactor: a.ScaleFactor}, 4)
		if !c.Given("mask", a.Mask) {
			return c.Err
		}
		if d := a.Mask.DType(); d != tensor.U8 && d != tensor.Bool && !check.IsCompute(d) {
			c.Fail("mask", "dtype u8, bool, f32, bf16, f16 or f64", "%v", a.Mask)
		}
		if c.Rank("mask", a.Mask, 4) {
			m, x := a.Mask.Shape(), a.Input.Shape()
			if m[0] != x[0] && m[0] != 1 || m[1] != 1 || m[2] != x[2] || m[3] != x[3] {
				c.Fail("mask", fmt.Sprintf("[%d or 1, 1, %d, %d]", x[0], x[2], x[3]), "%v", a.Mask)
			}
		}
		c.Disjoint("output", a.Output, "mask", a.Mask)
		return c.Err
	},
	Lead: func(a ScaledMaskedSoftmaxForwardArgs) *tensor.Tensor { return a.Input },
	Operands: func(a ScaledMaskedSoftmaxForwardArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Read("mask", a.Mask).Write("output", a.Output)
	},
})

// SoftmaxBackwardArgs are the arguments of the gradient of a softmax.
type SoftmaxBackwardArgs struct {
	OutputGrads    *tensor.Tensor // dy, shape of y
	SoftmaxResults *tensor.Tensor // y, from the forward op
	Output         *tensor.Tensor // dx, shape of y
	ScaleFactor    float32
}

// ScaledSoftmaxBackward is the gradient of ScaledSoftmaxForward:
//
//	dx[.,j] = scale_factor · y[.,j] · (dy[.,j] − Σ_k y[.,k]·dy[.,k])
//
// dy and y are read, dx is written; dx may be dy. One compute dtype for all;
// products and sums are f32 or better, and dx is rounded once. scale_factor is
// finite. Source: as for ScaledSoftmaxForward.
var ScaledSoftmaxBackward = newSoftmaxBackward("scaled_softmax_backward", 4, "gradient of scaled_softmax_forward")

// ScaledMaskedSoftmaxBackward is the gradient of ScaledMaskedSoftmaxForward with respect to x. It
// is computed like ScaledSoftmaxBackward and is 0 where y is 0.
var ScaledMaskedSoftmaxBackward = newSoftmaxBackward("scaled_masked_softmax_backward", 4, "gradient of scaled_masked_softmax_forward")

// ScaledUpperTriangMaskedSoftmaxBackward is the gradient of ScaledUpperTriangMaskedSoftmaxForward:
// ScaledSoftmaxBackward over the columns j <= i, and 0 in the others, where dy and y are not read.
var ScaledUpperTriangMaskedSoftmaxBackward = newSoftmaxBackward("scaled_upper_triang_masked_softmax_backward", 3,
	"gradient of scaled_upper_triang_masked_softmax_forward")

// ScaledAlignedCausalMaskedSoftmaxBackward is the gradient of
// ScaledAlignedCausalMaskedSoftmaxForward: ScaledSoftmaxBackward over the columns j <= i + sk − sq,
// and 0 in the others, where dy and y are not read.
var ScaledAlignedCausalMaskedSoftmaxBackward = newSoftmaxBackward("scaled_aligned_causal_masked_softmax_backward", 4,
	"gradient of scaled_aligned_causal_masked_softmax_forward")

// newSoftmax returns the handle of a softmax of tensors with this many axes;
// matrices in a tensor of three are square.
func newSoftmax(name string, axes int, doc string) *opregistry.Op[SoftmaxArgs] {
	return opregistry.NewOp(name, opregistry.Schema[SoftmaxArgs]{
		Doc: doc,
		Validate: func(a SoftmaxArgs) error {
			c := check.Call{Op: name}
			softmax(&c, a, axes)
			return c.Err
		},
		Lead: func(a SoftmaxArgs) *tensor.Tensor { return a.Input },
		Operands: func(a SoftmaxArgs) []opregistry.Operand {
			return check.Operands{}.Read("input", a.Input).Write("output", a.Output)
		},
	})
}

func newSoftmaxBackward(name string, axes int, doc string) *opregistry.Op[SoftmaxBackwardArgs] {
	return opregistry.NewOp(name, opregistry.Schema[SoftmaxBackwardArgs]{
		Doc: doc,
		Validate: func(a SoftmaxBackwardArgs) error {
			c := check.Call{Op: name}
			scores(&c, "output_grads", a.OutputGrads, axes)
			attention.Like(&c, "softmax_results", a.SoftmaxResults, "output_grads", a.OutputGrads)
			attention.Like(&c, "output", a.Output, "output_grads", a.OutputGrads)
			c.DisjointOrSame("output", a.Output, "output_grads", a.OutputGrads)
			c.Disjoint("output", a.Output, "softmax_results", a.SoftmaxResults)
			c.Finite("scale_factor", a.ScaleFactor)
			return c.Err
		},
		Lead: func(a SoftmaxBackwardArgs) *tensor.Tensor { return a.OutputGrads },
		Operands: func(a SoftmaxBackwardArgs) []opregistry.Operand {
			return check.Operands{}.Read("output_grads", a.OutputGrads).Read("softmax_results", a.SoftmaxResults).Write("output", a.Output)
		},
	})
}

func softmax(c *check.Call, a SoftmaxArgs, axes int) {
	scores(c, "input", a.Input, axes)
	attention.Like(c, "output", a.Output, "input", a.Input)
	c.DisjointOrSame("output", a.Output, "input", a.Input)
	c.Finite("scale_factor", a.ScaleFactor)
}

// scores checks the axes of a tensor of attention scores.
func scores(c *check.Call, name string, t *tensor.Tensor, axes int) {
	if c.Compute(name, t) && c.Rank(name, t, axes) && axes == 3 && t.Shape()[1] != t.Shape()[2] {
		c.Fail(name, "square matrices", "%v", t)
	}
}
