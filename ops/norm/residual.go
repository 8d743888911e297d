package norm

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// ResidualAddArgs are the arguments of ResidualAdd.
type ResidualAddArgs struct {
	A      *tensor.Tensor `op:"0 a read compute [..]"`
	B      *tensor.Tensor `op:"1 b read =a [..]"`
	Output *tensor.Tensor `op:"2 output write =a [..] may=a,b"`
}

// ResidualAdd adds two tensors of one shape.
var ResidualAdd = opregistry.NewOp("residual_add", opregistry.Schema[ResidualAddArgs]{
	Doc: "elementwise sum of two tensors",
	Formula: `
		residual_add adds two tensors of one shape:

		  out = a + b

		a and b are read, out is written; out may be a or b. Any compute dtype, one for all; the sum
		is formed in f32 or better and rounded once.

		Example:

		  a=[1 2] b=[0.5 -2] → output=[1.5 0]
	`,
	Tolerance: opregistry.Tolerance{
		Wide:   tensor.Tolerance{Rel: 0x1p-23, Abs: 0x1p-24},
		Reason: "one rounded sum; f32 holds the sum of two narrow values well enough to round it as if it were exact",
	},
})
