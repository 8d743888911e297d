package optim

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// MultiTensorSGDArgs are the arguments of MultiTensorSGD.
type MultiTensorSGDArgs struct {
	NoopFlag        *tensor.Tensor     `op:"0 noop_flag read i32 (1)"`
	TensorLists     [][]*tensor.Tensor `op:"1 tensor_lists"`
	WD              float32            `op:"2 wd"`
	Momentum        float32            `op:"3 momentum"`
	Dampening       float32            `op:"4 dampening"`
	LR              float32            `op:"5 lr"`
	Nesterov        bool               `op:"6 nesterov"`
	FirstRun        bool               `op:"7 first_run"`
	WDAfterMomentum bool               `op:"8 wd_after_momentum"`
	Scale           float32            `op:"9 scale"`
}

// MultiTensorSGD performs one step of stochastic gradient descent for each tensor of the lists [g,
// p, mom].
var MultiTensorSGD = opregistry.NewOp("multi_tensor_sgd", opregistry.Schema[MultiTensorSGDArgs]{
	Doc: "stochastic gradient descent step over lists of tensors, in place",
	Formula: `
		multi_tensor_sgd performs one step of stochastic gradient descent for each tensor of the
		lists [g, p, mom]:

		  d = g·scale                                  (+ wd·p)
		  mom = d on the first run, otherwise momentum·mom + (1−dampening)·d
		  d = d + momentum·mom with nesterov, otherwise mom
		  d                                            (+ wd·p with wd_after_momentum)
		  p −= lr·d

		Weight decay is added in one of the two places. With a momentum of 0 the two lines about mom
		are skipped and mom does not change. A fourth list becomes the rounded copy of p. Arithmetic
		is in f32 or better. Source: Sutskever et al. 2013 for nesterov; TransformerEngine 2.14.

		Arguments:

		  noop_flag     a call with a value other than 0 does nothing
		  tensor_lists  copy: of p, when there is a fourth list
		  first_run     the momentum is not initialised yet
		  scale         factor of the gradients

		Example:

		  noop_flag=i32[0] tensor_lists[0][0]=[1 -2] tensor_lists[1][0]=[1 1] tensor_lists[2][0]=[0
		    0.5] wd=0.1 momentum=0.9 lr=0.1 scale=1 → tensor_lists[1][0]=[0.89 1.145]
		    tensor_lists[2][0]=[1.1 -1.45]
	`,
	// A call that does nothing keeps the copy, so that is updated.
	Lists:     "g read compute lead; p update compute; momentum update compute; copy? update compute",
	Tolerance: opregistry.Arithmetic(1e-6, 1e-6, "five products and sums of magnitude 1"),
})
