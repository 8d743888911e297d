package opscases

import (
	"fmt"
	"math"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// routerCase is a choice of experts.
type routerCase struct {
	tokens, experts, topk int
	score                 moe.ScoreFunction
	pre                   bool
	groups, groupTopk     int
}

func (r routerCase) String() string {
	name := fmt.Sprintf("tokens%d,experts%d,topk%d/%v", r.tokens, r.experts, r.topk, r.score)
	if r.pre {
		name += "/pre"
	}
	if r.groupTopk > 0 {
		name += fmt.Sprintf("/groups=%d,%d", r.groups, r.groupTopk)
	}
	return name
}

// routerCases are every score function with several sizes.
func routerCases() []routerCase {
	var cases []routerCase
	for _, r := range []routerCase{
		{tokens: 1, experts: 1, topk: 1}, {tokens: 5, experts: 8, topk: 1}, {tokens: 7, experts: 5, topk: 5},
		{tokens: 0, experts: 4, topk: 2}, {tokens: 9, experts: 64, topk: 8},
		{tokens: 6, experts: 16, topk: 4, groups: 4, groupTopk: 2}, {tokens: 5, experts: 64, topk: 8, groups: 8, groupTopk: 8},
		{tokens: 4, experts: 12, topk: 3, groups: 3, groupTopk: 1},
	} {
		for _, f := range []moe.ScoreFunction{moe.SigmoidScore, moe.SoftmaxScore, moe.SqrtSoftplusScore} {
			r.score, r.pre = f, false
			cases = append(cases, r)
			if f == moe.SoftmaxScore {
				r.pre = true
				cases = append(cases, r)
			}
		}
	}
	return cases
}

// logits makes rows of numbers that are a sixteenth apart, so that all impls agree on which is
// larger.
func logits(s *opstest.Stage, l opstest.Layout, d tensor.DType, tokens, experts int) *tensor.Tensor {
	s.T.Helper()
	x := s.Out(l, d, tokens, experts)
	tokens, experts = x.Shape()[0], x.Shape()[1]
	if experts > 128 {
		s.T.Fatalf("opscases: %d experts have scores that are equal in %v", experts, d)
	}
	var v []float64
	for range tokens {
		for _, rank := range s.Permutation(experts) {
			v = append(v, float64(rank-experts/2)/16)
		}
	}
	s.Fill(x, v)
	return x
}

func topkArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, r routerCase) moe.FusedTopkWithScoreFunctionFwdArgs {
	return moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: logits(s, l, d, r.tokens, r.experts), Topk: r.topk, UsePreSoftmax: r.pre, NumGroups: r.groups, GroupTopk: r.groupTopk,
		ScoreFunction: r.score, Probs: s.Out(l, d, r.tokens, r.experts), RoutingMap: s.Out(l, tensor.Bool, r.tokens, r.experts),
		IntermediateOutput: s.Out(l, tensor.F32, r.tokens, r.experts), Saved: new(opregistry.Saved),
	}
}

