package reference_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// route runs a router on the logits of one token.
func route(t *testing.T, edit func(a *moe.FusedTopkWithScoreFunctionFwdArgs), logits ...float64) moe.FusedTopkWithScoreFunctionFwdArgs {
	t.Helper()
	n := len(logits)
	a := moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: f64(t, []int{1, n}, logits...), Topk: 2, ScoreFunction: moe.SoftmaxScore,
		Probs: out(t, tensor.F64, 1, n), RoutingMap: out(t, tensor.Bool, 1, n), IntermediateOutput: out(t, tensor.F32, 1, n), Saved: new(opregistry.Saved),
	}
	edit(&a)
	run(t, moe.FusedTopkWithScoreFunctionFwd, a)
	return a
}

func TestRouter(t *testing.T) {
	t.Parallel()
	type args = moe.FusedTopkWithScoreFunctionFwdArgs
	ln2 := math.Ln2
	a := route(t, func(a *args) { a.ScalingFactor = opregistry.Float(8) }, 0, ln3, -1, ln2+ln3)
	want(t, a.RoutingMap, 0, 1, 0, 1)
	want(t, a.Probs, 0, 8.0/3, 0, 16.0/3) // softmax of ln 3 and ln 6
	want(t, a.IntermediateOutput, -inf, 1.0/3, -inf, 2.0/3)

	a = route(t, func(a *args) { a.UsePreSoftmax = true }, 0, ln3, ln2, ln2+ln3)
	want(t, a.Probs, 0, 3.0/12, 0, 6.0/12)
	want(t, a.IntermediateOutput, 1.0/12, 3.0/12, 2.0/12, 6.0/12)

	// σ(0) = 1/2, σ(ln 3) = 3/4, σ(−ln 3) = 1/4.
	sigmoid := func(a *args) { a.ScoreFunction = moe.SigmoidScore }
	a = route(t, sigmoid, 0, ln3, -ln3)
	want(t, a.Probs, 0.4, 0.6, 0)
	want(t, a.IntermediateOutput, 0.5, 0.75, 0.25)
	a = route(t, func(a *args) { a.ScoreFunction, a.Topk = moe.SigmoidScore, 1 }, 0, ln3, -ln3)
	want(t, a.Probs, 0, 0.75, 0) // one expert keeps its score

	// The bias changes the choice but not the weights.
	a = route(t, func(a *args) { a.ScoreFunction, a.ExpertBias = moe.SigmoidScore, f32(t, 0, -1, 0.5) }, 0, ln3, -ln3)
	want(t, a.RoutingMap, 1, 0, 1)
	want(t, a.Probs, 2.0/3, 0, 1.0/3)

	// ln(1+eˣ) is 1 for x = ln(e−1) and 4 for x = ln(e⁴−1).
	a = route(t, func(a *args) { a.ScoreFunction = moe.SqrtSoftplusScore }, math.Log(math.E-1), -40, math.Log(math.Exp(4)-1))
	want(t, a.Probs, 1.0/3, 0, 2.0/3)

	// Ties go to the first one.
	want(t, route(t, sigmoid, 1, 1, 1).RoutingMap, 1, 1, 0)
}

// The best single expert lies in the group with the worse sum of two.
func TestRouterGroups(t *testing.T) {
	t.Parallel()
	a := route(t, func(a *moe.FusedTopkWithScoreFunctionFwdArgs) {
		a.ScoreFunction, a.NumGroups, a.GroupTopk = moe.SigmoidScore, 2, 1
	}, 3, -3, -4, 1, 2, 0)
	want(t, a.RoutingMap, 0, 0, 0, 1, 1, 0)
	a = route(t, func(a *moe.FusedTopkWithScoreFunctionFwdArgs) {
		a.ScoreFunction, a.NumGroups, a.GroupTopk = moe.SigmoidScore, 3, 2 // the value of a group is its best expert
	}, 3, -3, -4, 1, 2, 0)
	want(t, a.RoutingMap, 1, 0, 0, 0, 1, 0)
}

