package ops

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
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
	Logits             *tensor.Tensor // [tokens, experts]
	Topk               int
	UsePreSoftmax      bool          // softmax over all experts before the choice, not over the chosen ones after it; SoftmaxScore only
	NumGroups          int           // with GroupTopk: how many groups of equal size the experts form
	GroupTopk          int           // from how many groups experts are chosen, 0 for all
	ScalingFactor      OptionalFloat // 1 when left out
	ScoreFunction      ScoreFunction
	ExpertBias         *tensor.Tensor // [experts], nil for 0; not with SoftmaxScore
	Probs              *tensor.Tensor // [tokens, experts]
	RoutingMap         *tensor.Tensor // bool [tokens, experts]
	IntermediateOutput *tensor.Tensor // f32 [tokens, experts]
	Saved              *opregistry.Saved
}

// FusedTopkWithScoreFunctionFwd chooses topk experts for each token and weights them. With x the
// logits of a token, s its scores and ε = 1e-20:
//
//	softmax, pre:  s = softmax(x)      p_e = s_e
//	softmax:       s = x               p_e = exp(x_e) / Σ_chosen exp(x)
//	sigmoid:       s = σ(x)            p_e = s_e / (Σ_chosen s + ε), s_e when topk is 1
//	sqrtsoftplus:  s = √ln(1 + eˣ)     p_e as sigmoid
//	probs_e = scaling_factor · p_e where e is chosen, else 0
//
// The experts with the topk largest s + expert_bias are chosen, of equal ones the first; the bias
// does not enter p. With group_topk only the experts of the best group_topk groups are considered;
// the value of a group is the sum of its topk/group_topk largest values. A NaN is chosen last.
// Routing_map marks the chosen experts.
//
// Intermediate_output is what the gradient needs: s for softmax, pre, and sigmoid; p where chosen
// and −∞ elsewhere for softmax; x for sqrtsoftplus.
//
// Logits and expert_bias are read, the others are written; all are disjoint. Logits and probs have
// one compute dtype, expert_bias may have any; arithmetic is in f32 or better. UsePreSoftmax has no
// meaning for the other score functions. Source: TransformerEngine 2.14.
var FusedTopkWithScoreFunctionFwd = opregistry.NewOp("fused_topk_with_score_function_fwd", opregistry.Schema[FusedTopkWithScoreFunctionFwdArgs]{
	Doc:      "choice and weights of the experts of each token",
	Family:   "fused_topk_with_score_function",
	Forward:  true,
	Saved:    func(a FusedTopkWithScoreFunctionFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: validateTopk,
	Operands: func(a FusedTopkWithScoreFunctionFwdArgs) []opregistry.Operand {
		return operands{}.read("logits", a.Logits).read("expert_bias", a.ExpertBias).write("probs", a.Probs).
			write("routing_map", a.RoutingMap).write("intermediate_output", a.IntermediateOutput)
	},
})

func validateTopk(a FusedTopkWithScoreFunctionFwdArgs) error {
	c := check{op: "fused_topk_with_score_function_fwd"}
	c.router("logits", a.Logits, a.Topk, a.ScoreFunction)
	c.like("probs", a.Probs, "logits", a.Logits)
	if c.err != nil {
		return c.err
	}
	experts := a.Logits.Shape()[1]
	switch {
	case a.GroupTopk < 0:
		c.fail("group_topk", "a number >= 0", "%d", a.GroupTopk)
	case a.GroupTopk > 0 && (a.NumGroups < 1 || experts%a.NumGroups != 0):
		c.fail("num_groups", "a number that divides the "+itoa(experts)+" experts", "%d", a.NumGroups)
	case a.GroupTopk > a.NumGroups:
		c.fail("group_topk", "at most the "+itoa(a.NumGroups)+" groups", "%d", a.GroupTopk)
	case a.GroupTopk > 0 && (a.Topk%a.GroupTopk != 0 || a.Topk/a.GroupTopk > experts/a.NumGroups):
		c.fail("topk", "a multiple of group_topk that its groups of "+itoa(experts/a.NumGroups)+" experts can fill", "%d", a.Topk)
	}
	if a.ExpertBias != nil {
		if a.ScoreFunction == SoftmaxScore {
			c.fail("expert_bias", "nil with softmax", "%v", a.ExpertBias)
		}
		if c.compute("expert_bias", a.ExpertBias) && c.rank("expert_bias", a.ExpertBias, 1) {
			c.elements("expert_bias", a.ExpertBias, experts, "one an expert")
		}
	}
	c.sameAs("routing_map", a.RoutingMap, tensor.Bool, "logits", a.Logits)
	c.sameAs("intermediate_output", a.IntermediateOutput, tensor.F32, "logits", a.Logits)
	c.apart([]named{{"probs", a.Probs}, {"routing_map", a.RoutingMap}, {"intermediate_output", a.IntermediateOutput}},
		[]named{{"logits", a.Logits}, {"expert_bias", a.ExpertBias}})
	c.saved(a.Saved)
	return c.err
}

// FusedTopkWithScoreFunctionBwdArgs are the arguments of FusedTopkWithScoreFunctionBwd.
type FusedTopkWithScoreFunctionBwdArgs struct {
	RoutingMap         *tensor.Tensor // bool [tokens, experts], from FusedTopkWithScoreFunctionFwd
	IntermediateOutput *tensor.Tensor // f32 [tokens, experts], from FusedTopkWithScoreFunctionFwd
	GradProbs          *tensor.Tensor // [tokens, experts]
	GradLogits         *tensor.Tensor // [tokens, experts]
	Topk               int
	UsePreSoftmax      bool
	ScalingFactor      OptionalFloat // 1 when left out
	ScoreFunction      ScoreFunction
	Saved              *opregistry.Saved
}

// FusedTopkWithScoreFunctionBwd is the gradient of FusedTopkWithScoreFunctionFwd with
// respect to the logits. The choice is not differentiated: with g = scaling_factor ·
// grad_probs where chosen and 0 elsewhere, and N = Σ_chosen s + ε,
//
//	softmax, pre and not:   grad_logits = p∘(g − Σ p·g)
//	sigmoid, sqrtsoftplus:  ds = g/N − Σ g·s/N² where chosen, g when topk is 1
//	                        grad_logits = ds·s·(1−s),  ds·σ(x)/(2s + ε)
//
// Everything but grad_logits is read; grad_logits is written and may be grad_probs.
// Dtypes are those of FusedTopkWithScoreFunctionFwd. Source: TransformerEngine 2.14.
var FusedTopkWithScoreFunctionBwd = opregistry.NewOp("fused_topk_with_score_function_bwd", opregistry.Schema[FusedTopkWithScoreFunctionBwdArgs]{
	Doc:    "gradient of fused_topk_with_score_function_fwd",
	Family: "fused_topk_with_score_function",
	Saved:  func(a FusedTopkWithScoreFunctionBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedTopkWithScoreFunctionBwdArgs) error {
		c := check{op: "fused_topk_with_score_function_bwd"}
		c.router("grad_probs", a.GradProbs, a.Topk, a.ScoreFunction)
		c.like("grad_logits", a.GradLogits, "grad_probs", a.GradProbs)
		c.sameAs("routing_map", a.RoutingMap, tensor.Bool, "grad_probs", a.GradProbs)
		c.sameAs("intermediate_output", a.IntermediateOutput, tensor.F32, "grad_probs", a.GradProbs)
		c.apart([]named{{"grad_logits", a.GradLogits}}, []named{{"routing_map", a.RoutingMap}, {"intermediate_output", a.IntermediateOutput}})
		c.disjointOrSame("grad_logits", a.GradLogits, "grad_probs", a.GradProbs)
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a FusedTopkWithScoreFunctionBwdArgs) []opregistry.Operand {
		return operands{}.read("routing_map", a.RoutingMap).read("intermediate_output", a.IntermediateOutput).
			read("grad_probs", a.GradProbs).write("grad_logits", a.GradLogits)
	},
})

// router requires logits, or a tensor like them, and a valid choice of experts.
func (c *check) router(name string, t *tensor.Tensor, topk int, f ScoreFunction) {
	if f < SigmoidScore || f > SqrtSoftplusScore {
		c.fail("score_function", "sigmoid, softmax or sqrtsoftplus", "%v", f)
	}
	if !c.compute(name, t) || !c.rank(name, t, 2) {
		return
	}
	if experts := t.Shape()[1]; topk < 1 || topk > experts {
		c.fail("topk", "a number from 1 to the "+itoa(experts)+" experts", "%d", topk)
	}
}

// sameAs requires a dtype, and the shape of another operand.
func (c *check) sameAs(name string, t *tensor.Tensor, d tensor.DType, other string, o *tensor.Tensor) {
	if c.dtype(name, t, d) {
		c.sameShape(name, t, other, o)
	}
}
