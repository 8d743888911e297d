package dropout

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// DropoutFwdArgs are the arguments of DropoutFwd.
type DropoutFwdArgs struct {
	Input              *tensor.Tensor // x, n elements
	Out                *tensor.Tensor // y, shape of x
	Mask               *tensor.Tensor // u8 [⌈n/8⌉], contiguous: one bit per element
	DropoutProbability float32        // in [0, 1)
	Seed, Offset       uint64         // of the random numbers
	Saved              *opregistry.Saved
}

// DropoutFwd replaces random elements by 0 and scales up the others:
//
//	y[i] = x[i] / (1 − p) if keep[i], else 0      p = dropout_probability
//
// Elements are counted in row-major order, whatever the strides. keep[i] is bit i mod 8 of
// mask[⌊i/8⌋], counted from the lowest; the bits after the last element are 0. Dropped elements are
// not read: a NaN there disappears.
//
// keep depends on the arguments only and is the same in every impl: Philox4x32-10 with the key
// [seed mod 2³², ⌊seed/2³²⌋] and the counter [c mod 2³², ⌊c/2³²⌋, 0, 0], where c = (offset + ⌊i/4⌋)
// mod 2⁶⁴, gives four words of 32 bits. Element i uses the word with index i mod 4, and keep[i] is
// word >= ⌊p·2³²⌋. The probability that an element is dropped is therefore p to within 2⁻³². A call
// uses the counters from offset to offset + ⌈n/4⌉ − 1; the next call must use others.
//
// x is read, y and mask are written; y may be x. x and y have one compute dtype; arithmetic is in
// f32 or better. Source: Srivastava et al. 2014, JMLR 15; Salmon et al. 2011,
// doi:10.1145/2063384.2063405, for Philox.
var DropoutFwd = opregistry.NewOp("dropout_fwd", opregistry.Schema[DropoutFwdArgs]{
	Doc:     "elements replaced by 0 at random, the others scaled up",
	Family:  "dropout",
	Forward: true,
	Saved:   func(a DropoutFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a DropoutFwdArgs) error {
		c := check.Call{Op: "dropout_fwd"}
		if c.Compute("input", a.Input) {
			attention.Like(&c, "out", a.Out, "input", a.Input)
			c.DisjointOrSame("out", a.Out, "input", a.Input)
			keepMask(&c, a.Mask, a.Input.NumElements())
			c.Disjoint("mask", a.Mask, "input", a.Input)
			c.Disjoint("mask", a.Mask, "out", a.Out)
		}
		dropoutProbability(&c, a.DropoutProbability)
		c.Saved(a.Saved)
		return c.Err
	},
	Lead: func(a DropoutFwdArgs) *tensor.Tensor { return a.Input },
	Operands: func(a DropoutFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("input", a.Input).Write("out", a.Out).Write("mask", a.Mask)
	},
})

// DropoutBwdArgs are the arguments of DropoutBwd.
type DropoutBwdArgs struct {
	GradOutput         *tensor.Tensor // dy
	Mask               *tensor.Tensor // from DropoutFwd
	GradInput          *tensor.Tensor // dx, shape of dy
	DropoutProbability float32        // as given to DropoutFwd
	Saved              *opregistry.Saved
}

// DropoutBwd is the gradient of DropoutFwd:
//
//	dx[i] = dy[i] / (1 − p) if keep[i], else 0
//
// with keep in the bits of mask. dy and mask are read, dx is written; dx may be
// dy. Dtypes are those of DropoutFwd.
var DropoutBwd = opregistry.NewOp("dropout_bwd", opregistry.Schema[DropoutBwdArgs]{
	Doc:    "gradient of dropout_fwd",
	Family: "dropout",
	Saved:  func(a DropoutBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a DropoutBwdArgs) error {
		c := check.Call{Op: "dropout_bwd"}
		if c.Compute("grad_output", a.GradOutput) {
			keepMask(&c, a.Mask, a.GradOutput.NumElements())
			attention.Like(&c, "grad_input", a.GradInput, "grad_output", a.GradOutput)
			c.DisjointOrSame("grad_input", a.GradInput, "grad_output", a.GradOutput)
			c.Disjoint("grad_input", a.GradInput, "mask", a.Mask)
		}
		dropoutProbability(&c, a.DropoutProbability)
		c.Saved(a.Saved)
		return c.Err
	},
	Lead: func(a DropoutBwdArgs) *tensor.Tensor { return a.GradOutput },
	Operands: func(a DropoutBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("grad_output", a.GradOutput).Read("mask", a.Mask).Write("grad_input", a.GradInput)
	},
})

// keepMask checks the bits of n elements.
func keepMask(c *check.Call, t *tensor.Tensor, n int) {
	if c.DType("mask", t, tensor.U8) {
		c.Elements("mask", t, (n+7)/8, "a bit an element")
		c.Contiguous("mask", t)
	}
}

func dropoutProbability(c *check.Call, p float32) {
	if c.Err == nil && !(p >= 0 && p < 1) {
		c.Fail("dropout_probability", "a number in [0, 1)", "%v", p)
	}
}
