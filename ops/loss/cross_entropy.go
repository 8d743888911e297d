package loss

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// CrossEntropyFwdArgs are the arguments of CrossEntropyFwd.
type CrossEntropyFwdArgs struct {
	Logits      *tensor.Tensor `op:"0 logits read compute [.. vocab>0]"`
	Targets     *tensor.Tensor `op:"1 targets read index (rows) contiguous"`
	Losses      *tensor.Tensor `op:"2 losses write f32 (rows)"`
	LSE         *tensor.Tensor `op:"3 lse write f32 (rows)"`
	IgnoreIndex int            `op:"4 ignore_index"`
	Saved       *opregistry.Saved
}

// CrossEntropyFwd computes the negative log-likelihood of each target in nats.
var CrossEntropyFwd = opregistry.NewOp("cross_entropy_fwd", opregistry.Schema[CrossEntropyFwdArgs]{
	Doc: "negative log-likelihood of targets under a softmax of rows",
	Formula: `
		cross_entropy_fwd computes the negative log-likelihood of each target in nats:

		  lse[i]  = ln Σ_v exp(logits[i,v])
		  loss[i] = lse[i] − logits[i, target[i]], or 0 where target[i] = ignore_index

		The log-sum-exp subtracts the maximum and is f32 or better. Where it is infinite, because a
		logit is +Inf or all are −Inf, the loss is NaN. A target outside [0, vocab) other than
		ignore_index is an argument error.

		Arguments:

		  ignore_index  targets with this value are ignored; -100 by convention

		Example:

		  logits=[[0 1] [2 2] [5 6]] targets=i32[1 0 -100] ignore_index=-100 → losses=[0.3133 0.6931
		    0] lse=[1.313 2.693 6.313]
	`,
	Family:    "cross_entropy",
	Forward:   true,
	Check:     func(c *opregistry.Check, a *CrossEntropyFwdArgs) { targets(c, a.Logits, a.Targets, a.IgnoreIndex) },
	Tolerance: opregistry.Arithmetic(5e-5, 1e-5, "logits up to 200 carry 200·2⁻²⁴ into the log-sum-exp"),
})

// CrossEntropyBwdArgs are the arguments of CrossEntropyBwd.
type CrossEntropyBwdArgs struct {
	Logits      *tensor.Tensor `op:"0 logits read compute [.. vocab>0]"`
	Targets     *tensor.Tensor `op:"1 targets read index (rows) contiguous"`
	LSE         *tensor.Tensor `op:"2 lse read f32 (rows)"`
	DLosses     *tensor.Tensor `op:"3 dlosses read f32 (rows)"`
	DLogits     *tensor.Tensor `op:"4 dlogits write =logits [.. vocab>0] may=logits"`
	IgnoreIndex int            `op:"5 ignore_index"`
	Saved       *opregistry.Saved
}

// CrossEntropyBwd is the gradient of CrossEntropyFwd.
var CrossEntropyBwd = opregistry.NewOp("cross_entropy_bwd", opregistry.Schema[CrossEntropyBwdArgs]{
	Doc: "gradient of cross_entropy_fwd",
	Formula: `
		cross_entropy_bwd is the gradient of cross_entropy_fwd:

		  dlogits[i,v] = dlosses[i] · (exp(logits[i,v] − lse[i]) − [v = target[i]])

		and 0 in rows whose target is ignore_index, NaN in others whose lse is infinite. A large lse
		loses digits in f32: an impl that finds that it is the rounded log-sum-exp of the row uses
		the exact one. It may also be that of more logits, of which these are a part.

		Arguments:

		  logits   as cross_entropy_fwd
		  lse      from cross_entropy_fwd
		  dlosses  gradient of each loss

		Example:

		  logits=[[0 1] [5 6]] targets=i32[1 -100] lse=[1.3133 6.3133] dlosses=[1 1]
		    ignore_index=-100 → dlogits=[[0.2689 -0.269] [0 0]]
	`,
	Family:    "cross_entropy",
	Check:     func(c *opregistry.Check, a *CrossEntropyBwdArgs) { targets(c, a.Logits, a.Targets, a.IgnoreIndex) },
	Tolerance: opregistry.Arithmetic(2e-6, 2e-5, "differences logit − lse up to 200 carry 200·2⁻²⁴ into the exponent"),
})

func targets(c *opregistry.Check, logits, targets *tensor.Tensor, ignore int) {
	check.Labels(c, "targets", targets, logits.Shape().Cols(), ignore, true)
}
