package moe

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// FusedScoreForMoEAuxLossFwdArgs are the arguments of FusedScoreForMoEAuxLossFwd.
type FusedScoreForMoEAuxLossFwdArgs struct {
	Logits             *tensor.Tensor `op:"0 logits read compute [tokens experts]"`
	Topk               int            `op:"1 topk"`
	ScoreFunction      ScoreFunction  `op:"2 score_function"`
	Scores             *tensor.Tensor `op:"3 scores write f32 [tokens experts]"`
	RoutingMap         *tensor.Tensor `op:"4 routing_map write bool [tokens experts]"`
	IntermediateOutput *tensor.Tensor `op:"5 intermediate_output write f32 masked [tokens experts]"`
	Saved              *opregistry.Saved
}

// FusedScoreForMoEAuxLossFwd scores all experts for the load-balancing loss and chooses the topk
// best of each token.
var FusedScoreForMoEAuxLossFwd = opregistry.NewOp("fused_score_for_moe_aux_loss_fwd", opregistry.Schema[FusedScoreForMoEAuxLossFwdArgs]{
	Doc: "scores of all experts for the load-balancing loss",
	Formula: `
		fused_score_for_moe_aux_loss_fwd scores all experts for the load-balancing loss and chooses
		the topk best of each token. With x the logits of a token and ε = 1e-20:

		  softmax:       s = softmax(x)        scores = s
		  sigmoid:       s = σ(x)              scores = s / (Σ s + ε), s when topk is 1
		  sqrtsoftplus:  s = √ln(1 + eˣ)       scores as sigmoid

		Of equal scores the first is chosen; a NaN is chosen first. intermediate_output is s, or x
		for sqrtsoftplus. Arithmetic is in f32 or better. Source: TransformerEngine 2.14.

		Example:

		  logits=[[1 2 0]] topk=2 score_function=softmax → scores=[[0.2447 0.6652 0.09003]]
		    routing_map=bool[[1 1 0]] intermediate_output=[[0.2447 0.6652 0.09003]]
	`,
	Family:  "fused_score_for_moe_aux_loss",
	Forward: true,
	Check: func(c *opregistry.Check, a *FusedScoreForMoEAuxLossFwdArgs) {
		router(c, a.Logits.Shape()[1], a.Topk, a.ScoreFunction)
	},
	Tolerance: opregistry.Arithmetic(1e-6, 5e-6, "as fused_topk_with_score_function_fwd"),
})

// FusedScoreForMoEAuxLossBwdArgs are the arguments of FusedScoreForMoEAuxLossBwd.
type FusedScoreForMoEAuxLossBwdArgs struct {
	IntermediateOutput *tensor.Tensor `op:"0 intermediate_output read f32 [tokens experts]"`
	GradScores         *tensor.Tensor `op:"1 grad_scores read f32 [tokens experts]"`
	GradLogits         *tensor.Tensor `op:"2 grad_logits write compute [tokens experts] lead"`
	Topk               int            `op:"3 topk"`
	ScoreFunction      ScoreFunction  `op:"4 score_function"`
	Saved              *opregistry.Saved
}

// FusedScoreForMoEAuxLossBwd is the gradient of FusedScoreForMoEAuxLossFwd with respect to the
// logits.
var FusedScoreForMoEAuxLossBwd = opregistry.NewOp("fused_score_for_moe_aux_loss_bwd", opregistry.Schema[FusedScoreForMoEAuxLossBwdArgs]{
	Doc: "gradient of fused_score_for_moe_aux_loss_fwd",
	Formula: `
		fused_score_for_moe_aux_loss_bwd is the gradient of fused_score_for_moe_aux_loss_fwd with
		respect to the logits. It is the gradient of fused_topk_with_score_function_bwd with all
		experts chosen, a scaling factor of 1, and softmax over all of them. Source:
		TransformerEngine 2.14.

		Arguments:

		  intermediate_output  from fused_score_for_moe_aux_loss_fwd

		Example:

		  intermediate_output=[[0.25 0.75]] grad_scores=[[1 0]] topk=1 score_function=softmax →
		    grad_logits=[[0.1875 -0.1875]]
	`,
	Family: "fused_score_for_moe_aux_loss",
	Check: func(c *opregistry.Check, a *FusedScoreForMoEAuxLossBwdArgs) {
		router(c, a.GradLogits.Shape()[1], a.Topk, a.ScoreFunction)
	},
	Tolerance: opregistry.Arithmetic(5e-6, 5e-6, "as fused_topk_with_score_function_bwd"),
})

