package moe

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// ScoreFunction computes the scores of experts from logits.
type ScoreFunction uint8

// The score functions, with TransformerEngine's numbers plus one.
const (
	ScoreFunctionUnspecified ScoreFunction = iota
	SigmoidScore                           // σ(x)
	SoftmaxScore                           // softmax over the experts
	SqrtSoftplusScore                      // √ln(1 + eˣ)
)

// String returns the score function in TransformerEngine's spelling.
func (f ScoreFunction) String() string {
	if f < SigmoidScore || f > SqrtSoftplusScore {
		return fmt.Sprintf("score_function(%d)", uint8(f))
	}
	return [...]string{"sigmoid", "softmax", "sqrtsoftplus"}[f-SigmoidScore]
}

// FusedTopkWithScoreFunctionFwdArgs are the arguments of FusedTopkWithScoreFunctionFwd.
type FusedTopkWithScoreFunctionFwdArgs struct {
	Logits             *tensor.Tensor           `op:"0 logits read compute [tokens experts]"`
	Topk               int                      `op:"1 topk"`
	UsePreSoftmax      bool                     `op:"2 use_pre_softmax"`
	NumGroups          int                      `op:"3 num_groups"`
	GroupTopk          int                      `op:"4 group_topk >=0"`
	ScalingFactor      opregistry.OptionalFloat `op:"5 scaling_factor"`
	ScoreFunction      ScoreFunction            `op:"6 score_function"`
	ExpertBias         *tensor.Tensor           `op:"7 expert_bias read compute [experts] ?"`
	Probs              *tensor.Tensor           `op:"8 probs write =logits [tokens experts]"`
	RoutingMap         *tensor.Tensor           `op:"9 routing_map write bool [tokens experts]"`
	IntermediateOutput *tensor.Tensor           `op:"10 intermediate_output write f32 masked [tokens experts]"`
	Saved              *opregistry.Saved
}

// FusedTopkWithScoreFunctionFwd chooses topk experts for each token and weights them.
var FusedTopkWithScoreFunctionFwd = opregistry.NewOp("fused_topk_with_score_function_fwd", opregistry.Schema[FusedTopkWithScoreFunctionFwdArgs]{
	Doc: "choice and weights of the experts of each token",
	Formula: `
		fused_topk_with_score_function_fwd chooses topk experts for each token and weights them.
		With x the logits of a token, s its scores and ε = 1e-20:

		  softmax, pre:  s = softmax(x)      p_e = s_e
		  softmax:       s = x               p_e = exp(x_e) / Σ_chosen exp(x)
		  sigmoid:       s = σ(x)            p_e = s_e / (Σ_chosen s + ε), s_e when topk is 1
		  sqrtsoftplus:  s = √ln(1 + eˣ)     p_e as sigmoid
		  probs_e = scaling_factor · p_e where e is chosen, else 0

		The experts with the topk largest s + expert_bias are chosen, of equal ones the first; the
		bias does not enter p. Without a bias the logits are compared, whose order is that of s, so
		that scores which are equal only by rounding stay apart. With group_topk only the experts of the best group_topk groups are
		considered; the value of a group is the sum of its topk/group_topk largest values. A NaN is
		chosen first, as by torch.topk, and all of a softmax over +Inf, or over −Inf alone, is NaN.
		routing_map marks the chosen experts.

		intermediate_output is what the gradient needs: s for softmax, pre, and sigmoid; p where
		chosen and −∞ elsewhere for softmax; x for sqrtsoftplus.

		Arithmetic is in f32 or better. use_pre_softmax has no meaning for the other score
		functions. Source: TransformerEngine 2.14.

		Arguments:

		  use_pre_softmax  softmax over all experts before the choice, not over the chosen ones after it; softmax only
		  num_groups       with group_topk: how many groups of equal size the experts form
		  group_topk       from how many groups experts are chosen, 0 for all
		  scaling_factor   1 when left out
		  expert_bias      nil for 0; not with softmax

		Example:

		  logits=[[1 2 0]] topk=2 score_function=softmax → probs=[[0.2689 0.7311 0]]
		    routing_map=bool[[1 1 0]] intermediate_output=[[0.2689 0.7311 -Inf]]
		  logits=[[1 2 0]] topk=2 score_function=sigmoid scaling_factor=2 → probs=[[0.9071 1.093 0]]
		    routing_map=bool[[1 1 0]] intermediate_output=[[0.7311 0.8808 0.5]]
	`,
	Family:    "fused_topk_with_score_function",
	Forward:   true,
	Check:     topk,
	Tolerance: opregistry.Arithmetic(1e-6, 5e-6, "one exponential of 2 ulp, a sum of up to 64 scores and a quotient"),
})

