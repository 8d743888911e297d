package ops

import (
	"math"

	"github.com/primus-fl/primus/opregistry"
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
		c := check{op: "fused_score_for_moe_aux_loss_fwd"}
		c.router("logits", a.Logits, a.Topk, a.ScoreFunction)
		c.sameAs("scores", a.Scores, tensor.F32, "logits", a.Logits)
		c.sameAs("routing_map", a.RoutingMap, tensor.Bool, "logits", a.Logits)
		c.sameAs("intermediate_output", a.IntermediateOutput, tensor.F32, "logits", a.Logits)
		c.apart([]named{{"scores", a.Scores}, {"routing_map", a.RoutingMap}, {"intermediate_output", a.IntermediateOutput}}, []named{{"logits", a.Logits}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a FusedScoreForMoEAuxLossFwdArgs) []opregistry.Operand {
		return operands{}.read("logits", a.Logits).write("scores", a.Scores).write("routing_map", a.RoutingMap).
			write("intermediate_output", a.IntermediateOutput)
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
		c := check{op: "fused_score_for_moe_aux_loss_bwd"}
		c.router("grad_logits", a.GradLogits, a.Topk, a.ScoreFunction)
		c.sameAs("intermediate_output", a.IntermediateOutput, tensor.F32, "grad_logits", a.GradLogits)
		c.sameAs("grad_scores", a.GradScores, tensor.F32, "grad_logits", a.GradLogits)
		c.apart([]named{{"grad_logits", a.GradLogits}}, []named{{"intermediate_output", a.IntermediateOutput}, {"grad_scores", a.GradScores}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a FusedScoreForMoEAuxLossBwdArgs) []opregistry.Operand {
		return operands{}.read("intermediate_output", a.IntermediateOutput).read("grad_scores", a.GradScores).write("grad_logits", a.GradLogits)
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
		c := check{op: "fused_moe_aux_loss_fwd"}
		if c.compute("probs", a.Probs) && c.rank("probs", a.Probs, 2) {
			c.tokensPerExpert(a.TokensPerExpert, a.Probs.Shape()[1])
		}
		if c.err == nil && (a.TotalNumTokens < 1 || a.NumExperts < 1 || a.Topk < 1) {
			c.fail("total_num_tokens, num_experts, topk", "numbers >= 1", "%d, %d, %d", a.TotalNumTokens, a.NumExperts, a.Topk)
		}
		if x := float64(a.Coeff); c.err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			c.fail("coeff", "a finite number", "%v", a.Coeff)
		}
		if c.compute("aux_loss", a.AuxLoss) {
			c.sameDType("aux_loss", a.AuxLoss, "probs", a.Probs)
			c.elements("aux_loss", a.AuxLoss, 1, "the loss")
		}
		if c.dtype("const_buf", a.ConstBuf, tensor.F32) {
			c.elements("const_buf", a.ConstBuf, 1, "the factor")
		}
		c.apart([]named{{"aux_loss", a.AuxLoss}, {"const_buf", a.ConstBuf}}, []named{{"probs", a.Probs}, {"tokens_per_expert", a.TokensPerExpert}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a FusedMoEAuxLossFwdArgs) []opregistry.Operand {
		return operands{}.read("probs", a.Probs).read("tokens_per_expert", a.TokensPerExpert).write("aux_loss", a.AuxLoss).write("const_buf", a.ConstBuf)
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
		c := check{op: "fused_moe_aux_loss_bwd"}
		if c.dtype("const_buf", a.ConstBuf, tensor.F32) {
			c.elements("const_buf", a.ConstBuf, 1, "the factor")
		}
		if c.compute("grad_probs", a.GradProbs) && c.rank("grad_probs", a.GradProbs, 2) {
			c.tokensPerExpert(a.TokensPerExpert, a.GradProbs.Shape()[1])
		}
		if c.compute("grad_aux_loss", a.GradAuxLoss) {
			c.sameDType("grad_aux_loss", a.GradAuxLoss, "grad_probs", a.GradProbs)
			c.elements("grad_aux_loss", a.GradAuxLoss, 1, "the gradient of the loss")
		}
		c.apart([]named{{"grad_probs", a.GradProbs}},
			[]named{{"const_buf", a.ConstBuf}, {"tokens_per_expert", a.TokensPerExpert}, {"grad_aux_loss", a.GradAuxLoss}})
		c.saved(a.Saved)
		return c.err
	},
	Operands: func(a FusedMoEAuxLossBwdArgs) []opregistry.Operand {
		return operands{}.read("const_buf", a.ConstBuf).read("tokens_per_expert", a.TokensPerExpert).
			read("grad_aux_loss", a.GradAuxLoss).write("grad_probs", a.GradProbs)
	},
})

// tokensPerExpert requires a number for each expert.
func (c *check) tokensPerExpert(t *tensor.Tensor, experts int) {
	const name = "tokens_per_expert"
	if !c.given(name, t) {
		return
	}
	if d := t.DType(); d != tensor.I32 && d != tensor.I64 && d > tensor.F16 {
		c.fail(name, "dtype i32, i64, f32, bf16, f16 or f64", "%v", t)
	}
	if c.rank(name, t, 1) {
		c.elements(name, t, experts, "one a column")
	}
}
