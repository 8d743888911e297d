package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ClampedSwiGLUArgs are the arguments of ClampedSwiGLU.
type ClampedSwiGLUArgs struct {
	Input           *tensor.Tensor           `op:"0 input read compute [.. 2*h]"`
	Output          *tensor.Tensor           `op:"1 output write =input [.. h]"`
	Limit           opregistry.OptionalFloat `op:"2 limit >=0"`
	Alpha           opregistry.OptionalFloat `op:"3 alpha finite"`
	GLULinearOffset opregistry.OptionalFloat `op:"4 glu_linear_offset finite"`
}

// ClampedSwiGLU is SwiGLU with bounded halves and a shifted second one.
var ClampedSwiGLU = opregistry.NewOp("clamped_swiglu", opregistry.Schema[ClampedSwiGLUArgs]{
	Doc: "SwiGLU of bounded rows [a, b]",
	Formula: `
		clamped_swiglu is swiglu with bounded halves and a shifted second one:

		  y[r,i] = a'·σ(alpha·a')·b'     a' = min(a, limit), b' = min(max(b, −limit), limit) + glu_linear_offset

		with a = x[r,i] and b = x[r,H+i]. limit may be infinite. A NaN in a or b gives NaN. Operands
		and dtypes are those of swiglu. Source: the feed-forward layers of GPT-OSS;
		TransformerEngine 2.17, clamped_swiglu.

		Arguments:

		  input              a, then b
		  limit              7 when left out
		  alpha              1.702 when left out
		  glu_linear_offset  1 when left out

		Example:

		  input=[[1 -2 3 4]] limit=2 → output=[[2.537 -0.193]]
	`,
	Tolerance: opregistry.Arithmetic(8e-6, 5e-6, "as swiglu, times values up to 8"),
})

// ClampedDSwiGLUArgs are the arguments of ClampedDSwiGLU.
type ClampedDSwiGLUArgs struct {
	Grad            *tensor.Tensor           `op:"0 grad read =fwd_input [.. h]"`
	FwdInput        *tensor.Tensor           `op:"1 fwd_input read compute [.. 2*h] lead"`
	Output          *tensor.Tensor           `op:"2 output write =fwd_input [.. 2*h] may=fwd_input"`
	Limit           opregistry.OptionalFloat `op:"3 limit >=0"`
	Alpha           opregistry.OptionalFloat `op:"4 alpha finite"`
	GLULinearOffset opregistry.OptionalFloat `op:"5 glu_linear_offset finite"`
}

// ClampedDSwiGLU is the gradient of ClampedSwiGLU.
var ClampedDSwiGLU = opregistry.NewOp("clamped_dswiglu", opregistry.Schema[ClampedDSwiGLUArgs]{
	Doc: "gradient of clamped_swiglu",
	Formula: `
		clamped_dswiglu is the gradient of clamped_swiglu. With s = σ(alpha·a'):

		  dx[r,i]   = dy·b'·(s + alpha·a'·s·(1−s))     0 where a > limit
		  dx[r,H+i] = dy·a'·s                          0 where b < −limit or b > limit

		At the bounds themselves the gradient passes. Operands and dtypes are those of dswiglu,
		constants are those of clamped_swiglu.

		Arguments:

		  grad               dy
		  fwd_input          x, the input of clamped_swiglu
		  output             dx
		  limit              7 when left out
		  alpha              1.702 when left out
		  glu_linear_offset  1 when left out

		Example:

		  grad=[[1 2]] fwd_input=[[1 -2 3 4]] limit=2 → output=[[3.203 -0.4429 0 0]]
	`,
	Tolerance: opregistry.Arithmetic(1.6e-5, 1e-5, "as dqgelu, times values up to 8"),
})
