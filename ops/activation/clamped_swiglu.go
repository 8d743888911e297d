package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// ClampedSwiGLUArgs are the arguments of ClampedSwiGLU.
type ClampedSwiGLUArgs struct {
	Input           *tensor.Tensor           // [.., 2H]: a, then b
	Output          *tensor.Tensor           // [.., H]
	Limit           opregistry.OptionalFloat // 7 when left out
	Alpha           opregistry.OptionalFloat // 1.702 when left out
	GLULinearOffset opregistry.OptionalFloat // 1 when left out
}

// ClampedSwiGLU is SwiGLU with bounded halves and a shifted second one:
//
//	y[r,i] = a'·σ(alpha·a')·b'     a' = min(a, limit), b' = min(max(b, −limit), limit) + glu_linear_offset
//
// with a = x[r,i] and b = x[r,H+i]. limit >= 0, and may be infinite; alpha and the offset are
// finite. A NaN in a or b gives NaN. Operands and dtypes are those of SwiGLU. Source: the
// feed-forward layers of GPT-OSS; TransformerEngine 2.17, clamped_swiglu.
var ClampedSwiGLU = opregistry.NewOp("clamped_swiglu", opregistry.Schema[ClampedSwiGLUArgs]{
	Doc: "SwiGLU of bounded rows [a, b]",
	Validate: func(a ClampedSwiGLUArgs) error {
		c := check.Call{Op: "clamped_swiglu"}
		glu(&c, ActivationArgs{Input: a.Input, Output: a.Output})
		clamp(&c, a.Limit, a.Alpha, a.GLULinearOffset)
		return c.Err
	},
	Lead: func(a ClampedSwiGLUArgs) *tensor.Tensor { return a.Input },
	Operands: func(a ClampedSwiGLUArgs) []opregistry.Operand {
		return ActivationArgs{Input: a.Input, Output: a.Output}.operands()
	},
})

// ClampedDSwiGLUArgs are the arguments of ClampedDSwiGLU.
type ClampedDSwiGLUArgs struct {
	Grad            *tensor.Tensor           // dy [.., H]
	FwdInput        *tensor.Tensor           // x [.., 2H], the input of ClampedSwiGLU
	Output          *tensor.Tensor           // dx [.., 2H]
	Limit           opregistry.OptionalFloat // 7 when left out
	Alpha           opregistry.OptionalFloat // 1.702 when left out
	GLULinearOffset opregistry.OptionalFloat // 1 when left out
}

// ClampedDSwiGLU is the gradient of ClampedSwiGLU. With s = σ(alpha·a'):
//
//	dx[r,i]   = dy·b'·(s + alpha·a'·s·(1−s))     0 where a > limit
//	dx[r,H+i] = dy·a'·s                          0 where b < −limit or b > limit
//
// At the bounds themselves the gradient passes. Operands and dtypes are those of DSwiGLU,
// constants are those of ClampedSwiGLU.
var ClampedDSwiGLU = opregistry.NewOp("clamped_dswiglu", opregistry.Schema[ClampedDSwiGLUArgs]{
	Doc: "gradient of clamped_swiglu",
	Validate: func(a ClampedDSwiGLUArgs) error {
		c := check.Call{Op: "clamped_dswiglu"}
		dglu(&c, DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output})
		clamp(&c, a.Limit, a.Alpha, a.GLULinearOffset)
		return c.Err
	},
	Lead: func(a ClampedDSwiGLUArgs) *tensor.Tensor { return a.FwdInput },
	Operands: func(a ClampedDSwiGLUArgs) []opregistry.Operand {
		return DActivationArgs{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output}.operands()
	},
})

func clamp(c *check.Call, limit, alpha, offset opregistry.OptionalFloat) {
	if l := limit.Or(0); c.Err == nil && !(l >= 0) {
		c.Fail("limit", "a number >= 0", "%v", l)
	}
	c.Finite("alpha", alpha.Or(0))
	c.Finite("glu_linear_offset", offset.Or(0))
}
