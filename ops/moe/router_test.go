package moe_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

func TestFusedTopkWithScoreFunctionFwd(t *testing.T) {
	type args = moe.FusedTopkWithScoreFunctionFwdArgs
	good := func() args {
		return args{
			Logits: checktest.F32(3, 8), Topk: 4, NumGroups: 4, GroupTopk: 2, ScoreFunction: moe.SigmoidScore, ExpertBias: checktest.Zeros(tensor.BF16, 8),
			Probs: checktest.F32(3, 8), RoutingMap: checktest.Zeros(tensor.Bool, 3, 8), IntermediateOutput: checktest.F32(3, 8), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.FusedTopkWithScoreFunctionFwd, good, []checktest.Refusal[args]{
		{Name: "no score function", Edit: func(a *args) { a.ScoreFunction = 0 }, Operand: "score_function", Want: "sigmoid, softmax or sqrtsoftplus"},
		{Name: "unknown score function", Edit: func(a *args) { a.ScoreFunction = 4 }, Operand: "score_function", Want: "sigmoid, softmax or sqrtsoftplus"},
		{Name: "no logits", Edit: func(a *args) { a.Logits = nil }, Operand: "logits", Want: "a tensor"},
		{Name: "axes of logits", Edit: func(a *args) { a.Logits = checktest.F32(24) }, Operand: "logits", Want: "shape [tokens experts]"},
		{Name: "dtype of logits", Edit: func(a *args) { a.Logits = checktest.Zeros(tensor.I32, 3, 8) }, Operand: "logits", Want: "dtype f32"},
		{Name: "no topk", Edit: func(a *args) { a.Topk = 0 }, Operand: "topk", Want: "from 1 to the 8 experts"},
		{Name: "topk too large", Edit: func(a *args) { a.Topk = 9 }, Operand: "topk", Want: "from 1 to the 8 experts"},
		{Name: "negative group_topk", Edit: func(a *args) { a.GroupTopk = -1 }, Operand: "group_topk", Want: ">= 0"},
		{Name: "no groups", Edit: func(a *args) { a.NumGroups = 0 }, Operand: "num_groups", Want: "divides the 8 experts"},
		{Name: "groups do not divide", Edit: func(a *args) { a.NumGroups = 3 }, Operand: "num_groups", Want: "divides the 8 experts"},
		{Name: "group_topk too large", Edit: func(a *args) { a.GroupTopk = 5 }, Operand: "group_topk", Want: "at most the 4 groups"},
		{Name: "topk does not divide", Edit: func(a *args) { a.Topk = 3 }, Operand: "topk", Want: "a multiple of group_topk"},
		{Name: "groups too small", Edit: func(a *args) { a.Topk, a.GroupTopk = 3, 1 }, Operand: "topk", Want: "groups of 2 experts can fill"},
		{Name: "bias of softmax", Edit: func(a *args) { a.ScoreFunction = moe.SoftmaxScore }, Operand: "expert_bias", Want: "nil with softmax"},
		{Name: "length of bias", Edit: func(a *args) { a.ExpertBias = checktest.F32(3) }, Operand: "expert_bias", Want: "shape [8], as [experts]"},
		{Name: "dtype of probs", Edit: func(a *args) { a.Probs = checktest.Zeros(tensor.F64, 3, 8) }, Operand: "probs", Want: "the dtype of logits"},
		{Name: "shape of probs", Edit: func(a *args) { a.Probs = checktest.F32(3, 7) }, Operand: "probs", Want: "the shape of logits"},
		{Name: "dtype of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.F32(3, 8) }, Operand: "routing_map", Want: "dtype bool"},
		{Name: "shape of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.Zeros(tensor.Bool, 8, 3) }, Operand: "routing_map", Want: "the shape of logits"},
		{Name: "dtype of intermediate_output", Edit: func(a *args) { a.IntermediateOutput = checktest.Zeros(tensor.F64, 3, 8) }, Operand: "intermediate_output", Want: "dtype f32"},
		{Name: "probs are logits", Edit: func(a *args) { a.Probs = a.Logits }, Operand: "probs", Want: "memory apart from logits"},
		{Name: "probs are intermediate_output", Edit: func(a *args) { a.Probs = a.IntermediateOutput }, Operand: "intermediate_output", Want: "memory apart from probs"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.FusedTopkWithScoreFunctionFwd, good, map[string]func(a *args){
		"no groups":        func(a *args) { a.NumGroups, a.GroupTopk = 0, 0 },
		"groups of no use": func(a *args) { a.GroupTopk = 0 },
		"softmax":          func(a *args) { a.ScoreFunction, a.ExpertBias, a.UsePreSoftmax = moe.SoftmaxScore, nil, true },
		"no tokens": func(a *args) {
			a.Logits, a.Probs, a.RoutingMap, a.IntermediateOutput = checktest.F32(0, 8), checktest.F32(0, 8), checktest.Zeros(tensor.Bool, 0, 8), checktest.F32(0, 8)
		},
	})
	checktest.Operands(t, moe.FusedTopkWithScoreFunctionFwd, good(), checktest.Access{
		"logits": opregistry.AccessRead, "expert_bias": opregistry.AccessRead, "probs": opregistry.AccessWrite, "routing_map": opregistry.AccessWrite, "intermediate_output": opregistry.AccessWrite,
	})
	assert.Equal(t, "sqrtsoftplus", moe.SqrtSoftplusScore.String())
	assert.Equal(t, "score_function(7)", moe.ScoreFunction(7).String())
}

func TestFusedTopkWithScoreFunctionBwd(t *testing.T) {
	type args = moe.FusedTopkWithScoreFunctionBwdArgs
	good := func() args {
		return args{
			RoutingMap: checktest.Zeros(tensor.Bool, 3, 8), IntermediateOutput: checktest.F32(3, 8), GradProbs: checktest.F32(3, 8), GradLogits: checktest.F32(3, 8),
			Topk: 2, ScoreFunction: moe.SoftmaxScore, Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.FusedTopkWithScoreFunctionBwd, good, []checktest.Refusal[args]{
		{Name: "no score function", Edit: func(a *args) { a.ScoreFunction = 0 }, Operand: "score_function", Want: "sigmoid"},
		{Name: "no grad_probs", Edit: func(a *args) { a.GradProbs = nil }, Operand: "grad_probs", Want: "a tensor"},
		{Name: "topk too large", Edit: func(a *args) { a.Topk = 9 }, Operand: "topk", Want: "from 1 to the 8 experts"},
		{Name: "shape of grad_logits", Edit: func(a *args) { a.GradLogits = checktest.F32(3, 7) }, Operand: "grad_logits", Want: "the shape of grad_probs"},
		{Name: "dtype of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.Zeros(tensor.U8, 3, 8) }, Operand: "routing_map", Want: "dtype bool"},
		{Name: "shape of intermediate_output", Edit: func(a *args) { a.IntermediateOutput = checktest.F32(8, 3) }, Operand: "intermediate_output", Want: "the shape of grad_probs"},
		{Name: "in place in part", Edit: func(a *args) { a.GradLogits = checktest.Shifted(&a.GradProbs) }, Operand: "grad_logits", Want: "the same view as grad_probs"},
		{Name: "grad_logits over intermediate_output", Edit: func(a *args) { a.GradLogits = a.IntermediateOutput }, Operand: "grad_logits", Want: "memory apart from intermediate_output"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.FusedTopkWithScoreFunctionBwd, good, map[string]func(a *args){"in place": func(a *args) { a.GradLogits = a.GradProbs }})
	checktest.Operands(t, moe.FusedTopkWithScoreFunctionBwd, good(), checktest.Access{
		"routing_map": opregistry.AccessRead, "intermediate_output": opregistry.AccessRead, "grad_probs": opregistry.AccessRead, "grad_logits": opregistry.AccessWrite,
	})
}

func TestFusedScoreForMoEAuxLoss(t *testing.T) {
	type args = moe.FusedScoreForMoEAuxLossFwdArgs
	good := func() args {
		return args{
			Logits: checktest.Zeros(tensor.BF16, 3, 8), Topk: 2, ScoreFunction: moe.SigmoidScore, Scores: checktest.F32(3, 8), RoutingMap: checktest.Zeros(tensor.Bool, 3, 8),
			IntermediateOutput: checktest.F32(3, 8), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.FusedScoreForMoEAuxLossFwd, good, []checktest.Refusal[args]{
		{Name: "no score function", Edit: func(a *args) { a.ScoreFunction = 0 }, Operand: "score_function", Want: "sigmoid"},
		{Name: "no topk", Edit: func(a *args) { a.Topk = 0 }, Operand: "topk", Want: "from 1 to the 8 experts"},
		{Name: "dtype of scores", Edit: func(a *args) { a.Scores = checktest.Zeros(tensor.BF16, 3, 8) }, Operand: "scores", Want: "dtype f32"},
		{Name: "shape of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.Zeros(tensor.Bool, 3, 7) }, Operand: "routing_map", Want: "the shape of logits"},
		{Name: "no intermediate_output", Edit: func(a *args) { a.IntermediateOutput = nil }, Operand: "intermediate_output", Want: "a tensor"},
		{Name: "scores are intermediate_output", Edit: func(a *args) { a.Scores = a.IntermediateOutput }, Operand: "intermediate_output", Want: "memory apart from scores"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Operands(t, moe.FusedScoreForMoEAuxLossFwd, good(), checktest.Access{
		"logits": opregistry.AccessRead, "scores": opregistry.AccessWrite, "routing_map": opregistry.AccessWrite, "intermediate_output": opregistry.AccessWrite,
	})

	type back = moe.FusedScoreForMoEAuxLossBwdArgs
	undo := func() back {
		return back{
			IntermediateOutput: checktest.F32(3, 8), GradScores: checktest.F32(3, 8), GradLogits: checktest.Zeros(tensor.BF16, 3, 8), Topk: 2, ScoreFunction: moe.SigmoidScore,
			Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.FusedScoreForMoEAuxLossBwd, undo, []checktest.Refusal[back]{
		{Name: "no grad_logits", Edit: func(a *back) { a.GradLogits = nil }, Operand: "grad_logits", Want: "a tensor"},
		{Name: "dtype of grad_scores", Edit: func(a *back) { a.GradScores = checktest.Zeros(tensor.BF16, 3, 8) }, Operand: "grad_scores", Want: "dtype f32"},
		{Name: "shape of intermediate_output", Edit: func(a *back) { a.IntermediateOutput = checktest.F32(8, 3) }, Operand: "intermediate_output", Want: "the shape of grad_logits"},
		{Name: "grad_logits are grad_scores", Edit: func(a *back) { a.GradLogits = checktest.F32(3, 8); a.GradScores = a.GradLogits }, Operand: "grad_logits", Want: "memory apart from grad_scores"},
		{Name: "no saved", Edit: func(a *back) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Operands(t, moe.FusedScoreForMoEAuxLossBwd, undo(), checktest.Access{
		"intermediate_output": opregistry.AccessRead, "grad_scores": opregistry.AccessRead, "grad_logits": opregistry.AccessWrite,
	})
}

func TestFusedMoEAuxLoss(t *testing.T) {
	type args = moe.FusedMoEAuxLossFwdArgs
	good := func() args {
		return args{
			Probs: checktest.F32(5, 3), TokensPerExpert: checktest.I64(1, 2, 3), TotalNumTokens: 5, NumExperts: 3, Topk: 1, Coeff: 0.1,
			AuxLoss: checktest.F32(1), ConstBuf: checktest.F32(1), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.FusedMoEAuxLossFwd, good, []checktest.Refusal[args]{
		{Name: "no probs", Edit: func(a *args) { a.Probs = nil }, Operand: "probs", Want: "a tensor"},
		{Name: "dtype of tokens_per_expert", Edit: func(a *args) { a.TokensPerExpert = checktest.Zeros(tensor.U8, 3) }, Operand: "tokens_per_expert", Want: "dtype f32, bf16, f16, f64, i32 or i64"},
		{Name: "length of tokens_per_expert", Edit: func(a *args) { a.TokensPerExpert = checktest.I64(1, 2) }, Operand: "tokens_per_expert", Want: "shape [3], as [cols]"},
		{Name: "no tokens", Edit: func(a *args) { a.TotalNumTokens = 0 }, Operand: "total_num_tokens", Want: "a number >= 1"},
		{Name: "no experts", Edit: func(a *args) { a.NumExperts = 0 }, Operand: "num_experts", Want: "a number >= 1"},
		{Name: "no topk", Edit: func(a *args) { a.Topk = 0 }, Operand: "topk", Want: "a number >= 1"},
		{Name: "coeff", Edit: func(a *args) { a.Coeff = float32(math.NaN()) }, Operand: "coeff", Want: "a finite number"},
		{Name: "dtype of aux_loss", Edit: func(a *args) { a.AuxLoss = checktest.Zeros(tensor.F64, 1) }, Operand: "aux_loss", Want: "the dtype of probs"},
		{Name: "length of aux_loss", Edit: func(a *args) { a.AuxLoss = checktest.F32(2) }, Operand: "aux_loss", Want: "1 element (1)"},
		{Name: "dtype of const_buf", Edit: func(a *args) { a.ConstBuf = checktest.Zeros(tensor.F64, 1) }, Operand: "const_buf", Want: "dtype f32"},
		{Name: "aux_loss is const_buf", Edit: func(a *args) { a.AuxLoss = a.ConstBuf }, Operand: "const_buf", Want: "memory apart from aux_loss"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.FusedMoEAuxLossFwd, good, map[string]func(a *args){
		"counts in bf16": func(a *args) { a.TokensPerExpert = checktest.Zeros(tensor.BF16, 3) },
		"a scalar":       func(a *args) { a.AuxLoss = checktest.Zeros(tensor.F32) },
	})
	checktest.Operands(t, moe.FusedMoEAuxLossFwd, good(), checktest.Access{
		"probs": opregistry.AccessRead, "tokens_per_expert": opregistry.AccessRead, "aux_loss": opregistry.AccessWrite, "const_buf": opregistry.AccessWrite,
	})

	type back = moe.FusedMoEAuxLossBwdArgs
	undo := func() back {
		return back{ConstBuf: checktest.F32(1), TokensPerExpert: checktest.I32(1, 2, 3), GradAuxLoss: checktest.F32(1), GradProbs: checktest.F32(5, 3), Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, moe.FusedMoEAuxLossBwd, undo, []checktest.Refusal[back]{
		{Name: "no const_buf", Edit: func(a *back) { a.ConstBuf = nil }, Operand: "const_buf", Want: "a tensor"},
		{Name: "axes of grad_probs", Edit: func(a *back) { a.GradProbs = checktest.F32(15) }, Operand: "grad_probs", Want: "shape [rows cols]"},
		{Name: "length of tokens_per_expert", Edit: func(a *back) { a.TokensPerExpert = checktest.I32(1) }, Operand: "tokens_per_expert", Want: "shape [3], as [cols]"},
		{Name: "dtype of grad_aux_loss", Edit: func(a *back) { a.GradAuxLoss = checktest.Zeros(tensor.F16, 1) }, Operand: "grad_aux_loss", Want: "the dtype of grad_probs"},
		{Name: "length of grad_aux_loss", Edit: func(a *back) { a.GradAuxLoss = checktest.F32(2) }, Operand: "grad_aux_loss", Want: "1 element (1)"},
		{Name: "grad_probs over const_buf", Edit: func(a *back) { a.ConstBuf = checktest.Flat(a.GradProbs, 1) }, Operand: "grad_probs", Want: "memory apart from const_buf"},
		{Name: "no saved", Edit: func(a *back) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Operands(t, moe.FusedMoEAuxLossBwd, undo(), checktest.Access{
		"const_buf": opregistry.AccessRead, "tokens_per_expert": opregistry.AccessRead, "grad_aux_loss": opregistry.AccessRead, "grad_probs": opregistry.AccessWrite,
	})
}
