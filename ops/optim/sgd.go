package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorSGDArgs are the arguments of MultiTensorSGD.
type MultiTensorSGDArgs struct {
	NoopFlag        *tensor.Tensor     // i32 [1]: a call with a value other than 0 does nothing
	TensorLists     [][]*tensor.Tensor // g, p, momentum, and optionally a copy of p
	WD              float32
	Momentum        float32
	Dampening       float32
	LR              float32
	Nesterov        bool
	FirstRun        bool // the momentum is not initialised yet
	WDAfterMomentum bool
	Scale           float32 // factor of the gradients
}

// MultiTensorSGD performs one step of stochastic gradient descent for each tensor of the lists [g,
// p, mom]:
//
//	d = g·scale                                  (+ wd·p)
//	mom = d on the first run, otherwise momentum·mom + (1−dampening)·d
//	d = d + momentum·mom with Nesterov, otherwise mom
//	d                                            (+ wd·p with WDAfterMomentum)
//	p −= lr·d
//
// Weight decay is added in one of the two places. With a momentum of 0 the two lines about mom are
// skipped and mom does not change. A fourth list becomes the rounded copy of p. g is read; p and
// mom are updated in place, the copy is written; p, mom and the copy share memory with no other
// operand. Each may have any compute dtype; arithmetic is in f32 or better. Source: Sutskever et
// al. 2013 for Nesterov; TransformerEngine 2.14.
var MultiTensorSGD = opregistry.NewOp("multi_tensor_sgd", opregistry.Schema[MultiTensorSGDArgs]{
	Doc: "stochastic gradient descent step over lists of tensors, in place",
	Validate: func(a MultiTensorSGDArgs) error {
		c := check.Call{Op: "multi_tensor_sgd"}
		if len(a.TensorLists) != 3 && len(a.TensorLists) != 4 {
			c.Fail("tensor_lists", "3 lists (g, p, momentum) or 4 (and a copy of p)", "%d lists", len(a.TensorLists))
			return c.Err
		}
		c.Lists(a.TensorLists, a.NoopFlag)
		c.MultiTensorApart(a.TensorLists, check.AfterFirst, false, check.Single{Name: "noop_flag", Tensor: a.NoopFlag, Written: false})
		return c.Err
	},
	Operands: func(a MultiTensorSGDArgs) []opregistry.Operand {
		return check.Operands{}.Lists(a.TensorLists, opregistry.AccessRead, opregistry.AccessUpdate).Read("noop_flag", a.NoopFlag)
	},
})
