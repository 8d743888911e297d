package dropout

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// DropoutFwdArgs are the arguments of DropoutFwd.
type DropoutFwdArgs struct {
	Input              *tensor.Tensor `op:"0 input read compute [..]"`
	Out                *tensor.Tensor `op:"1 out write =input [..] may=input"`
	Mask               *tensor.Tensor `op:"2 mask write u8 contiguous"`
	DropoutProbability float32        `op:"3 dropout_probability [0,1)"`
	Seed               uint64         `op:"4 seed"`
	Offset             uint64         `op:"5 offset"`
	Saved              *opregistry.Saved
}

// DropoutFwd replaces random elements by 0 and scales up the others.
var DropoutFwd = opregistry.NewOp("dropout_fwd", opregistry.Schema[DropoutFwdArgs]{
	Doc: "elements replaced by 0 at random, the others scaled up",
	Formula: `
		dropout_fwd replaces random elements by 0 and scales up the others:

		  y[i] = x[i] / (1 − p) if keep[i], else 0      p = dropout_probability

		Elements are counted in row-major order, whatever the strides. keep[i] is bit i mod 8 of
		mask[⌊i/8⌋], counted from the lowest; the bits after the last element are 0. Dropped
		elements are not read: a NaN there disappears.

		keep depends on the arguments only and is the same in every impl: Philox4x32-10 with the key
		[seed mod 2³², ⌊seed/2³²⌋] and the counter [c mod 2³², ⌊c/2³²⌋, 0, 0], where c = (offset +
		⌊i/4⌋) mod 2⁶⁴, gives four words of 32 bits. Element i uses the word with index i mod 4, and
		keep[i] is word >= ⌊p·2³²⌋. The probability that an element is dropped is therefore p to
		within 2⁻³². A call uses the counters from offset to offset + ⌈n/4⌉ − 1; the next call must
		use others.

		Arithmetic is in f32 or better. Source: Srivastava et al. 2014, JMLR 15; Salmon et al. 2011,
		doi:10.1145/2063384.2063405, for Philox.

		Arguments:

		  input  x, n elements
		  out    y
		  mask   ⌈n/8⌉ elements: one bit per element of x
		  seed   of the random numbers

		Example:

		  input=[1 2 3 4 5] dropout_probability=0.5 seed=3 → out=[2 0 6 8 0] mask=u8[13]
	`,
	Family:    "dropout",
	Forward:   true,
	Check:     func(c *opregistry.Check, a *DropoutFwdArgs) { keepMask(c, a.Mask, a.Input) },
	Tolerance: keepTolerance,
})

// DropoutBwdArgs are the arguments of DropoutBwd.
type DropoutBwdArgs struct {
	GradOutput         *tensor.Tensor `op:"0 grad_output read compute [..]"`
	Mask               *tensor.Tensor `op:"1 mask read u8 contiguous"`
	GradInput          *tensor.Tensor `op:"2 grad_input write =grad_output [..] may=grad_output"`
	DropoutProbability float32        `op:"3 dropout_probability [0,1)"`
	Saved              *opregistry.Saved
}

// DropoutBwd is the gradient of DropoutFwd.
var DropoutBwd = opregistry.NewOp("dropout_bwd", opregistry.Schema[DropoutBwdArgs]{
	Doc: "gradient of dropout_fwd",
	Formula: `
		dropout_bwd is the gradient of dropout_fwd:

		  dx[i] = dy[i] / (1 − p) if keep[i], else 0

		with keep in the bits of mask.

		Arguments:

		  grad_output          dy
		  mask                 from dropout_fwd
		  grad_input           dx
		  dropout_probability  as given to dropout_fwd

		Example:

		  grad_output=[1 2 3 4 5] mask=u8[19] dropout_probability=0.5 → grad_input=[2 4 0 0 10]
	`,
	Family:    "dropout",
	Check:     func(c *opregistry.Check, a *DropoutBwdArgs) { keepMask(c, a.Mask, a.GradOutput) },
	Tolerance: keepTolerance,
})

// keepMask checks the number of bits for the elements of x.
func keepMask(c *opregistry.Check, mask, x *tensor.Tensor) {
	c.Elements("mask", mask, (x.NumElements()+7)/8, "one bit per element")
}

var keepTolerance = opregistry.Tolerance{
	Wide:   tensor.Tolerance{Rel: 0x1p-22, Abs: 0x1p-23},
	Narrow: tensor.Tolerance{ULP: 1},
	Reason: "one quotient, or a product with the rounded reciprocal",
}
