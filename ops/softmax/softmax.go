package softmax

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// SoftmaxArgs are the arguments of a softmax without a mask operand.
type SoftmaxArgs struct {
	Input       *tensor.Tensor `op:"0 input read compute [b h sq sk]"`            // x; [b·h, s, s] of the upper triangular op
	Output      *tensor.Tensor `op:"1 output write =input [b h sq sk] may=input"` // y
	ScaleFactor float32        `op:"2 scale_factor finite"`
}

// ScaledSoftmaxForward is the softmax of scaled rows.
var ScaledSoftmaxForward = newSoftmax("scaled_softmax_forward", "softmax of scaled rows", `
		scaled_softmax_forward is the softmax of scaled rows:

		  z      = scale_factor · x
		  y[.,j] = exp(z[.,j] − max_k z[.,k]) / Σ_k exp(z[.,k] − max_k z[.,k])

		over the last axis. z, exponentials and sums are f32 or better, and y is rounded once. A NaN
		or +∞ in a row makes that row NaN, as does a row of nothing but −∞. Source:
		TransformerEngine 2.14, scaled_softmax_forward, where the factor is called scale.

		Arguments:

		  input   x; [b·h, s, s] of the upper triangular op
		  output  y

		Example:

		  input=[[[[0 1] [2 2]]]] scale_factor=2 → output=[[[[0.1192 0.8808] [0.5 0.5]]]]
	`, "",
	opregistry.Arithmetic(1e-6, 1e-5, "logits up to 30 carry 30·2⁻²⁴ into the exponent"))

// ScaledUpperTriangMaskedSoftmaxForward is ScaledSoftmaxForward with a causal mask.
var ScaledUpperTriangMaskedSoftmaxForward = newSoftmax("scaled_upper_triang_masked_softmax_forward", "softmax of scaled rows under a causal mask", `
		scaled_upper_triang_masked_softmax_forward is scaled_softmax_forward with a causal mask: row
		i of each matrix [s, s] is the softmax of its columns j <= i, and 0 in the others, which are
		not read. Otherwise it is like scaled_softmax_forward. Source: TransformerEngine 2.14,
		scaled_upper_triang_masked_softmax_forward.

		Arguments:

		  input   x; [b·h, s, s] of the upper triangular op
		  output  y

		Example:

		  input=[[[5 9] [0 1]]] scale_factor=2 → output=[[[1 0] [0.1192 0.8808]]]
	`, "input [b s s]; output [b s s]",
	opregistry.Arithmetic(1e-6, 1e-5, "as scaled_softmax_forward"))

// ScaledAlignedCausalMaskedSoftmaxForward is ScaledSoftmaxForward with a causal mask that is
// aligned to the bottom right.
var ScaledAlignedCausalMaskedSoftmaxForward = newSoftmax("scaled_aligned_causal_masked_softmax_forward", "softmax of scaled rows under a causal mask aligned to the last key", `
		scaled_aligned_causal_masked_softmax_forward is scaled_softmax_forward with a causal mask
		that is aligned to the bottom right: row i of each matrix [sq, sk] is the softmax of its
		columns j <= i + sk − sq, and 0 in the others, which are not read. A row without such a
		column is 0. Otherwise it is like scaled_softmax_forward. Source: TransformerEngine 2.14,
		scaled_aligned_causal_masked_softmax_forward.

		Arguments:

		  input   x; [b·h, s, s] of the upper triangular op
		  output  y

		Example:

		  input=[[[[0 1 9] [0 0 1]]]] scale_factor=1 → output=[[[[0.2689 0.7311 0] [0.2119 0.2119
		    0.5761]]]]
	`, "",
	opregistry.Arithmetic(1e-6, 1e-5, "as scaled_softmax_forward"))

// ScaledMaskedSoftmaxForwardArgs are the arguments of ScaledMaskedSoftmaxForward.
type ScaledMaskedSoftmaxForwardArgs struct {
	Input       *tensor.Tensor `op:"0 input read compute [b h sq sk]"`
	Mask        *tensor.Tensor `op:"1 mask read u8 bool compute [_ 1 sq sk]"`
	Output      *tensor.Tensor `op:"2 output write =input [b h sq sk] may=input"`
	ScaleFactor float32        `op:"3 scale_factor finite"`
}

// ScaledMaskedSoftmaxForward is ScaledSoftmaxForward with a mask that all heads share.
var ScaledMaskedSoftmaxForward = opregistry.NewOp("scaled_masked_softmax_forward", opregistry.Schema[ScaledMaskedSoftmaxForwardArgs]{
	Doc: "softmax of scaled rows under a mask",
	Formula: `
		scaled_masked_softmax_forward is scaled_softmax_forward with a mask that all heads share.
		Where a mask of u8 or bool is exactly 1, it replaces the element of x, which is not read:

		  z = −10000 where mask = 1, scale_factor · x elsewhere

		A row whose largest z is −10000, such as one that is masked completely, gives y = 0. A mask
		of a compute dtype is added:

		  z = scale_factor · x + mask

		Otherwise it is like scaled_softmax_forward. Source: TransformerEngine 2.14,
		scaled_masked_softmax_forward; the added mask is that of its FlagOS plugin.

		Arguments:

		  input   x
		  mask    [b or 1, 1, sq, sk]
		  output  y

		Example:

		  input=[[[[0 1] [2 2]]]] mask=bool[[[[0 1] [0 0]]]] scale_factor=2 → output=[[[[1 0] [0.5
		    0.5]]]]
	`,
	Tolerance: opregistry.Arithmetic(1e-6, 1e-5, "as scaled_softmax_forward"),
	Check: func(c *opregistry.Check, a *ScaledMaskedSoftmaxForwardArgs) {
		if m, x := a.Mask.Shape(), a.Input.Shape(); m[0] != x[0] && m[0] != 1 {
			c.Fail("mask", fmt.Sprintf("[%d or 1, 1, %d, %d]", x[0], x[2], x[3]), "%v", a.Mask)
		}
	},
})

