package loss

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// LinearCrossEntropyFwdArgs are the arguments of LinearCrossEntropyFwd.
type LinearCrossEntropyFwdArgs struct {
	Hidden      *tensor.Tensor `op:"0 hidden read compute [.. h]"`
	Weight      *tensor.Tensor `op:"1 weight read =hidden [vocab>0 h]"`
	Targets     *tensor.Tensor `op:"2 targets read index (rows) contiguous"`
	Losses      *tensor.Tensor `op:"3 losses write f32 (rows)"`
	LSE         *tensor.Tensor `op:"4 lse write f32 (rows)"`
	DLosses     *tensor.Tensor `op:"5 dlosses read f32 (rows) ?"`
	DHidden     *tensor.Tensor `op:"6 dhidden write =hidden [.. h] ?:dlosses"`
	DWeight     *tensor.Tensor `op:"7 dweight write|update:accumulate compute [vocab h] ?"`
	IgnoreIndex int            `op:"8 ignore_index"`
	First       int            `op:"9 first"`
	Classes     int            `op:"10 classes"`
	Accumulate  bool           `op:"11 accumulate"`
	Saved       *opregistry.Saved
}

// LinearCrossEntropyFwd computes the cross entropy of an output layer, and its gradient where that
// of each loss is known. No impl keeps the logits.
var LinearCrossEntropyFwd = opregistry.NewOp("linear_cross_entropy_fwd", opregistry.Schema[LinearCrossEntropyFwdArgs]{
	Doc: "cross entropy of an output layer, with its gradient where that of the losses is known",
	Formula: `
		linear_cross_entropy_fwd computes cross_entropy_fwd of the logits hidden·weightᵀ, which it
		does not keep:

		  logits  = hidden · weightᵀ
		  lse[i]  = ln Σ_v exp(logits[i,v])
		  loss[i] = lse[i] − logits[i, target[i] − first], or 0 where target[i] = ignore_index

		The rows of weight are the classes from first on of a vocabulary of so many classes. The
		loss is 0 where the target is a class of another part of the vocabulary. With dlosses, the
		gradient of each loss, it computes those of linear_cross_entropy_bwd, too; this needs one
		product less than to compute them afterwards. Then weight is the whole vocabulary.

		Sums are f32 or better. Where lse is infinite, the loss and the gradients are NaN. A target
		outside [0, classes) other than ignore_index is an argument error. An impl may round the
		gradient of the logits to the dtype of hidden.

		Arguments:

		  dlosses       gradient of each loss; nil for the losses alone
		  dweight       nil when not wanted; only with dlosses
		  ignore_index  targets with this value are ignored; -100 by convention
		  first         the class of the first row of weight
		  classes       those of the whole vocabulary; 0 for the rows of weight from first 0
		  accumulate    dweight is added to

		Example:

		  hidden=[[1 0] [0 2]] weight=[[0 0] [1 1]] targets=i32[1 -100] ignore_index=-100 →
		    losses=[0.3133 0] lse=[1.313 2.127]
		  hidden=[[1 0]] weight=[[0 0] [1 1]] targets=i32[1] dlosses=[1] ignore_index=-100 →
		    losses=[0.3133] lse=[1.313] dhidden=[[-0.2689 -0.2689]] dweight=[[0.2689 0] [-0.2689 0]]
	`,
	Family:  "linear_cross_entropy",
	Forward: true,
	Check: func(c *opregistry.Check, a *LinearCrossEntropyFwdArgs) {
		classes := a.vocabulary(c)
		if a.DLosses == nil && a.DWeight != nil {
			c.Fail("dweight", "nil without dlosses", "%v", a.DWeight)
		}
		if a.DWeight == nil && a.Accumulate {
			c.Fail("accumulate", "false without dweight", "true")
		}
		if a.DLosses != nil && classes != a.Weight.Shape()[0] {
			c.Fail("dlosses", "nil where weight is a part of the vocabulary", "%v", a.DLosses)
		}
	},
	Tolerance: linearTolerance,
})