func topkCases(d tensor.DType) []opstest.Case[moe.FusedTopkWithScoreFunctionFwdArgs] {
	type args = moe.FusedTopkWithScoreFunctionFwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, r := range routerCases() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			add(fmt.Sprintf("%v/%v", r, l), func(s *opstest.Stage) args { return topkArgs(s, l, d, r) })
		}
		add(fmt.Sprintf("%v/scaling_factor", r), func(s *opstest.Stage) args {
			a := topkArgs(s, opstest.Turned, d, r)
			a.ScalingFactor = opregistry.Float(2.5)
			return a
		})
		if r.score != moe.SoftmaxScore {
			add(fmt.Sprintf("%v/expert_bias", r), func(s *opstest.Stage) args {
				a := topkArgs(s, opstest.Dense, d, r)
				a.ExpertBias = s.In(opstest.Dense, tensor.F32, r.experts)
				return a
			})
		}
	}
	// Far from 0 a careless score function gives Inf or 0.
	for _, f := range []moe.ScoreFunction{moe.SigmoidScore, moe.SoftmaxScore, moe.SqrtSoftplusScore} {
		add("large/"+f.String(), func(s *opstest.Stage) args {
			a := topkArgs(s, opstest.Dense, d, routerCase{tokens: 1, experts: 6, topk: 3, score: f})
			s.Fill(a.Logits, []float64{-120, 60, -40, 7, 120, 0.5})
			return a
		})
	}
	// In f32 the scores of several experts are equal by rounding, those of their logits are not.
	for _, f := range []moe.ScoreFunction{moe.SigmoidScore, moe.SoftmaxScore, moe.SqrtSoftplusScore} {
		add("close/"+f.String(), func(s *opstest.Stage) args {
			a := topkArgs(s, opstest.Dense, d, routerCase{tokens: 3, experts: 6, topk: 3, score: f, pre: f == moe.SoftmaxScore})
			s.Fill(a.Logits, []float64{-120, 60, -40, 7, 120, 0.5, 20, 21, 22, 23, 24, 25, -95, -96, -97, -110, -100, -99})
			return a
		})
	}
	for _, pre := range []bool{false, true} {
		add(fmt.Sprintf("infinite_or_missing/pre=%v", pre), func(s *opstest.Stage) args {
			a := topkArgs(s, opstest.Dense, d, routerCase{tokens: 4, experts: 5, topk: 2, score: moe.SoftmaxScore, pre: pre})
			inf := math.Inf(1)
			s.Fill(a.Logits, []float64{0, 1, inf, 2, 3, 4, math.NaN(), 0, 5, 1, -inf, -inf, -inf, -inf, -inf, -inf, 2, -inf, 1, 2})
			return a
		})
	}
	return cases
}

// topkBwdArgs makes the gradient of a call without groups and bias.
func topkBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, r routerCase) moe.FusedTopkWithScoreFunctionBwdArgs {
	a := moe.FusedTopkWithScoreFunctionBwdArgs{
		RoutingMap: s.Out(l, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.Out(l, tensor.F32, r.tokens, r.experts),
		GradProbs: s.In(l, d, r.tokens, r.experts), GradLogits: s.Out(l, d, r.tokens, r.experts),
		Topk: r.topk, UsePreSoftmax: r.pre, ScoreFunction: r.score, Saved: new(opregistry.Saved),
	}
	saveTopk(s, a, logits(s, opstest.Dense, tensor.F64, r.tokens, r.experts))
	return a
}

// saveTopk writes the routing map and the intermediate output that the documentation
// of fused_topk_with_score_function_fwd defines, without groups and bias.
func saveTopk(s *opstest.Stage, a moe.FusedTopkWithScoreFunctionBwdArgs, logits *tensor.Tensor) {
	s.T.Helper()
	experts := logits.Shape()[1]
	x := logits.Float64s()
	chosen := make([]float64, len(x))
	for first := 0; first < len(x); first += experts {
		row := x[first : first+experts]
		order := slices.Clone(row)
		slices.Sort(order)
		for e, v := range row {
			if v >= order[experts-a.Topk] {
				chosen[first+e] = 1
			}
		}
		saveScores(row, chosen[first:], a.ScoreFunction, a.UsePreSoftmax)
	}
	s.Fill(a.RoutingMap, chosen)
	s.Fill(a.IntermediateOutput, x)
}

// saveScores replaces logits by what a router saves for them.
func saveScores(x, chosen []float64, f moe.ScoreFunction, all bool) {
	sum := 0.0
	for e, v := range x {
		if all || chosen[e] != 0 {
			sum += math.Exp(v)
		}
	}
	for e, v := range x {
		switch {
		case f == moe.SigmoidScore:
			x[e] = 1 / (1 + math.Exp(-v))
		case f == moe.SoftmaxScore && (all || chosen[e] != 0):
			x[e] = math.Exp(v) / sum
		case f == moe.SoftmaxScore:
			x[e] = math.Inf(-1)
		}
	}
}

// lostLogits returns logits for which a router saves the intermediate output.
func lostLogits(s *opstest.Stage, d tensor.DType, saved *tensor.Tensor, f moe.ScoreFunction) *tensor.Tensor {
	s.T.Helper()
	if d != tensor.F64 {
		d = tensor.F32
	}
	v := saved.Float64s()
	for i, x := range v {
		switch f {
		case moe.SigmoidScore:
			v[i] = math.Log(x / (1 - x))
		case moe.SoftmaxScore:
			v[i] = math.Log(max(x, 0))
		}
	}
	x := s.Out(opstest.Dense, d, saved.Shape()...)
	s.Fill(x, v)
	return x
}

// topkRefresh replaces routing map and intermediate output by what a forward impl saves.
func topkRefresh(t tensortest.TB, x *opregistry.Exec, a moe.FusedTopkWithScoreFunctionBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &opstest.Stage{T: t}
	logits := lostLogits(s, a.GradProbs.DType(), a.IntermediateOutput, a.ScoreFunction)
	return opstest.RunForward(t, x, moe.FusedTopkWithScoreFunctionFwd, forward, moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: logits, Topk: a.Topk, UsePreSoftmax: a.UsePreSoftmax, ScoreFunction: a.ScoreFunction,
		Probs: s.Out(opstest.Dense, logits.DType(), logits.Shape()...), RoutingMap: a.RoutingMap, IntermediateOutput: a.IntermediateOutput, Saved: a.Saved,
	})
}