func TestRouterScores(t *testing.T) {
	t.Parallel()
	score := func(topk int, f moe.ScoreFunction, logits ...float64) moe.FusedScoreForMoEAuxLossFwdArgs {
		n := len(logits)
		a := moe.FusedScoreForMoEAuxLossFwdArgs{
			Logits: f64(t, []int{1, n}, logits...), Topk: topk, ScoreFunction: f, Scores: out(t, tensor.F32, 1, n),
			RoutingMap: out(t, tensor.Bool, 1, n), IntermediateOutput: out(t, tensor.F32, 1, n), Saved: new(opregistry.Saved),
		}
		run(t, moe.FusedScoreForMoEAuxLossFwd, a)
		return a
	}
	a := score(2, moe.SigmoidScore, 0, ln3, -ln3)
	want(t, a.Scores, 0.5/1.5, 0.75/1.5, 0.25/1.5)
	want(t, a.RoutingMap, 1, 1, 0)
	want(t, a.IntermediateOutput, 0.5, 0.75, 0.25)
	want(t, score(1, moe.SigmoidScore, 0, ln3, -ln3).Scores, 0.5, 0.75, 0.25)
	want(t, score(1, moe.SoftmaxScore, 0, ln3).Scores, 0.25, 0.75)
	want(t, score(2, moe.SqrtSoftplusScore, 5, -2).IntermediateOutput, 5, -2)
	a = score(2, moe.SigmoidScore, 1, 2, 3, nan)
	want(t, a.Scores, nan, nan, nan, nan)
	want(t, a.RoutingMap, 0, 0, 1, 1)
}

func TestMoEAuxLoss(t *testing.T) {
	t.Parallel()
	a := moe.FusedMoEAuxLossFwdArgs{
		Probs: f64(t, []int{2, 2}, 0.25, 0.75, 0.5, 0.5), TokensPerExpert: i32(t, 4, 2), TotalNumTokens: 2, NumExperts: 8, Topk: 2, Coeff: 0.5,
		AuxLoss: out(t, tensor.F64, 1), ConstBuf: out(t, tensor.F32, 1), Saved: new(opregistry.Saved),
	}
	run(t, moe.FusedMoEAuxLossFwd, a)
	want(t, a.ConstBuf, 0.5) // 8·0.5 / (2·2²)
	want(t, a.AuxLoss, 0.5*(4*0.75+2*1.25))
	b := moe.FusedMoEAuxLossBwdArgs{
		ConstBuf: a.ConstBuf, TokensPerExpert: a.TokensPerExpert, GradAuxLoss: f64(t, []int{1}, 3), GradProbs: out(t, tensor.F64, 2, 2), Saved: a.Saved,
	}
	run(t, moe.FusedMoEAuxLossBwd, b)
	want(t, b.GradProbs, 6, 3, 6, 3)
}

// As torch does: a softmax over +Inf has no numbers, and a NaN is chosen before all of them.
func TestRouterOfInfiniteAndMissingScores(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		logits, want []float64
		pre          bool
	}{
		{[]float64{0, 1, inf, 2}, []float64{nan, nan, 0, 0}, true},
		{[]float64{0, 1, inf, 2}, []float64{0, 0, nan, nan}, false},
		{[]float64{0, 1, nan, 2}, []float64{nan, nan, 0, 0}, true},
		{[]float64{0, 1, nan, 2}, []float64{0, 0, nan, nan}, false},
		{[]float64{-inf, -inf, -inf, -inf}, []float64{nan, nan, 0, 0}, true},
		{[]float64{-inf, 0, -inf, 0}, []float64{0, 0.5, 0, 0.5}, true},
	} {
		a := moe.FusedTopkWithScoreFunctionFwdArgs{
			Logits: f64(t, []int{1, 4}, tt.logits...), Topk: 2, UsePreSoftmax: tt.pre, ScoreFunction: moe.SoftmaxScore, Probs: out(t, tensor.F64, 1, 4),
			RoutingMap: out(t, tensor.Bool, 1, 4), IntermediateOutput: out(t, tensor.F32, 1, 4), Saved: new(opregistry.Saved),
		}
		run(t, moe.FusedTopkWithScoreFunctionFwd, a)
		want(t, a.Probs, tt.want...)
	}
}
