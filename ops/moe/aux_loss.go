package moe

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// FusedScoreForMoEAuxLossFwdArgs are the arguments of FusedScoreForMoEAuxLossFwd.
type FusedScoreForMoEAuxLossFwdArgs struct {
	Logits             *tensor.Tensor // [tokens, experts]
	Topk               int
	ScoreFunction      ScoreFunction
	Scores             *tensor.Tensor // f32 [tokens, experts]
	RoutingMap         *tensor.Tensor // bool [tokens, experts]
	IntermediateOutput *tensor.Tensor // f32 [tokens, experts]
	Saved              *opregistry.Saved
}

// FusedScoreForMoEAuxLossFwd scores all experts for the load-balancing loss and chooses the topk
// best of each token. With x the logits of a token and ε = 1e-20:
//
//	softmax:       s = softmax(x)        scores = s
//	sigmoid:       s = σ(x)              scores = s / (Σ s + ε), s when topk is 1
//	sqrtsoftplus:  s = √ln(1 + eˣ)       scores as sigmoid
//
// Of equal scores the first is chosen; a NaN is chosen last. Intermediate_output is s, or x for
// sqrtsoftplus. Logits are read and may have any compute dtype, the others are written; all are
// disjoint; arithmetic is in f32 or better. Source: TransformerEngine 2.14.
var FusedScoreForMoEAuxLossFwd = opregistry.NewOp("fused_score_for_moe_aux_loss_fwd", opregistry.Schema[FusedScoreForMoEAuxLossFwdArgs]{
	Doc:     "scores of all experts for the load-balancing loss",
	Family:  "fused_score_for_moe_aux_loss",
	Forward: true,
	Saved:   func(a FusedScoreForMoEAuxLossFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedScoreForMoEAuxLossFwdArgs) error {
		c := check.Call{Op: "fused_score_for_moe_aux_loss_fwd"}
		router(&c, "logits", a.Logits, a.Topk, a.ScoreFunction)
		sameAs(&c, "scores", a.Scores, tensor.F32, "logits", a.Logits)
		sameAs(&c, "routing_map", a.RoutingMap, tensor.Bool, "logits", a.Logits)
		sameAs(&c, "intermediate_output", a.IntermediateOutput, tensor.F32, "logits", a.Logits)
		c.Apart([]check.Named{{Name: "scores", Tensor: a.Scores}, {Name: "routing_map", Tensor: a.RoutingMap}, {Name: "intermediate_output", Tensor: a.IntermediateOutput}}, []check.Named{{Name: "logits", Tensor: a.Logits}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a FusedScoreForMoEAuxLossFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("logits", a.Logits).Write("scores", a.Scores).Write("routing_map", a.RoutingMap).
			Write("intermediate_output", a.IntermediateOutput)
	},
})

// FusedScoreForMoEAuxLossBwdArgs are the arguments of FusedScoreForMoEAuxLossBwd.
type FusedScoreForMoEAuxLossBwdArgs struct {
	IntermediateOutput *tensor.Tensor // f32 [tokens, experts], from FusedScoreForMoEAuxLossFwd
	GradScores         *tensor.Tensor // f32 [tokens, experts]
	GradLogits         *tensor.Tensor // [tokens, experts]
	Topk               int
	ScoreFunction      ScoreFunction
	Saved              *opregistry.Saved
}

// FusedScoreForMoEAuxLossBwd is the gradient of FusedScoreForMoEAuxLossFwd with respect to the
// logits. It is the gradient of FusedTopkWithScoreFunctionBwd with all experts chosen, a scaling
// factor of 1, and softmax over all of them. Grad_logits is written and may have any compute dtype,
// the others are read; all are disjoint. Source: TransformerEngine 2.14.
var FusedScoreForMoEAuxLossBwd = opregistry.NewOp("fused_score_for_moe_aux_loss_bwd", opregistry.Schema[FusedScoreForMoEAuxLossBwdArgs]{
	Doc:    "gradient of fused_score_for_moe_aux_loss_fwd",
	Family: "fused_score_for_moe_aux_loss",
	Saved:  func(a FusedScoreForMoEAuxLossBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedScoreForMoEAuxLossBwdArgs) error {
		c := check.Call{Op: "fused_score_for_moe_aux_loss_bwd"}
		router(&c, "grad_logits", a.GradLogits, a.Topk, a.ScoreFunction)
		sameAs(&c, "intermediate_output", a.IntermediateOutput, tensor.F32, "grad_logits", a.GradLogits)
		sameAs(&c, "grad_scores", a.GradScores, tensor.F32, "grad_logits", a.GradLogits)
		c.Apart([]check.Named{{Name: "grad_logits", Tensor: a.GradLogits}}, []check.Named{{Name: "intermediate_output", Tensor: a.IntermediateOutput}, {Name: "grad_scores", Tensor: a.GradScores}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a FusedScoreForMoEAuxLossBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("intermediate_output", a.IntermediateOutput).Read("grad_scores", a.GradScores).Write("grad_logits", a.GradLogits)
	},
})

// FusedMoEAuxLossFwdArgs are the arguments of FusedMoEAuxLossFwd. TransformerEngine's numbers of
// rows and columns are the axes of Probs.
type FusedMoEAuxLossFwdArgs struct {
	Probs           *tensor.Tensor // [rows, cols]
	TokensPerExpert *tensor.Tensor // i32, i64 or a compute dtype; [cols]
	TotalNumTokens  int
	NumExperts      int
	Topk            int
	Coeff           float32
	AuxLoss         *tensor.Tensor // dtype of Probs, one element
	ConstBuf        *tensor.Tensor // f32, one element
	Saved           *opregistry.Saved
}

// FusedMoEAuxLossFwd is the load-balancing loss:
//
//	C = num_experts · coeff / (topk · total_num_tokens²)
//	aux_loss = C · Σ_e tokens_per_expert[e] · Σ_t probs[t,e]      const_buf = C
//
// Probs and tokens_per_expert are read, aux_loss and const_buf are written; all are disjoint. probs
// and aux_loss may have any compute dtype; sums are in f32 or better. Without rows or columns the
// loss is 0. Source: TransformerEngine 2.14; Fedus et al. 2021, arXiv:2101.03961.
var FusedMoEAuxLossFwd = opregistry.NewOp("fused_moe_aux_loss_fwd", opregistry.Schema[FusedMoEAuxLossFwdArgs]{
	Doc:     "load-balancing loss of a mixture of experts",
	Family:  "fused_moe_aux_loss",
	Forward: true,
	Saved:   func(a FusedMoEAuxLossFwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedMoEAuxLossFwdArgs) error {
		c := check.Call{Op: "fused_moe_aux_loss_fwd"}
		if c.Compute("probs", a.Probs) && c.Rank("probs", a.Probs, 2) {
			tokensPerExpert(&c, a.TokensPerExpert, a.Probs.Shape()[1])
		}
		if c.Err == nil && (a.TotalNumTokens < 1 || a.NumExperts < 1 || a.Topk < 1) {
			c.Fail("total_num_tokens, num_experts, topk", "numbers >= 1", "%d, %d, %d", a.TotalNumTokens, a.NumExperts, a.Topk)
		}
		if x := float64(a.Coeff); c.Err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			c.Fail("coeff", "a finite number", "%v", a.Coeff)
		}
		if c.Compute("aux_loss", a.AuxLoss) {
			c.SameDType("aux_loss", a.AuxLoss, "probs", a.Probs)
			c.Elements("aux_loss", a.AuxLoss, 1, "the loss")
		}
		if c.DType("const_buf", a.ConstBuf, tensor.F32) {
			c.Elements("const_buf", a.ConstBuf, 1, "the factor")
		}
		c.Apart([]check.Named{{Name: "aux_loss", Tensor: a.AuxLoss}, {Name: "const_buf", Tensor: a.ConstBuf}}, []check.Named{{Name: "probs", Tensor: a.Probs}, {Name: "tokens_per_expert", Tensor: a.TokensPerExpert}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a FusedMoEAuxLossFwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("probs", a.Probs).Read("tokens_per_expert", a.TokensPerExpert).Write("aux_loss", a.AuxLoss).Write("const_buf", a.ConstBuf)
	},
})

// FusedMoEAuxLossBwdArgs are the arguments of FusedMoEAuxLossBwd.
type FusedMoEAuxLossBwdArgs struct {
	ConstBuf        *tensor.Tensor // f32, one element, from FusedMoEAuxLossFwd
	TokensPerExpert *tensor.Tensor // i32, i64 or a compute dtype; [cols]
	GradAuxLoss     *tensor.Tensor // one element
	GradProbs       *tensor.Tensor // [rows, cols]
	Saved           *opregistry.Saved
}

// FusedMoEAuxLossBwd is the gradient of FusedMoEAuxLossFwd:
//
//	grad_probs[t,e] = const_buf · tokens_per_expert[e] · grad_aux_loss
//
// Grad_probs is written, the others are read; all are disjoint. One compute dtype for
// grad_aux_loss and grad_probs. Source: TransformerEngine 2.14.
var FusedMoEAuxLossBwd = opregistry.NewOp("fused_moe_aux_loss_bwd", opregistry.Schema[FusedMoEAuxLossBwdArgs]{
	Doc:    "gradient of fused_moe_aux_loss_fwd",
	Family: "fused_moe_aux_loss",
	Saved:  func(a FusedMoEAuxLossBwdArgs) *opregistry.Saved { return a.Saved },
	Validate: func(a FusedMoEAuxLossBwdArgs) error {
		c := check.Call{Op: "fused_moe_aux_loss_bwd"}
		if c.DType("const_buf", a.ConstBuf, tensor.F32) {
			c.Elements("const_buf", a.ConstBuf, 1, "the factor")
		}
		if c.Compute("grad_probs", a.GradProbs) && c.Rank("grad_probs", a.GradProbs, 2) {
			tokensPerExpert(&c, a.TokensPerExpert, a.GradProbs.Shape()[1])
		}
		if c.Compute("grad_aux_loss", a.GradAuxLoss) {
			c.SameDType("grad_aux_loss", a.GradAuxLoss, "grad_probs", a.GradProbs)
			c.Elements("grad_aux_loss", a.GradAuxLoss, 1, "the gradient of the loss")
		}
		c.Apart([]check.Named{{Name: "grad_probs", Tensor: a.GradProbs}},
			[]check.Named{{Name: "const_buf", Tensor: a.ConstBuf}, {Name: "tokens_per_expert", Tensor: a.TokensPerExpert}, {Name: "grad_aux_loss", Tensor: a.GradAuxLoss}})
		c.Saved(a.Saved)
		return c.Err
	},
	Operands: func(a FusedMoEAuxLossBwdArgs) []opregistry.Operand {
		return check.Operands{}.Read("const_buf", a.ConstBuf).Read("tokens_per_expert", a.TokensPerExpert).
			Read("grad_aux_loss", a.GradAuxLoss).Write("grad_probs", a.GradProbs)
	},
})

// tokensPerExpert requires a number for each expert.
func tokensPerExpert(c *check.Call, t *tensor.Tensor, experts int) {
	const name = "tokens_per_expert"
	if !c.Given(name, t) {
		return
	}
	if d := t.DType(); d != tensor.I32 && d != tensor.I64 && d > tensor.F16 {
		c.Fail(name, "dtype i32, i64, f32, bf16, f16 or f64", "%v", t)
	}
	if c.Rank(name, t, 1) {
		c.Elements(name, t, experts, "one a column")
	}
}