func topkBwdCases(d tensor.DType) []opstest.Case[moe.FusedTopkWithScoreFunctionBwdArgs] {
	type args = moe.FusedTopkWithScoreFunctionBwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, r := range routerCases() {
		if r.groupTopk > 0 {
			continue
		}
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", r, l), func(s *opstest.Stage) args { return topkBwdArgs(s, l, d, r) })
		}
		add(fmt.Sprintf("%v/scaling_factor", r), func(s *opstest.Stage) args {
			a := topkBwdArgs(s, opstest.Dense, d, r)
			a.ScalingFactor = opregistry.Float(-0.5)
			return a
		})
		add(fmt.Sprintf("%v/in_place", r), func(s *opstest.Stage) args {
			a := topkBwdArgs(s, opstest.Dense, d, r)
			a.GradLogits = a.GradProbs
			return a
		})
	}
	return cases
}

func topkGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	add := func(name string, r routerCase, edit func(*opstest.Stage, *moe.FusedTopkWithScoreFunctionFwdArgs)) {
		cases = append(cases, opstest.NewGradCase(fmt.Sprintf("%v%s", r, name), moe.FusedTopkWithScoreFunctionFwd, moe.FusedTopkWithScoreFunctionBwd,
			func(s *opstest.Stage) opstest.Derivation[moe.FusedTopkWithScoreFunctionFwdArgs, moe.FusedTopkWithScoreFunctionBwdArgs] {
				f := topkArgs(s, opstest.Dense, tensor.F64, r)
				edit(s, &f)
				b := moe.FusedTopkWithScoreFunctionBwdArgs{
					RoutingMap: s.Out(opstest.Dense, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.Out(opstest.Dense, tensor.F32, r.tokens, r.experts),
					GradProbs: s.F64In(r.tokens, r.experts), GradLogits: s.F64Out(r.tokens, r.experts),
					Topk: r.topk, UsePreSoftmax: r.pre, ScoreFunction: r.score, ScalingFactor: f.ScalingFactor, Saved: f.Saved,
				}
				saveTopk(s, b, f.Logits)
				return opstest.Derivation[moe.FusedTopkWithScoreFunctionFwdArgs, moe.FusedTopkWithScoreFunctionBwdArgs]{
					Forward: []moe.FusedTopkWithScoreFunctionFwdArgs{f}, Backward: []moe.FusedTopkWithScoreFunctionBwdArgs{b},
					Y: f.Probs, DY: b.GradProbs, Wrt: []opstest.Derivative{{Name: "logits", X: f.Logits, DX: b.GradLogits}}, Refresh: topkRefresh,
				}
			}))
	}
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.tokens > 7 {
			continue
		}
		add("", r, func(*opstest.Stage, *moe.FusedTopkWithScoreFunctionFwdArgs) {})
		add("/scaling_factor", r, func(_ *opstest.Stage, a *moe.FusedTopkWithScoreFunctionFwdArgs) {
			a.ScalingFactor = opregistry.Float(2.5)
		})
	}
	return cases
}
