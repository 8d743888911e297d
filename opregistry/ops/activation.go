package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// SwiGLUArgs are the arguments of SwiGLU.
type SwiGLUArgs struct {
	Input  *tensor.Tensor // [.., 2H]: a, then b
	Output *tensor.Tensor // [.., H]
}

// SwiGLU multiplies the second half of each row by the SiLU of the first:
//
//	y[r,i] = a·σ(a)·b      a = x[r,i], b = x[r,H+i], σ(a) = 1/(1+e^−a)
//
// x is read, y is written; they are disjoint. Any compute dtype, one for both;
// arithmetic in f32. Source: Shazeer 2020, arXiv:2002.05202.
var SwiGLU = opregistry.NewOp("swiglu", opregistry.Schema[SwiGLUArgs]{
	Doc: "SiLU-gated linear unit of rows [a, b]",
	Validate: func(a SwiGLUArgs) error {
		c := check{op: "swiglu"}
		c.glu("input", a.Input, "output", a.Output)
		c.disjoint("output", a.Output, "input", a.Input)
		return c.err
	},
	Lead: func(a SwiGLUArgs) *tensor.Tensor { return a.Input },
	Operands: func(a SwiGLUArgs) []opregistry.Operand {
		return operands{}.read("input", a.Input).write("output", a.Output)
	},
})

// DSwiGLUArgs are the arguments of DSwiGLU.
type DSwiGLUArgs struct {
	Grad     *tensor.Tensor // dy [.., H]
	FwdInput *tensor.Tensor // x [.., 2H], the input of SwiGLU
	Output   *tensor.Tensor // dx [.., 2H]
}

// DSwiGLU is the gradient of SwiGLU:
//
//	dx[r,i]   = dy·b·(σ(a) + a·σ(a)·(1−σ(a)))
//	dx[r,H+i] = dy·a·σ(a)
//
// dy and x are read, dx is written; dx may be x. Dtypes as SwiGLU.
var DSwiGLU = opregistry.NewOp("dswiglu", opregistry.Schema[DSwiGLUArgs]{
	Doc: "gradient of swiglu",
	Validate: func(a DSwiGLUArgs) error {
		c := check{op: "dswiglu"}
		c.glu("fwd_input", a.FwdInput, "grad", a.Grad)
		if c.compute("output", a.Output) {
			c.sameDType("output", a.Output, "fwd_input", a.FwdInput)
			c.sameShape("output", a.Output, "fwd_input", a.FwdInput)
			c.disjointOrSame("output", a.Output, "fwd_input", a.FwdInput)
			c.disjoint("output", a.Output, "grad", a.Grad)
		}
		return c.err
	},
	Lead: func(a DSwiGLUArgs) *tensor.Tensor { return a.FwdInput },
	Operands: func(a DSwiGLUArgs) []opregistry.Operand {
		return operands{}.read("grad", a.Grad).read("fwd_input", a.FwdInput).write("output", a.Output)
	},
})

// glu checks a tensor of rows [a, b] against one with rows of half the length.
func (c *check) glu(wideName string, wide *tensor.Tensor, halfName string, half *tensor.Tensor) {
	if !c.compute(wideName, wide) || !c.compute(halfName, half) ||
		!c.minRank(wideName, wide, 1) || !c.minRank(halfName, half, 1) {
		return
	}
	c.sameDType(halfName, half, wideName, wide)
	w, h := wide.Shape(), half.Shape()
	if len(w) != len(h) || !w[:len(w)-1].Equal(h[:len(h)-1]) || w.Cols() != 2*h.Cols() {
		c.fail(halfName, "the axes of "+wideName+" "+w.String()+" with half the last one", "%v", half)
	}
}

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
