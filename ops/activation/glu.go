package activation

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// SwiGLUArgs are the arguments of SwiGLU.
type SwiGLUArgs = ActivationArgs

// DSwiGLUArgs are the arguments of DSwiGLU.
type DSwiGLUArgs = DActivationArgs

// SwiGLU multiplies the second half of each row by the SiLU of the first:
//
//	y[r,i] = a·σ(a)·b      a = x[r,i], b = x[r,H+i], σ(a) = 1/(1+e^−a)
//
// x is read, y is written; they are disjoint. Any compute dtype, one for both;
// arithmetic in f32. Source: Shazeer 2020, arXiv:2002.05202.
var SwiGLU = newGLU("swiglu", "SiLU-gated linear unit of rows [a, b]")

// GLU is SwiGLU with the logistic function in place of SiLU, y = σ(a)·b.
var GLU = newGLU("glu", "linear unit of rows [a, b] gated by the logistic function")

// GEGLU is SwiGLU with GELU in place of SiLU, y = gelu(a)·b.
var GEGLU = newGLU("geglu", "GELU-gated linear unit of rows [a, b]")

// QGEGLU is SwiGLU with QGELU in place of SiLU, y = qgelu(a)·b.
var QGEGLU = newGLU("qgeglu", "QGELU-gated linear unit of rows [a, b]")

// ReGLU is SwiGLU with ReLU in place of SiLU, y = max(a, 0)·b.
var ReGLU = newGLU("reglu", "ReLU-gated linear unit of rows [a, b]")

// SReGLU is SwiGLU with SReLU in place of SiLU, y = max(a, 0)²·b.
var SReGLU = newGLU("sreglu", "SReLU-gated linear unit of rows [a, b]")

// DSwiGLU is the gradient of SwiGLU:
//
//	dx[r,i]   = dy·b·(σ(a) + a·σ(a)·(1−σ(a)))
//	dx[r,H+i] = dy·a·σ(a)
//
// dy and x are read, dx is written; dx may be x. Dtypes are those of SwiGLU.
var DSwiGLU = newDGLU("dswiglu", "gradient of swiglu")

// DGLU is the gradient of GLU: dx = [dy·b·σ(a)·(1−σ(a)), dy·σ(a)], with the operands of DSwiGLU.
var DGLU = newDGLU("dglu", "gradient of glu")

// DGEGLU is the gradient of GEGLU: dx = [dy·b·gelu'(a), dy·gelu(a)], with the
// operands of DSwiGLU and the derivative of DGELU.
var DGEGLU = newDGLU("dgeglu", "gradient of geglu")

// DQGEGLU is the gradient of QGEGLU: dx = [dy·b·qgelu'(a), dy·qgelu(a)], with
// the operands of DSwiGLU and the derivative of DQGELU.
var DQGEGLU = newDGLU("dqgeglu", "gradient of qgeglu")

// DReGLU is the gradient of ReGLU: dx = [dy·b·relu'(a), dy·max(a, 0)], with the
// operands of DSwiGLU and the derivative of DReLU.
var DReGLU = newDGLU("dreglu", "gradient of reglu")

// DSReGLU is the gradient of SReGLU: dx = [dy·b·2·max(a, 0), dy·max(a, 0)²],
// with the operands of DSwiGLU.
var DSReGLU = newDGLU("dsreglu", "gradient of sreglu")

func newGLU(name, doc string) *opregistry.Op[ActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[ActivationArgs]{
		Doc: doc,
		Validate: func(a ActivationArgs) error {
			c := check.Call{Op: name}
			glu(&c, a)
			return c.Err
		},
		Lead:     ActivationArgs.lead,
		Operands: ActivationArgs.operands,
	})
}

func newDGLU(name, doc string) *opregistry.Op[DActivationArgs] {
	return opregistry.NewOp(name, opregistry.Schema[DActivationArgs]{
		Doc: doc,
		Validate: func(a DActivationArgs) error {
			c := check.Call{Op: name}
			dglu(&c, a)
			return c.Err
		},
		Lead:     DActivationArgs.lead,
		Operands: DActivationArgs.operands,
	})
}

func glu(c *check.Call, a ActivationArgs) {
	halved(c, "input", a.Input, "output", a.Output)
	c.Disjoint("output", a.Output, "input", a.Input)
}

func dglu(c *check.Call, a DActivationArgs) {
	halved(c, "fwd_input", a.FwdInput, "grad", a.Grad)
	attention.Like(c, "output", a.Output, "fwd_input", a.FwdInput)
	c.DisjointOrSame("output", a.Output, "fwd_input", a.FwdInput)
	c.Disjoint("output", a.Output, "grad", a.Grad)
}

// halved checks a tensor of rows [a, b] against one with rows of half the length.
func halved(c *check.Call, wideName string, wide *tensor.Tensor, halfName string, half *tensor.Tensor) {
	if !c.Compute(wideName, wide) || !c.Compute(halfName, half) ||
		!c.MinRank(wideName, wide, 1) || !c.MinRank(halfName, half, 1) {
		return
	}
	c.SameDType(halfName, half, wideName, wide)
	w, h := wide.Shape(), half.Shape()
	if len(w) != len(h) || !w[:len(w)-1].Equal(h[:len(h)-1]) || w.Cols() != 2*h.Cols() {
		c.Fail(halfName, "the axes of "+wideName+" "+w.String()+" with half the last one", "%v", half)
	}
}
