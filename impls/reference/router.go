package reference

import (
	"math"
	"slices"

	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// routerEpsilon keeps the sums of scores from being 0.
const routerEpsilon = 1e-20

// fusedTopkFwd implements moe.FusedTopkWithScoreFunctionFwd.
func fusedTopkFwd(a moe.FusedTopkWithScoreFunctionFwdArgs) error {
	experts := a.Logits.Shape()[1]
	bias := orAll(a.ExpertBias, experts, 0)
	scale := float64(a.ScalingFactor.Or(1))
	x := a.Logits.Float64s()
	probs, chosen, saved := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	for first := 0; first < len(x); first += experts {
		logits := x[first : first+experts]
		s := logits
		if a.ScoreFunction != moe.SoftmaxScore || a.UsePreSoftmax {
			s = scores(logits, a.ScoreFunction)
		}
		value := make([]float64, experts)
		for e := range value {
			value[e] = s[e] + bias[e]
		}
		candidates := considered(a, value)
		if a.ExpertBias == nil && !(a.ScoreFunction == moe.SoftmaxScore && math.IsNaN(s[0])) {
			value = logits // scores of different logits may be equal by rounding
		}
		best := topmost(value, candidates, a.Topk)
		p := weights(s, best, a.ScoreFunction, a.UsePreSoftmax)
		for k, e := range best {
			probs[first+e], chosen[first+e] = scale*p[k], 1
		}
		switch {
		case a.ScoreFunction == moe.SqrtSoftplusScore:
			copy(saved[first:], logits)
		case a.ScoreFunction == moe.SoftmaxScore && !a.UsePreSoftmax:
			copy(saved[first:], orAll(nil, experts, math.Inf(-1)))
			for k, e := range best {
				saved[first+e] = p[k]
			}
		default:
			copy(saved[first:], s)
		}
	}
	if err := a.Probs.SetFloat64s(probs); err != nil {
		return err
	}
	if err := a.RoutingMap.SetFloat64s(chosen); err != nil {
		return err
	}
	return a.IntermediateOutput.SetFloat64s(saved)
}

// scores applies a score function to the logits of a token.
func scores(x []float64, f moe.ScoreFunction) []float64 {
	s := make([]float64, len(x))
	lse := logSumExp(x)
	for e, v := range x {
		switch f {
		case moe.SigmoidScore:
			s[e] = 1 / (1 + math.Exp(-v))
		case moe.SqrtSoftplusScore:
			s[e] = math.Sqrt(softplus(v))
		default:
			s[e] = math.Exp(v - lse)
			if math.IsInf(lse, 0) {
				s[e] = math.NaN()
			}
		}
	}
	return s
}

// softplus returns ln(1 + eˣ).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// considered returns the experts that may be chosen, in order.
func considered(a moe.FusedTopkWithScoreFunctionFwdArgs, value []float64) []int {
	all := make([]int, len(value))
	for e := range all {
		all[e] = e
	}
	if a.GroupTopk == 0 {
		return all
	}
	size := len(value) / a.NumGroups
	worth, groups := make([]float64, a.NumGroups), make([]int, a.NumGroups)
	for g := range groups {
		groups[g] = g
		for _, e := range topmost(value, all[g*size:(g+1)*size], a.Topk/a.GroupTopk) {
			worth[g] += value[e]
		}
	}
	var experts []int
	for _, g := range topmost(worth, groups, a.GroupTopk) {
		experts = append(experts, all[g*size:(g+1)*size]...)
	}
	slices.Sort(experts)
	return experts
}

// topmost returns the n of some indexes with the largest values; of equal values the first comes
// first, and NaN comes before all numbers.
func topmost(value []float64, index []int, n int) []int {
	index = slices.Clone(index)
	slices.SortStableFunc(index, func(i, j int) int {
		x, y := value[i], value[j]
		switch {
		case x > y || math.IsNaN(x) && !math.IsNaN(y):
			return -1
		case x < y || math.IsNaN(y) && !math.IsNaN(x):
			return 1
		default:
			return 0
		}
	})
	return index[:n]
}

// weights returns p of the chosen experts.
func weights(s []float64, best []int, f moe.ScoreFunction, preSoftmax bool) []float64 {
	p := make([]float64, len(best))
	sum := routerEpsilon
	for k, e := range best {
		p[k] = s[e]
		sum += s[e]
	}
	switch {
	case f == moe.SoftmaxScore && !preSoftmax:
		return scores(p, moe.SoftmaxScore)
	case f == moe.SoftmaxScore || len(best) == 1:
		return p
	}
	for k := range p {
		p[k] /= sum
	}
	return p
}

// fusedTopkBwd implements moe.FusedTopkWithScoreFunctionBwd.
func fusedTopkBwd(a moe.FusedTopkWithScoreFunctionBwdArgs) error {
	scale := float64(a.ScalingFactor.Or(1))
	g, chosen := a.GradProbs.Float64s(), a.RoutingMap.Float64s()
	for i := range g {
		g[i] *= scale
	}
	all := a.ScoreFunction == moe.SoftmaxScore && a.UsePreSoftmax
	return routerGradient(a.GradLogits, a.IntermediateOutput, g, chosen, a.ScoreFunction, all, a.Topk)
}

// routerGradient writes the gradient with respect to the logits. g is the gradient of the weights;
// it is used only where an expert was chosen. all says whether softmax ran over all experts or over
// the chosen ones.
func routerGradient(gradLogits, saved *tensor.Tensor, g, chosen []float64, f moe.ScoreFunction, all bool, topk int) error {
	experts := gradLogits.Shape()[1]
	out, x := make([]float64, len(g)), saved.Float64s()
	for first := 0; first < len(g); first += experts {
		end := first + experts
		s := x[first:end]
		if f == moe.SqrtSoftplusScore {
			s = scores(s, f)
		}
		sum, product := routerEpsilon, 0.0
		for e := range s {
			if chosen[first+e] != 0 {
				sum += s[e]
				product += s[e] * g[first+e]
			}
		}
		for e := range s {
			taken := chosen[first+e] != 0
			ds := 0.0
			switch {
			case taken && f == moe.SoftmaxScore:
				ds = g[first+e] - product
			case f == moe.SoftmaxScore && all:
				ds = -product
			case taken && topk > 1:
				ds = g[first+e]/sum - product/(sum*sum)
			case taken:
				ds = g[first+e]
			default:
				continue
			}
			switch f {
			case moe.SoftmaxScore:
				out[first+e] = ds * s[e]
			case moe.SigmoidScore:
				out[first+e] = ds * s[e] * (1 - s[e])
			default:
				out[first+e] = ds / (1 + math.Exp(-x[first+e])) / (2*s[e] + routerEpsilon)
			}
		}
	}
	return gradLogits.SetFloat64s(out)
}

// fusedScoreFwd implements moe.FusedScoreForMoEAuxLossFwd.
func fusedScoreFwd(a moe.FusedScoreForMoEAuxLossFwdArgs) error {
	experts := a.Logits.Shape()[1]
	x := a.Logits.Float64s()
	out, chosen, saved := make([]float64, len(x)), make([]float64, len(x)), make([]float64, len(x))
	all := make([]int, experts)
	for e := range all {
		all[e] = e
	}
	for first := 0; first < len(x); first += experts {
		s := scores(x[first:first+experts], a.ScoreFunction)
		copy(saved[first:], s)
		if a.ScoreFunction == moe.SqrtSoftplusScore {
			copy(saved[first:first+experts], x[first:])
		}
		for _, e := range topmost(s, all, a.Topk) {
			chosen[first+e] = 1
		}
		if a.ScoreFunction != moe.SoftmaxScore && a.Topk > 1 {
			sum := routerEpsilon
			for _, v := range s {
				sum += v
			}
			for e := range s {
				s[e] /= sum
			}
		}
		copy(out[first:], s)
	}
	if err := a.Scores.SetFloat64s(out); err != nil {
		return err
	}
	if err := a.RoutingMap.SetFloat64s(chosen); err != nil {
		return err
	}
	return a.IntermediateOutput.SetFloat64s(saved)
}

// fusedScoreBwd implements moe.FusedScoreForMoEAuxLossBwd.
func fusedScoreBwd(a moe.FusedScoreForMoEAuxLossBwdArgs) error {
	g := a.GradScores.Float64s()
	return routerGradient(a.GradLogits, a.IntermediateOutput, g, orAll(nil, len(g), 1), a.ScoreFunction, true, a.Topk)
}

// fusedAuxLossFwd implements moe.FusedMoEAuxLossFwd.
func fusedAuxLossFwd(a moe.FusedMoEAuxLossFwdArgs) error {
	n := float64(a.TotalNumTokens)
	c := float64(a.NumExperts) * float64(a.Coeff) / (float64(a.Topk) * n * n)
	tokens, sum := a.TokensPerExpert.Float64s(), 0.0
	for i, p := range a.Probs.Float64s() {
		sum += p * tokens[i%len(tokens)]
	}
	if err := a.AuxLoss.SetFloat64s([]float64{c * sum}); err != nil {
		return err
	}
	return a.ConstBuf.SetFloat64s([]float64{c})
}

// fusedAuxLossBwd implements moe.FusedMoEAuxLossBwd.
func fusedAuxLossBwd(a moe.FusedMoEAuxLossBwdArgs) error {
	c, g, tokens := a.ConstBuf.Float64s()[0], a.GradAuxLoss.Float64s()[0], a.TokensPerExpert.Float64s()
	out := make([]float64, a.GradProbs.NumElements())
	for i := range out {
		out[i] = c * tokens[i%len(tokens)] * g
	}
	return a.GradProbs.SetFloat64s(out)
}
