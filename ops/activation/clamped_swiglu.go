package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ClampedSwiGLUArgs are the arguments of ClampedSwiGLU.
type ClampedSwiGLUArgs struct {
	Input           *tensor.Tensor           `op:"0 input read compute [.. 2*h]"` // a, then b
	Output          *tensor.Tensor           `op:"1 output write =input [.. h]"`
	Limit           opregistry.OptionalFloat `op:"2 limit >=0"`                // 7 when left out
	Alpha           opregistry.OptionalFloat `op:"3 alpha finite"`             // 1.702 when left out
	GLULinearOffset opregistry.OptionalFloat `op:"4 glu_linear_offset finite"` // 1 when left out
}

// ClampedSwiGLU is SwiGLU with bounded halves and a shifted second one:
//
//	y[r,i] = a'·σ(alpha·a')·b'     a' = min(a, limit), b' = min(max(b, −limit), limit) + glu_linear_offset
//
// with a = x[r,i] and b = x[r,H+i]. limit may be infinite. A NaN in a or b gives NaN. Operands and
// dtypes are those of SwiGLU. Source: the feed-forward layers of GPT-OSS; TransformerEngine 2.17,
// clamped_swiglu.
var ClampedSwiGLU = opregistry.NewOp("clamped_swiglu", opregistry.Schema[ClampedSwiGLUArgs]{
	Doc:       "SwiGLU of bounded rows [a, b]",
	Tolerance: opregistry.Arithmetic(8e-6, 5e-6, "as swiglu, times values up to 8"),
})

// ClampedDSwiGLUArgs are the arguments of ClampedDSwiGLU.
type ClampedDSwiGLUArgs struct {
	Grad            *tensor.Tensor           `op:"0 grad read =fwd_input [.. h]"`                    // dy
	FwdInput        *tensor.Tensor           `op:"1 fwd_input read compute [.. 2*h] lead"`           // x, the input of ClampedSwiGLU
	Output          *tensor.Tensor           `op:"2 output write =fwd_input [.. 2*h] may=fwd_input"` // dx
	Limit           opregistry.OptionalFloat `op:"3 limit >=0"`                                      // 7 when left out
	Alpha           opregistry.OptionalFloat `op:"4 alpha finite"`                                   // 1.702 when left out
	GLULinearOffset opregistry.OptionalFloat `op:"5 glu_linear_offset finite"`                       // 1 when left out
}

// ClampedDSwiGLU is the gradient of ClampedSwiGLU. With s = σ(alpha·a'):
//
//	dx[r,i]   = dy·b'·(s + alpha·a'·s·(1−s))     0 where a > limit
//	dx[r,H+i] = dy·a'·s                          0 where b < −limit or b > limit
//
// At the bounds themselves the gradient passes. Operands and dtypes are those of DSwiGLU,
// constants are those of ClampedSwiGLU.
var ClampedDSwiGLU = opregistry.NewOp("clamped_dswiglu", opregistry.Schema[ClampedDSwiGLUArgs]{
	Doc:       "gradient of clamped_swiglu",
	Tolerance: opregistry.Arithmetic(1.6e-5, 1e-5, "as dqgelu, times values up to 8"),
})
