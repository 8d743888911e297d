package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// SoftcapArgs are the arguments of Softcap.
type SoftcapArgs struct {
	Input  *tensor.Tensor `op:"0 input read compute [..]"`
	Output *tensor.Tensor `op:"1 output write =input [..] may=input"`
	Limit  float32        `op:"2 limit"` // from 2⁻¹⁰⁰ to 2¹⁰⁰
}

// Softcap bounds numbers smoothly.
var Softcap = opregistry.NewOp("softcap", opregistry.Schema[SoftcapArgs]{
	Doc: "smooth bound of numbers by tanh",
	Formula: `
		softcap bounds numbers smoothly, such as the logits of Gemma 2:

		  y = limit · tanh(x/limit)

		Any compute dtype, one for both; arithmetic in f32 or better, one rounding. An infinite x gives
		the limit with its sign. Source: Gemma Team 2024, arXiv:2408.00118.

		Arguments:

		  input   x
		  output  y
		  limit   from 2⁻¹⁰⁰ to 2¹⁰⁰

		Example:

		  input=[-1 0 1 20] limit=2 → output=[-0.9242 0 0.9242 2]
	`,
	Tolerance: opregistry.Arithmetic(1e-6, 2e-6, "one exponential or a polynomial, and a quotient"),
	Check:     func(c *opregistry.Check, a *SoftcapArgs) { checkLimit(c, a.Limit) },
})

// DSoftcapArgs are the arguments of DSoftcap.
type DSoftcapArgs struct {
	Grad     *tensor.Tensor `op:"0 grad read =fwd_input [..]"`
	FwdInput *tensor.Tensor `op:"1 fwd_input read compute [..] lead"`
	Output   *tensor.Tensor `op:"2 output write =fwd_input [..] may=grad,fwd_input"`
	Limit    float32        `op:"3 limit"`
}

// DSoftcap is the gradient of Softcap.
var DSoftcap = opregistry.NewOp("dsoftcap", opregistry.Schema[DSoftcapArgs]{
	Doc: "gradient of softcap",
	Formula: `
		dsoftcap is the gradient of softcap:

		  dx = dy · (1 − tanh²(x/limit))

		Dtypes are those of softcap.

		Arguments:

		  grad       dy
		  fwd_input  x, the input of softcap
		  output     dx
		  limit      that of softcap

		Example:

		  grad=[1 1 2 1] fwd_input=[-1 0 1 20] limit=2 → output=[0.7864 1 1.573 0]
	`,
	Tolerance: opregistry.Arithmetic(2e-6, 1e-5, "1 − t² is off by 2⁻²³"),
	Check:     func(c *opregistry.Check, a *DSoftcapArgs) { checkLimit(c, a.Limit) },
})

// checkLimit requires a limit whose inverse has all digits.
func checkLimit(c *opregistry.Check, limit float32) {
	if !(limit >= 0x1p-100 && limit <= 0x1p100) {
		c.Fail("limit", "a number from 2⁻¹⁰⁰ to 2¹⁰⁰", "%v", limit)
	}
}