// SoftmaxBackwardArgs are the arguments of the gradient of a softmax.
type SoftmaxBackwardArgs struct {
	OutputGrads    *tensor.Tensor `op:"0 output_grads read compute [b h sq sk]"`                   // dy
	SoftmaxResults *tensor.Tensor `op:"1 softmax_results read =output_grads [b h sq sk]"`          // y, from the forward op
	Output         *tensor.Tensor `op:"2 output write =output_grads [b h sq sk] may=output_grads"` // dx
	ScaleFactor    float32        `op:"3 scale_factor finite"`
}

// ScaledSoftmaxBackward is the gradient of ScaledSoftmaxForward.
var ScaledSoftmaxBackward = newSoftmaxBackward("scaled_softmax_backward", "gradient of scaled_softmax_forward", `
		scaled_softmax_backward is the gradient of scaled_softmax_forward:

		  dx[.,j] = scale_factor · y[.,j] · (dy[.,j] − Σ_k y[.,k]·dy[.,k])

		Products and sums are f32 or better, and dx is rounded once. Source: as for
		scaled_softmax_forward.

		Arguments:

		  output_grads     dy
		  softmax_results  y, from the forward op
		  output           dx

		Example:

		  output_grads=[[[[1 0]]]] softmax_results=[[[[0.25 0.75]]]] scale_factor=2 →
		    output=[[[[0.375 -0.375]]]]
	`, "",
	opregistry.Arithmetic(5e-6, 1e-5, "a sum of up to 130 products, and dy − Σ y·dy cancels"))

// ScaledMaskedSoftmaxBackward is the gradient of ScaledMaskedSoftmaxForward with respect to x.
var ScaledMaskedSoftmaxBackward = newSoftmaxBackward("scaled_masked_softmax_backward", "gradient of scaled_masked_softmax_forward", `
		scaled_masked_softmax_backward is the gradient of scaled_masked_softmax_forward with respect
		to x. It is computed like scaled_softmax_backward and is 0 where y is 0.

		Arguments:

		  output_grads     dy
		  softmax_results  y, from the forward op
		  output           dx

		Example:

		  output_grads=[[[[1 0]]]] softmax_results=[[[[0.25 0.75]]]] scale_factor=2 →
		    output=[[[[0.375 -0.375]]]]
	`, "",
	opregistry.Arithmetic(5e-6, 1e-5, "as scaled_softmax_backward"))

// ScaledUpperTriangMaskedSoftmaxBackward is the gradient of ScaledUpperTriangMaskedSoftmaxForward.
var ScaledUpperTriangMaskedSoftmaxBackward = newSoftmaxBackward("scaled_upper_triang_masked_softmax_backward", "gradient of scaled_upper_triang_masked_softmax_forward", `
		scaled_upper_triang_masked_softmax_backward is the gradient of
		scaled_upper_triang_masked_softmax_forward: scaled_softmax_backward over the columns j <= i,
		and 0 in the others, where dy and y are not read.

		Arguments:

		  output_grads     dy
		  softmax_results  y, from the forward op
		  output           dx

		Example:

		  output_grads=[[[1 0] [1 0]]] softmax_results=[[[1 0] [0.25 0.75]]] scale_factor=2 →
		    output=[[[0 0] [0.375 -0.375]]]
	`, "output_grads [b s s]; softmax_results [b s s]; output [b s s]",
	opregistry.Arithmetic(5e-6, 1e-5, "as scaled_softmax_backward"))

// ScaledAlignedCausalMaskedSoftmaxBackward is the gradient of
// ScaledAlignedCausalMaskedSoftmaxForward.
var ScaledAlignedCausalMaskedSoftmaxBackward = newSoftmaxBackward("scaled_aligned_causal_masked_softmax_backward", "gradient of scaled_aligned_causal_masked_softmax_forward", `
		scaled_aligned_causal_masked_softmax_backward is the gradient of
		scaled_aligned_causal_masked_softmax_forward: scaled_softmax_backward over the columns j <=
		i + sk − sq, and 0 in the others, where dy and y are not read.

		Arguments:

		  output_grads     dy
		  softmax_results  y, from the forward op
		  output           dx

		Example:

		  output_grads=[[[[1 0]]]] softmax_results=[[[[0.25 0.75]]]] scale_factor=2 →
		    output=[[[[0.375 -0.375]]]]
	`, "",
	opregistry.Arithmetic(5e-6, 1e-5, "as scaled_softmax_backward"))

func newSoftmax(name, doc, formula, where string, tolerance opregistry.Tolerance) *opregistry.Op[SoftmaxArgs] {
	return opregistry.NewOp(name, opregistry.Schema[SoftmaxArgs]{Doc: doc, Formula: formula, Where: where, Tolerance: tolerance})
}

func newSoftmaxBackward(name, doc, formula, where string, tolerance opregistry.Tolerance) *opregistry.Op[SoftmaxBackwardArgs] {
	return opregistry.NewOp(name, opregistry.Schema[SoftmaxBackwardArgs]{Doc: doc, Formula: formula, Where: where, Tolerance: tolerance})
}