// FusedMoEAuxLossFwdArgs are the arguments of FusedMoEAuxLossFwd. TransformerEngine's numbers of
// rows and columns are the axes of Probs.
type FusedMoEAuxLossFwdArgs struct {
	Probs           *tensor.Tensor `op:"0 probs read compute [rows cols]"`
	TokensPerExpert *tensor.Tensor `op:"1 tokens_per_expert read compute index [cols]"`
	TotalNumTokens  int            `op:"2 total_num_tokens >=1"`
	NumExperts      int            `op:"3 num_experts >=1"`
	Topk            int            `op:"4 topk >=1"`
	Coeff           float32        `op:"5 coeff finite"`
	AuxLoss         *tensor.Tensor `op:"6 aux_loss write =probs (1)"`
	ConstBuf        *tensor.Tensor `op:"7 const_buf write f32 (1)"`
	Saved           *opregistry.Saved
}

// FusedMoEAuxLossFwd is the load-balancing loss.
var FusedMoEAuxLossFwd = opregistry.NewOp("fused_moe_aux_loss_fwd", opregistry.Schema[FusedMoEAuxLossFwdArgs]{
	Doc: "load-balancing loss of a mixture of experts",
	Formula: `
		fused_moe_aux_loss_fwd is the load-balancing loss:

		  C = num_experts · coeff / (topk · total_num_tokens²)
		  aux_loss = C · Σ_e tokens_per_expert[e] · Σ_t probs[t,e]      const_buf = C

		Sums are in f32 or better. Without rows or columns the loss is 0. Source: TransformerEngine
		2.14; Fedus et al. 2021, arXiv:2101.03961.

		Example:

		  probs=[[0.25 0.75] [0.5 0.5]] tokens_per_expert=i32[2 0] total_num_tokens=2 num_experts=2
		    topk=1 coeff=0.1 → aux_loss=[0.075] const_buf=[0.05]
	`,
	Family:    "fused_moe_aux_loss",
	Forward:   true,
	Tolerance: opregistry.Arithmetic(5e-5, 5e-6, "a sum of up to 2800 products up to 100 with a factor of 10⁻³"),
})

// FusedMoEAuxLossBwdArgs are the arguments of FusedMoEAuxLossBwd.
type FusedMoEAuxLossBwdArgs struct {
	ConstBuf        *tensor.Tensor `op:"0 const_buf read f32 (1)"`
	TokensPerExpert *tensor.Tensor `op:"1 tokens_per_expert read compute index [cols]"`
	GradAuxLoss     *tensor.Tensor `op:"2 grad_aux_loss read =grad_probs (1)"`
	GradProbs       *tensor.Tensor `op:"3 grad_probs write compute [rows cols] lead"`
	Saved           *opregistry.Saved
}

// FusedMoEAuxLossBwd is the gradient of FusedMoEAuxLossFwd.
var FusedMoEAuxLossBwd = opregistry.NewOp("fused_moe_aux_loss_bwd", opregistry.Schema[FusedMoEAuxLossBwdArgs]{
	Doc: "gradient of fused_moe_aux_loss_fwd",
	Formula: `
		fused_moe_aux_loss_bwd is the gradient of fused_moe_aux_loss_fwd:

		  grad_probs[t,e] = const_buf · tokens_per_expert[e] · grad_aux_loss

		Source: TransformerEngine 2.14.

		Arguments:

		  const_buf  from fused_moe_aux_loss_fwd

		Example:

		  const_buf=[0.05] tokens_per_expert=i32[2 0] grad_aux_loss=[1] → grad_probs=[[0.1 0] [0.1
		    0]]
	`,
	Family:    "fused_moe_aux_loss",
	Tolerance: opregistry.Arithmetic(0, 1e-6, "two products"),
})
