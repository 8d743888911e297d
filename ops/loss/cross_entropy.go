package loss

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// CrossEntropyFwdArgs are the arguments of CrossEntropyFwd.
type CrossEntropyFwdArgs struct {
	Logits      *tensor.Tensor // [.., vocab] with n rows
	Targets     *tensor.Tensor // i32 or i64, n elements, contiguous
	Losses      *tensor.Tensor // f32, n elements
	LSE         *tensor.Tensor // f32, n elements
	IgnoreIndex int            // targets with this value are ignored; -100 by convention
	Saved       *opregistry.Saved
}

// CrossEntropyFwd computes the negative log-likelihood of each target in nats:
//
//	lse[i]  = ln Σ_v exp(logits[i,v])
//	loss[i] = lse[i] − logits[i, target[i]], or 0 where target[i] = ignore_index
//
// Logits and targets are read, losses and lse are written; all are disjoint. Any
// compute dtype; the log-sum-exp subtracts the maximum and is f32 or better. A
// target outside [0, vocab) other than ignore_index is an argument error.
var CrossEntropyFwd = opregistry.NewOp("cross_entropy_fwd", opregistry.Schema[CrossEntropyFwdArgs]{
	Doc:     "negative log-likelihood of targets under a softmax of rows",
	Family:  "cross_entropy",
	Forward: true,
	Saved:   func(a CrossEntropyFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a CrossEntropyFwdArgs) error {
		c := check.Call{Op: "cross_entropy_fwd"}
		logits(&c, a.Logits, a.Targets, a.IgnoreIndex, a.LSE)
		if c.DType("losses", a.Losses, tensor.F32) {
			c.Elements("losses", a.Losses, a.Logits.Shape().Rows(), "one a row")
		}
		c.Disjoint("losses", a.Losses, "logits", a.Logits)
		c.Disjoint("losses", a.Losses, "lse", a.LSE)
		c.Disjoint("losses", a.Losses, "targets", a.Targets)
		c.Disjoint("lse", a.LSE, "logits", a.Logits)
		c.Disjoint("lse", a.LSE, "targets", a.Targets)
		c.Saved(a.Saved)
		return c.Err
	},
	Lead: func(a CrossEntropyFwdArgs) *tensor.Tensor { return a.Logits },
	Operands: func(a CrossEntropyFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("logits", a.Logits).Read("targets", a.Targets).Write("losses", a.Losses).Write("lse", a.LSE)
	},
})

// CrossEntropyBwdArgs are the arguments of CrossEntropyBwd.
type CrossEntropyBwdArgs struct {
	Logits      *tensor.Tensor // as CrossEntropyFwd
	Targets     *tensor.Tensor
	LSE         *tensor.Tensor // from CrossEntropyFwd
	DLosses     *tensor.Tensor // f32, n elements: gradient of each loss
	DLogits     *tensor.Tensor // shape of logits
	IgnoreIndex int
	Saved       *opregistry.Saved
}

// CrossEntropyBwd is the gradient of CrossEntropyFwd:
//
//	dlogits[i,v] = dlosses[i] · (exp(logits[i,v] − lse[i]) − [v = target[i]])
//
// and 0 in rows whose target is ignore_index. Everything but dlogits is read;
// dlogits is written and may be logits. Dtypes are those of CrossEntropyFwd.
var CrossEntropyBwd = opregistry.NewOp("cross_entropy_bwd", opregistry.Schema[CrossEntropyBwdArgs]{
	Doc:    "gradient of cross_entropy_fwd",
	Family: "cross_entropy",
	Saved:  func(a CrossEntropyBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a CrossEntropyBwdArgs) error {
		c := check.Call{Op: "cross_entropy_bwd"}
		logits(&c, a.Logits, a.Targets, a.IgnoreIndex, a.LSE)
		if c.DType("dlosses", a.DLosses, tensor.F32) {
			c.Elements("dlosses", a.DLosses, a.Logits.Shape().Rows(), "one a row")
		}
		if c.Compute("dlogits", a.DLogits) {
			c.SameDType("dlogits", a.DLogits, "logits", a.Logits)
			c.SameShape("dlogits", a.DLogits, "logits", a.Logits)
			c.DisjointOrSame("dlogits", a.DLogits, "logits", a.Logits)
			c.Disjoint("dlogits", a.DLogits, "lse", a.LSE)
			c.Disjoint("dlogits", a.DLogits, "dlosses", a.DLosses)
			c.Disjoint("dlogits", a.DLogits, "targets", a.Targets)
		}
		c.Saved(a.Saved)
		return c.Err
	},
	Lead: func(a CrossEntropyBwdArgs) *tensor.Tensor { return a.Logits },
	Operands: func(a CrossEntropyBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("logits", a.Logits).Read("targets", a.Targets).Read("lse", a.LSE).
			Read("dlosses", a.DLosses).Write("dlogits", a.DLogits)
	},
})

func logits(c *check.Call, logits, targets *tensor.Tensor, ignore int, lse *tensor.Tensor) {
	if !c.Compute("logits", logits) || !c.MinRank("logits", logits, 1) || !c.Index("targets", targets) {
		return
	}
	if logits.Shape().Cols() == 0 {
		c.Fail("logits", "rows of at least one element", "%v", logits)
	}
	c.Elements("targets", targets, logits.Shape().Rows(), "one a row of logits")
	embedding.Labels(c, "targets", targets, logits.Shape().Cols(), ignore, true)
	if c.DType("lse", lse, tensor.F32) {
		c.Elements("lse", lse, logits.Shape().Rows(), "one a row")
	}
}
