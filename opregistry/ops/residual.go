package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ResidualAddArgs are the arguments of ResidualAdd.
type ResidualAddArgs struct {
	A, B   *tensor.Tensor
	Output *tensor.Tensor
}

// ResidualAdd adds two tensors of one shape:
//
//	out = a + b
//
// a and b are read, out is written; out may be a or b. Any compute dtype, one
// for all; the sum is formed in f32 or better and rounded once.
var ResidualAdd = opregistry.NewOp("residual_add", opregistry.Schema[ResidualAddArgs]{
	Doc: "elementwise sum of two tensors",
	Validate: func(a ResidualAddArgs) error {
		c := check{op: "residual_add"}
		if c.compute("a", a.A) && c.compute("b", a.B) && c.compute("output", a.Output) {
			c.sameDType("b", a.B, "a", a.A)
			c.sameShape("b", a.B, "a", a.A)
			c.sameDType("output", a.Output, "a", a.A)
			c.sameShape("output", a.Output, "a", a.A)
			c.disjointOrSame("output", a.Output, "a", a.A)
			c.disjointOrSame("output", a.Output, "b", a.B)
		}
		return c.err
	},
	Lead: func(a ResidualAddArgs) *tensor.Tensor { return a.A },
	Operands: func(a ResidualAddArgs) []opregistry.Operand {
		return operands{}.read("a", a.A).read("b", a.B).write("output", a.Output)
	},
})
