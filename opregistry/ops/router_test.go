package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestFusedTopkWithScoreFunctionFwd(t *testing.T) {
	type args = ops.FusedTopkWithScoreFunctionFwdArgs
	good := func() args {
		return args{
			Logits: f32(3, 8), Topk: 4, NumGroups: 4, GroupTopk: 2, ScoreFunction: ops.SigmoidScore, ExpertBias: of(tensor.BF16, 8),
			Probs: f32(3, 8), RoutingMap: of(tensor.Bool, 3, 8), IntermediateOutput: f32(3, 8), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.FusedTopkWithScoreFunctionFwd, good, []refusal[args]{
		{"no score function", func(a *args) { a.ScoreFunction = 0 }, "score_function", "sigmoid, softmax or sqrtsoftplus"},
		{"unknown score function", func(a *args) { a.ScoreFunction = 4 }, "score_function", "sigmoid, softmax or sqrtsoftplus"},
		{"no logits", func(a *args) { a.Logits = nil }, "logits", "a tensor"},
		{"axes of logits", func(a *args) { a.Logits = f32(24) }, "logits", "2 axes"},
		{"dtype of logits", func(a *args) { a.Logits = of(tensor.I32, 3, 8) }, "logits", "dtype f32"},
		{"no topk", func(a *args) { a.Topk = 0 }, "topk", "from 1 to the 8 experts"},
		{"topk too large", func(a *args) { a.Topk = 9 }, "topk", "from 1 to the 8 experts"},
		{"negative group_topk", func(a *args) { a.GroupTopk = -1 }, "group_topk", ">= 0"},
		{"no groups", func(a *args) { a.NumGroups = 0 }, "num_groups", "divides the 8 experts"},
		{"groups do not divide", func(a *args) { a.NumGroups = 3 }, "num_groups", "divides the 8 experts"},
		{"group_topk too large", func(a *args) { a.GroupTopk = 5 }, "group_topk", "at most the 4 groups"},
		{"topk does not divide", func(a *args) { a.Topk = 3 }, "topk", "a multiple of group_topk"},
		{"groups too small", func(a *args) { a.Topk, a.GroupTopk = 3, 1 }, "topk", "groups of 2 experts can fill"},
		{"bias of softmax", func(a *args) { a.ScoreFunction = ops.SoftmaxScore }, "expert_bias", "nil with softmax"},
		{"length of bias", func(a *args) { a.ExpertBias = f32(3) }, "expert_bias", "8 elements"},
		{"dtype of probs", func(a *args) { a.Probs = of(tensor.F64, 3, 8) }, "probs", "the dtype of logits"},
		{"shape of probs", func(a *args) { a.Probs = f32(3, 7) }, "probs", "the shape of logits"},
		{"dtype of routing_map", func(a *args) { a.RoutingMap = f32(3, 8) }, "routing_map", "dtype bool"},
		{"shape of routing_map", func(a *args) { a.RoutingMap = of(tensor.Bool, 8, 3) }, "routing_map", "the shape of logits"},
		{"dtype of intermediate_output", func(a *args) { a.IntermediateOutput = of(tensor.F64, 3, 8) }, "intermediate_output", "dtype f32"},
		{"probs are logits", func(a *args) { a.Probs = a.Logits }, "probs", "memory apart from logits"},
		{"probs are intermediate_output", func(a *args) { a.Probs = a.IntermediateOutput }, "probs", "memory apart from intermediate_output"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.FusedTopkWithScoreFunctionFwd, good, map[string]func(a *args){
		"no groups":        func(a *args) { a.NumGroups, a.GroupTopk = 0, 0 },
		"groups of no use": func(a *args) { a.GroupTopk = 0 },
		"softmax":          func(a *args) { a.ScoreFunction, a.ExpertBias, a.UsePreSoftmax = ops.SoftmaxScore, nil, true },
		"no tokens": func(a *args) {
			a.Logits, a.Probs, a.RoutingMap, a.IntermediateOutput = f32(0, 8), f32(0, 8), of(tensor.Bool, 0, 8), f32(0, 8)
		},
	})
	testOperands(t, ops.FusedTopkWithScoreFunctionFwd, good(), access{
		"logits": opregistry.AccessRead, "expert_bias": opregistry.AccessRead, "probs": opregistry.AccessWrite, "routing_map": opregistry.AccessWrite, "intermediate_output": opregistry.AccessWrite,
	})
	assert.Equal(t, "sqrtsoftplus", ops.SqrtSoftplusScore.String())
	assert.Equal(t, "score_function(7)", ops.ScoreFunction(7).String())
}

func TestFusedTopkWithScoreFunctionBwd(t *testing.T) {
	type args = ops.FusedTopkWithScoreFunctionBwdArgs
	good := func() args {
		return args{
			RoutingMap: of(tensor.Bool, 3, 8), IntermediateOutput: f32(3, 8), GradProbs: f32(3, 8), GradLogits: f32(3, 8),
			Topk: 2, ScoreFunction: ops.SoftmaxScore, Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.FusedTopkWithScoreFunctionBwd, good, []refusal[args]{
		{"no score function", func(a *args) { a.ScoreFunction = 0 }, "score_function", "sigmoid"},
		{"no grad_probs", func(a *args) { a.GradProbs = nil }, "grad_probs", "a tensor"},
		{"topk too large", func(a *args) { a.Topk = 9 }, "topk", "from 1 to the 8 experts"},
		{"shape of grad_logits", func(a *args) { a.GradLogits = f32(3, 7) }, "grad_logits", "the shape of grad_probs"},
		{"dtype of routing_map", func(a *args) { a.RoutingMap = of(tensor.U8, 3, 8) }, "routing_map", "dtype bool"},
		{"shape of intermediate_output", func(a *args) { a.IntermediateOutput = f32(8, 3) }, "intermediate_output", "the shape of grad_probs"},
		{"in place in part", func(a *args) { a.GradLogits = shifted(&a.GradProbs) }, "grad_logits", "the same view as grad_probs"},
		{"grad_logits over intermediate_output", func(a *args) { a.GradLogits = a.IntermediateOutput }, "grad_logits", "memory apart from intermediate_output"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.FusedTopkWithScoreFunctionBwd, good, map[string]func(a *args){"in place": func(a *args) { a.GradLogits = a.GradProbs }})
	testOperands(t, ops.FusedTopkWithScoreFunctionBwd, good(), access{
		"routing_map": opregistry.AccessRead, "intermediate_output": opregistry.AccessRead, "grad_probs": opregistry.AccessRead, "grad_logits": opregistry.AccessWrite,
	})
}

func TestFusedScoreForMoEAuxLoss(t *testing.T) {
	type args = ops.FusedScoreForMoEAuxLossFwdArgs
	good := func() args {
		return args{
			Logits: of(tensor.BF16, 3, 8), Topk: 2, ScoreFunction: ops.SigmoidScore, Scores: f32(3, 8), RoutingMap: of(tensor.Bool, 3, 8),
			IntermediateOutput: f32(3, 8), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.FusedScoreForMoEAuxLossFwd, good, []refusal[args]{
		{"no score function", func(a *args) { a.ScoreFunction = 0 }, "score_function", "sigmoid"},
		{"no topk", func(a *args) { a.Topk = 0 }, "topk", "from 1 to the 8 experts"},
		{"dtype of scores", func(a *args) { a.Scores = of(tensor.BF16, 3, 8) }, "scores", "dtype f32"},
		{"shape of routing_map", func(a *args) { a.RoutingMap = of(tensor.Bool, 3, 7) }, "routing_map", "the shape of logits"},
		{"no intermediate_output", func(a *args) { a.IntermediateOutput = nil }, "intermediate_output", "a tensor"},
		{"scores are intermediate_output", func(a *args) { a.Scores = a.IntermediateOutput }, "scores", "memory apart from intermediate_output"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testOperands(t, ops.FusedScoreForMoEAuxLossFwd, good(), access{
		"logits": opregistry.AccessRead, "scores": opregistry.AccessWrite, "routing_map": opregistry.AccessWrite, "intermediate_output": opregistry.AccessWrite,
	})

	type back = ops.FusedScoreForMoEAuxLossBwdArgs
	undo := func() back {
		return back{
			IntermediateOutput: f32(3, 8), GradScores: f32(3, 8), GradLogits: of(tensor.BF16, 3, 8), Topk: 2, ScoreFunction: ops.SigmoidScore,
			Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.FusedScoreForMoEAuxLossBwd, undo, []refusal[back]{
		{"no grad_logits", func(a *back) { a.GradLogits = nil }, "grad_logits", "a tensor"},
		{"dtype of grad_scores", func(a *back) { a.GradScores = of(tensor.BF16, 3, 8) }, "grad_scores", "dtype f32"},
		{"shape of intermediate_output", func(a *back) { a.IntermediateOutput = f32(8, 3) }, "intermediate_output", "the shape of grad_logits"},
		{"grad_logits are grad_scores", func(a *back) { a.GradLogits = f32(3, 8); a.GradScores = a.GradLogits }, "grad_logits", "memory apart from grad_scores"},
		{"no saved", func(a *back) { a.Saved = nil }, "saved", "Saved"},
	})
	testOperands(t, ops.FusedScoreForMoEAuxLossBwd, undo(), access{
		"intermediate_output": opregistry.AccessRead, "grad_scores": opregistry.AccessRead, "grad_logits": opregistry.AccessWrite,
	})
}

func TestFusedMoEAuxLoss(t *testing.T) {
	type args = ops.FusedMoEAuxLossFwdArgs
	good := func() args {
		return args{
			Probs: f32(5, 3), TokensPerExpert: i64(1, 2, 3), TotalNumTokens: 5, NumExperts: 3, Topk: 1, Coeff: 0.1,
			AuxLoss: f32(1), ConstBuf: f32(1), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.FusedMoEAuxLossFwd, good, []refusal[args]{
		{"no probs", func(a *args) { a.Probs = nil }, "probs", "a tensor"},
		{"dtype of tokens_per_expert", func(a *args) { a.TokensPerExpert = of(tensor.U8, 3) }, "tokens_per_expert", "dtype i32, i64"},
		{"length of tokens_per_expert", func(a *args) { a.TokensPerExpert = i64(1, 2) }, "tokens_per_expert", "3 elements"},
		{"no tokens", func(a *args) { a.TotalNumTokens = 0 }, "total_num_tokens, num_experts, topk", "numbers >= 1"},
		{"no experts", func(a *args) { a.NumExperts = 0 }, "total_num_tokens, num_experts, topk", "numbers >= 1"},
		{"no topk", func(a *args) { a.Topk = 0 }, "total_num_tokens, num_experts, topk", "numbers >= 1"},
		{"coeff", func(a *args) { a.Coeff = float32(math.NaN()) }, "coeff", "a finite number"},
		{"dtype of aux_loss", func(a *args) { a.AuxLoss = of(tensor.F64, 1) }, "aux_loss", "the dtype of probs"},
		{"length of aux_loss", func(a *args) { a.AuxLoss = f32(2) }, "aux_loss", "1 elements"},
		{"dtype of const_buf", func(a *args) { a.ConstBuf = of(tensor.F64, 1) }, "const_buf", "dtype f32"},
		{"aux_loss is const_buf", func(a *args) { a.AuxLoss = a.ConstBuf }, "aux_loss", "memory apart from const_buf"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.FusedMoEAuxLossFwd, good, map[string]func(a *args){
		"counts in bf16": func(a *args) { a.TokensPerExpert = of(tensor.BF16, 3) },
		"a scalar":       func(a *args) { a.AuxLoss = of(tensor.F32) },
	})
	testOperands(t, ops.FusedMoEAuxLossFwd, good(), access{
		"probs": opregistry.AccessRead, "tokens_per_expert": opregistry.AccessRead, "aux_loss": opregistry.AccessWrite, "const_buf": opregistry.AccessWrite,
	})

	type back = ops.FusedMoEAuxLossBwdArgs
	undo := func() back {
		return back{ConstBuf: f32(1), TokensPerExpert: i32(1, 2, 3), GradAuxLoss: f32(1), GradProbs: f32(5, 3), Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.FusedMoEAuxLossBwd, undo, []refusal[back]{
		{"no const_buf", func(a *back) { a.ConstBuf = nil }, "const_buf", "a tensor"},
		{"axes of grad_probs", func(a *back) { a.GradProbs = f32(15) }, "grad_probs", "2 axes"},
		{"length of tokens_per_expert", func(a *back) { a.TokensPerExpert = i32(1) }, "tokens_per_expert", "3 elements"},
		{"dtype of grad_aux_loss", func(a *back) { a.GradAuxLoss = of(tensor.F16, 1) }, "grad_aux_loss", "the dtype of grad_probs"},
		{"length of grad_aux_loss", func(a *back) { a.GradAuxLoss = f32(2) }, "grad_aux_loss", "1 elements"},
		{"grad_probs over const_buf", func(a *back) { a.ConstBuf = flat(a.GradProbs, 1) }, "grad_probs", "memory apart from const_buf"},
		{"no saved", func(a *back) { a.Saved = nil }, "saved", "Saved"},
	})
	testOperands(t, ops.FusedMoEAuxLossBwd, undo(), access{
		"const_buf": opregistry.AccessRead, "tokens_per_expert": opregistry.AccessRead, "grad_aux_loss": opregistry.AccessRead, "grad_probs": opregistry.AccessWrite,
	})
}
