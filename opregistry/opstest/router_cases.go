package opstest

import (
	"fmt"
	"math"
	"slices"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
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
func (s *stage) logits(l layout, d tensor.DType, tokens, experts int) *tensor.Tensor {
	s.t.Helper()
	x := s.out(l, d, tokens, experts)
	var v []float64
	for range tokens {
		for _, rank := range s.permutation(experts) {
			v = append(v, float64(rank-experts/2)/16)
		}
	}
	s.fill(x, v)
	return x
}

func topkArgs(s *stage, l layout, d tensor.DType, r routerCase) moe.FusedTopkWithScoreFunctionFwdArgs {
	return moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: s.logits(l, d, r.tokens, r.experts), Topk: r.topk, UsePreSoftmax: r.pre, NumGroups: r.groups, GroupTopk: r.groupTopk,
		ScoreFunction: r.score, Probs: s.out(l, d, r.tokens, r.experts), RoutingMap: s.out(l, tensor.Bool, r.tokens, r.experts),
		IntermediateOutput: s.out(l, tensor.F32, r.tokens, r.experts), Saved: new(opregistry.Saved),
	}
}

func topkCases(d tensor.DType) []testCase[moe.FusedTopkWithScoreFunctionFwdArgs] {
	type args = moe.FusedTopkWithScoreFunctionFwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, r := range routerCases() {
		for _, l := range []layout{dense, padded} {
			add(fmt.Sprintf("%v/%v", r, l), func(s *stage) args { return topkArgs(s, l, d, r) })
		}
		add(fmt.Sprintf("%v/scaling_factor", r), func(s *stage) args {
			a := topkArgs(s, turned, d, r)
			a.ScalingFactor = opregistry.Float(2.5)
			return a
		})
		if r.score != moe.SoftmaxScore {
			add(fmt.Sprintf("%v/expert_bias", r), func(s *stage) args {
				a := topkArgs(s, dense, d, r)
				a.ExpertBias = s.in(dense, tensor.F32, r.experts)
				return a
			})
		}
	}
	// Far from 0 a careless score function gives Inf or 0.
	for _, f := range []moe.ScoreFunction{moe.SigmoidScore, moe.SoftmaxScore, moe.SqrtSoftplusScore} {
		add("large/"+f.String(), func(s *stage) args {
			a := topkArgs(s, dense, d, routerCase{tokens: 1, experts: 6, topk: 3, score: f})
			s.fill(a.Logits, []float64{-120, 60, -40, 7, 120, 0.5})
			return a
		})
	}
	return cases
}

// topkBwdArgs makes the gradient of a call without groups and bias.
func topkBwdArgs(s *stage, l layout, d tensor.DType, r routerCase) moe.FusedTopkWithScoreFunctionBwdArgs {
	a := moe.FusedTopkWithScoreFunctionBwdArgs{
		RoutingMap: s.out(l, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.out(l, tensor.F32, r.tokens, r.experts),
		GradProbs: s.in(l, d, r.tokens, r.experts), GradLogits: s.out(l, d, r.tokens, r.experts),
		Topk: r.topk, UsePreSoftmax: r.pre, ScoreFunction: r.score, Saved: new(opregistry.Saved),
	}
	s.saveTopk(a, s.logits(dense, tensor.F64, r.tokens, r.experts))
	return a
}

// saveTopk writes the routing map and the intermediate output that the documentation
// of fused_topk_with_score_function_fwd defines, without groups and bias.
func (s *stage) saveTopk(a moe.FusedTopkWithScoreFunctionBwdArgs, logits *tensor.Tensor) {
	s.t.Helper()
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
	s.fill(a.RoutingMap, chosen)
	s.fill(a.IntermediateOutput, x)
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
func (s *stage) lostLogits(d tensor.DType, saved *tensor.Tensor, f moe.ScoreFunction) *tensor.Tensor {
	s.t.Helper()
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
	x := s.out(dense, d, saved.Shape()...)
	s.fill(x, v)
	return x
}

// topkRefresh replaces routing map and intermediate output by what a forward impl saves.
func topkRefresh(t tensortest.TB, x *opregistry.Exec, a moe.FusedTopkWithScoreFunctionBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &stage{t: t}
	logits := s.lostLogits(a.GradProbs.DType(), a.IntermediateOutput, a.ScoreFunction)
	return save(t, x, moe.FusedTopkWithScoreFunctionFwd, forward, moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: logits, Topk: a.Topk, UsePreSoftmax: a.UsePreSoftmax, ScoreFunction: a.ScoreFunction,
		Probs: s.out(dense, logits.DType(), logits.Shape()...), RoutingMap: a.RoutingMap, IntermediateOutput: a.IntermediateOutput, Saved: a.Saved,
	})
}

func topkBwdCases(d tensor.DType) []testCase[moe.FusedTopkWithScoreFunctionBwdArgs] {
	type args = moe.FusedTopkWithScoreFunctionBwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, r := range routerCases() {
		if r.groupTopk > 0 {
			continue
		}
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", r, l), func(s *stage) args { return topkBwdArgs(s, l, d, r) })
		}
		add(fmt.Sprintf("%v/scaling_factor", r), func(s *stage) args {
			a := topkBwdArgs(s, dense, d, r)
			a.ScalingFactor = opregistry.Float(-0.5)
			return a
		})
		add(fmt.Sprintf("%v/in_place", r), func(s *stage) args {
			a := topkBwdArgs(s, dense, d, r)
			a.GradLogits = a.GradProbs
			return a
		})
	}
	return cases
}

func topkGradCases() []gradCase {
	var cases []gradCase
	add := func(name string, r routerCase, edit func(*stage, *moe.FusedTopkWithScoreFunctionFwdArgs)) {
		cases = append(cases, gradient(fmt.Sprintf("%v%s", r, name), moe.FusedTopkWithScoreFunctionFwd, moe.FusedTopkWithScoreFunctionBwd,
			func(s *stage) derivation[moe.FusedTopkWithScoreFunctionFwdArgs, moe.FusedTopkWithScoreFunctionBwdArgs] {
				f := topkArgs(s, dense, tensor.F64, r)
				edit(s, &f)
				b := moe.FusedTopkWithScoreFunctionBwdArgs{
					RoutingMap: s.out(dense, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.out(dense, tensor.F32, r.tokens, r.experts),
					GradProbs: s.f64(r.tokens, r.experts), GradLogits: s.blank(r.tokens, r.experts),
					Topk: r.topk, UsePreSoftmax: r.pre, ScoreFunction: r.score, ScalingFactor: f.ScalingFactor, Saved: f.Saved,
				}
				s.saveTopk(b, f.Logits)
				return derivation[moe.FusedTopkWithScoreFunctionFwdArgs, moe.FusedTopkWithScoreFunctionBwdArgs]{
					forward: []moe.FusedTopkWithScoreFunctionFwdArgs{f}, backward: []moe.FusedTopkWithScoreFunctionBwdArgs{b},
					y: f.Probs, dy: b.GradProbs, wrt: []derivative{{"logits", f.Logits, b.GradLogits}}, refresh: topkRefresh,
				}
			}))
	}
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.tokens > 7 {
			continue
		}
		add("", r, func(*stage, *moe.FusedTopkWithScoreFunctionFwdArgs) {})
		add("/scaling_factor", r, func(_ *stage, a *moe.FusedTopkWithScoreFunctionFwdArgs) { a.ScalingFactor = opregistry.Float(2.5) })
	}
	return cases
}