func topk(c *opregistry.Check, a *FusedTopkWithScoreFunctionFwdArgs) {
	experts := a.Logits.Shape()[1]
	router(c, experts, a.Topk, a.ScoreFunction)
	switch {
	case a.GroupTopk > 0 && (a.NumGroups < 1 || experts%a.NumGroups != 0):
		c.Fail("num_groups", "a number that divides the "+check.Itoa(experts)+" experts", "%d", a.NumGroups)
	case a.GroupTopk > a.NumGroups:
		c.Fail("group_topk", "at most the "+check.Itoa(a.NumGroups)+" groups", "%d", a.GroupTopk)
	case a.GroupTopk > 0 && (a.Topk%a.GroupTopk != 0 || a.Topk/a.GroupTopk > experts/a.NumGroups):
		c.Fail("topk", "a multiple of group_topk that its groups of "+check.Itoa(experts/a.NumGroups)+" experts can fill", "%d", a.Topk)
	case a.ScoreFunction == SoftmaxScore:
		c.Absent("expert_bias", a.ExpertBias, "with softmax")
	}
}

// FusedTopkWithScoreFunctionBwdArgs are the arguments of FusedTopkWithScoreFunctionBwd.
type FusedTopkWithScoreFunctionBwdArgs struct {
	RoutingMap         *tensor.Tensor           `op:"0 routing_map read bool [tokens experts]"`
	IntermediateOutput *tensor.Tensor           `op:"1 intermediate_output read f32 [tokens experts]"`
	GradProbs          *tensor.Tensor           `op:"2 grad_probs read compute [tokens experts] lead"`
	GradLogits         *tensor.Tensor           `op:"3 grad_logits write =grad_probs [tokens experts] may=grad_probs"`
	Topk               int                      `op:"4 topk"`
	UsePreSoftmax      bool                     `op:"5 use_pre_softmax"`
	ScalingFactor      opregistry.OptionalFloat `op:"6 scaling_factor"`
	ScoreFunction      ScoreFunction            `op:"7 score_function"`
	Saved              *opregistry.Saved
}

// FusedTopkWithScoreFunctionBwd is the gradient of FusedTopkWithScoreFunctionFwd with respect to
// the logits.
var FusedTopkWithScoreFunctionBwd = opregistry.NewOp("fused_topk_with_score_function_bwd", opregistry.Schema[FusedTopkWithScoreFunctionBwdArgs]{
	Doc: "gradient of fused_topk_with_score_function_fwd",
	Formula: `
		fused_topk_with_score_function_bwd is the gradient of fused_topk_with_score_function_fwd
		with respect to the logits. The choice is not differentiated: with g = scaling_factor ·
		grad_probs where chosen and 0 elsewhere, and N = Σ_chosen s + ε,

		  softmax, pre and not:   grad_logits = p∘(g − Σ p·g)
		  sigmoid, sqrtsoftplus:  ds = g/N − Σ g·s/N² where chosen, g when topk is 1
		                          grad_logits = ds·s·(1−s),  ds·σ(x)/(2s + ε)

		Source: TransformerEngine 2.14.

		Arguments:

		  routing_map          from fused_topk_with_score_function_fwd
		  intermediate_output  from fused_topk_with_score_function_fwd
		  scaling_factor       1 when left out

		Example:

		  routing_map=bool[[1 1 0]] intermediate_output=[[0.25 0.75 0]] grad_probs=[[1 0 5]] topk=2
		    score_function=softmax → grad_logits=[[0.1875 -0.1875 0]]
	`,
	Family: "fused_topk_with_score_function",
	Check: func(c *opregistry.Check, a *FusedTopkWithScoreFunctionBwdArgs) {
		router(c, a.GradProbs.Shape()[1], a.Topk, a.ScoreFunction)
	},
	Tolerance: opregistry.Arithmetic(5e-6, 5e-6, "differences of sums of up to 64 products that cancel"),
})

// router checks what the ops of a router share.
func router(c *opregistry.Check, experts, topk int, f ScoreFunction) {
	if f < SigmoidScore || f > SqrtSoftplusScore {
		c.Fail("score_function", "sigmoid, softmax or sqrtsoftplus", "%v", f)
	}
	if topk < 1 || topk > experts {
		c.Fail("topk", "a number from 1 to the "+check.Itoa(experts)+" experts", "%d", topk)
	}
}
