package moe

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
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
	Logits             *tensor.Tensor // [tokens, experts]
	Topk               int
	UsePreSoftmax      bool                     // softmax over all experts before the choice, not over the chosen ones after it; SoftmaxScore only
	NumGroups          int                      // with GroupTopk: how many groups of equal size the experts form
	GroupTopk          int                      // from how many groups experts are chosen, 0 for all
	ScalingFactor      opregistry.OptionalFloat // 1 when left out
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
		return check.Operands{}.Read("logits", a.Logits).Read("expert_bias", a.ExpertBias).Write("probs", a.Probs).
			Write("routing_map", a.RoutingMap).Write("intermediate_output", a.IntermediateOutput)
	},
})

func validateTopk(a FusedTopkWithScoreFunctionFwdArgs) error {
	c := check.Call{Op: "fused_topk_with_score_function_fwd"}
	router(&c, "logits", a.Logits, a.Topk, a.ScoreFunction)
	attention.Like(&c, "probs", a.Probs, "logits", a.Logits)
	if c.Err != nil {
		return c.Err
	}
	experts := a.Logits.Shape()[1]
	switch {
	case a.GroupTopk < 0:
		c.Fail("group_topk", "a number >= 0", "%d", a.GroupTopk)
	case a.GroupTopk > 0 && (a.NumGroups < 1 || experts%a.NumGroups != 0):
		c.Fail("num_groups", "a number that divides the "+check.Itoa(experts)+" experts", "%d", a.NumGroups)
	case a.GroupTopk > a.NumGroups:
		c.Fail("group_topk", "at most the "+check.Itoa(a.NumGroups)+" groups", "%d", a.GroupTopk)
	case a.GroupTopk > 0 && (a.Topk%a.GroupTopk != 0 || a.Topk/a.GroupTopk > experts/a.NumGroups):
		c.Fail("topk", "a multiple of group_topk that its groups of "+check.Itoa(experts/a.NumGroups)+" experts can fill", "%d", a.Topk)
	}
	if a.ExpertBias != nil {
		if a.ScoreFunction == SoftmaxScore {
			c.Fail("expert_bias", "nil with softmax", "%v", a.ExpertBias)
		}
		if c.Compute("expert_bias", a.ExpertBias) && c.Rank("expert_bias", a.ExpertBias, 1) {
			c.Elements("expert_bias", a.ExpertBias, experts, "one an expert")
		}
	}
	sameAs(&c, "routing_map", a.RoutingMap, tensor.Bool, "logits", a.Logits)
	sameAs(&c, "intermediate_output", a.IntermediateOutput, tensor.F32, "logits", a.Logits)
	c.Apart([]check.Named{{Name: "probs", Tensor: a.Probs}, {Name: "routing_map", Tensor: a.RoutingMap}, {Name: "intermediate_output", Tensor: a.IntermediateOutput}},
		[]check.Named{{Name: "logits", Tensor: a.Logits}, {Name: "expert_bias", Tensor: a.ExpertBias}})
	c.Saved(a.Saved)
	return c.Err
}

// FusedTopkWithScoreFunctionBwdArgs are the arguments of FusedTopkWithScoreFunctionBwd.
type FusedTopkWithScoreFunctionBwdArgs struct {
	RoutingMap         *tensor.Tensor // bool [tokens, experts], from FusedTopkWithScoreFunctionFwd
	IntermediateOutput *tensor.Tensor // f32 [tokens, experts], from FusedTopkWithScoreFunctionFwd
	GradProbs          *tensor.Tensor // [tokens, experts]
	GradLogits         *tensor.Tensor // [tokens, experts]
	Topk               int
	UsePreSoftmax      bool
	ScalingFactor      opregistry.OptionalFloat // 1 when left out
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
		c := check.Call{Op: "fused_topk_with_score_function_bwd"}
		router(&c, "grad_probs", a.GradProbs, a.Topk, a.ScoreFunction)
		attention.Like(&c, "grad_logits", a.GradLogits, "grad_probs", a.GradProbs)
		sameAs(&c, "routing_map", a.RoutingMap, tensor.Bool, "grad_probs", a.GradProbs)
		sameAs(&c, "intermediate_output", a.IntermediateOutput, tensor.F32, "grad_probs", a.GradProbs)
		c.Apart([]check.Named{{Name: "grad_logits", Tensor: a.GradLogits}}, []check.Named{{Name: "routing_map", Tensor: a.RoutingMap}, {Name: "intermediate_output", Tensor: a.IntermediateOutput}})
		c.DisjointOrSame("grad_logits", a.GradLogits, "grad_probs", a.GradProbs)
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a FusedTopkWithScoreFunctionBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("routing_map", a.RoutingMap).Read("intermediate_output", a.IntermediateOutput).
			Read("grad_probs", a.GradProbs).Write("grad_logits", a.GradLogits)
	},
})

// router requires logits, or a tensor like them, and a valid choice of experts.
func router(c *check.Call, name string, t *tensor.Tensor, topk int, f ScoreFunction) {
	if f < SigmoidScore || f > SqrtSoftplusScore {
		c.Fail("score_function", "sigmoid, softmax or sqrtsoftplus", "%v", f)
	}
	if !c.Compute(name, t) || !c.Rank(name, t, 2) {
		return
	}
	if experts := t.Shape()[1]; topk < 1 || topk > experts {
		c.Fail("topk", "a number from 1 to the "+check.Itoa(experts)+" experts", "%d", topk)
	}
}

// sameAs requires a dtype, and the shape of another operand.
func sameAs(c *check.Call, name string, t *tensor.Tensor, d tensor.DType, other string, o *tensor.Tensor) {
	if c.DType(name, t, d) {
		c.SameShape(name, t, other, o)
	}
}