// LinearCrossEntropyBwdArgs are the arguments of LinearCrossEntropyBwd.
type LinearCrossEntropyBwdArgs struct {
	Hidden      *tensor.Tensor `op:"0 hidden read compute [.. h]"`
	Weight      *tensor.Tensor `op:"1 weight read =hidden [vocab>0 h]"`
	Targets     *tensor.Tensor `op:"2 targets read index (rows) contiguous"`
	LSE         *tensor.Tensor `op:"3 lse read f32 (rows)"`
	DLosses     *tensor.Tensor `op:"4 dlosses read f32 (rows)"`
	DHidden     *tensor.Tensor `op:"5 dhidden write =hidden [.. h]"`
	DWeight     *tensor.Tensor `op:"6 dweight write|update:accumulate compute [vocab h] ?"`
	IgnoreIndex int            `op:"7 ignore_index"`
	First       int            `op:"8 first"`
	Classes     int            `op:"9 classes"`
	Accumulate  bool           `op:"10 accumulate"`
	Saved       *opregistry.Saved
}

// LinearCrossEntropyBwd is the gradient of LinearCrossEntropyFwd.
var LinearCrossEntropyBwd = opregistry.NewOp("linear_cross_entropy_bwd", opregistry.Schema[LinearCrossEntropyBwdArgs]{
	Doc: "gradient of linear_cross_entropy_fwd",
	Formula: `
		linear_cross_entropy_bwd is the gradient of linear_cross_entropy_fwd. It computes the logits
		again:

		  dlogits[i,v] = dlosses[i] · (exp(logits[i,v] − lse[i]) − [first + v = target[i]])
		  dhidden      = dlogits · weight
		  dweight      = dlogitsᵀ · hidden

		and dlogits is 0 in rows whose target is ignore_index, NaN in others whose lse is infinite.
		A large lse loses digits in f32: an impl that finds that it is the rounded log-sum-exp of
		the row uses the exact one. lse is that of the whole vocabulary: where weight is a part of
		it, the sum of dhidden over all parts is the gradient of hidden.

		Arguments:

		  hidden   as linear_cross_entropy_fwd
		  lse      from linear_cross_entropy_fwd, of all parts of the vocabulary
		  dlosses  gradient of each loss
		  dweight  nil when not wanted

		Example:

		  hidden=[[1 0]] weight=[[0 0] [1 1]] targets=i32[1] lse=[1.3133] dlosses=[1]
		    ignore_index=-100 → dhidden=[[-0.2689 -0.2689]] dweight=[[0.2689 0] [-0.2689 0]]
	`,
	Family: "linear_cross_entropy",
	Check: func(c *opregistry.Check, a *LinearCrossEntropyBwdArgs) {
		fwd := LinearCrossEntropyFwdArgs{Weight: a.Weight, Targets: a.Targets, IgnoreIndex: a.IgnoreIndex, First: a.First, Classes: a.Classes}
		fwd.vocabulary(c)
		if a.DWeight == nil && a.Accumulate {
			c.Fail("accumulate", "false without dweight", "true")
		}
	},
	Tolerance: linearTolerance,
})

// linearTolerance allows narrow gradients to be sums of products of gradients of logits that were
// rounded to 8 bits.
var linearTolerance = opregistry.Tolerance{
	Wide:   tensor.Tolerance{Abs: 5e-5, Rel: 5e-5},
	Narrow: tensor.Tolerance{Abs: 2e-2, Rel: 1e-2, ULP: 1},
	Reason: "logits up to 100 carry 100·2⁻²⁴ into the exponent; narrow: products of gradients of logits, each rounded by 2⁻⁹",
}

// vocabulary checks the targets and the place of the rows of weight among the classes, and returns
// the number of classes.
func (a *LinearCrossEntropyFwdArgs) vocabulary(c *opregistry.Check) int {
	rows := a.Weight.Shape()[0]
	classes := a.Classes
	if classes == 0 {
		classes = rows
	}
	if a.First < 0 || a.First > classes-rows {
		c.Fail("first", "a place for "+check.Itoa(rows)+" rows of weight among "+check.Itoa(classes)+" classes", "%d", a.First)
		return classes
	}
	check.Labels(c, "targets", a.Targets, classes, a.IgnoreIndex, true)
	return classes
}
