package opstest

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func scoreArgs(s *stage, l layout, d tensor.DType, r routerCase) moe.FusedScoreForMoEAuxLossFwdArgs {
	return moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: s.logits(l, d, r.tokens, r.experts), Topk: r.topk, ScoreFunction: r.score, Scores: s.out(l, tensor.F32, r.tokens, r.experts),
		RoutingMap: s.out(l, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.out(l, tensor.F32, r.tokens, r.experts), Saved: new(opregistry.Saved),
	}
}

func scoreCases(d tensor.DType) []testCase[moe.FusedScoreForMoEAuxLossFwdArgs] {
	var cases []testCase[moe.FusedScoreForMoEAuxLossFwdArgs]
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre {
			continue
		}
		for _, l := range []layout{dense, padded, turned} {
			cases = append(cases, testCase[moe.FusedScoreForMoEAuxLossFwdArgs]{fmt.Sprintf("%v/%v", r, l), func(s *stage) moe.FusedScoreForMoEAuxLossFwdArgs {
				return scoreArgs(s, l, d, r)
			}})
		}
	}
	return cases
}

func scoreBwdArgs(s *stage, l layout, d tensor.DType, r routerCase) moe.FusedScoreForMoEAuxLossBwdArgs {
	a := moe.FusedScoreForMoEAuxLossBwdArgs{
		IntermediateOutput: s.out(l, tensor.F32, r.tokens, r.experts), GradScores: s.in(l, tensor.F32, r.tokens, r.experts),
		GradLogits: s.out(l, d, r.tokens, r.experts), Topk: r.topk, ScoreFunction: r.score, Saved: new(opregistry.Saved),
	}
	s.saveAll(a, s.logits(dense, tensor.F64, r.tokens, r.experts))
	return a
}

// saveAll writes the intermediate output that the documentation of
// fused_score_for_moe_aux_loss_fwd defines.
func (s *stage) saveAll(a moe.FusedScoreForMoEAuxLossBwdArgs, logits *tensor.Tensor) {
	s.t.Helper()
	x, experts := logits.Float64s(), logits.Shape()[1]
	for first := 0; first < len(x); first += experts {
		saveScores(x[first:first+experts], nil, a.ScoreFunction, true)
	}
	s.fill(a.IntermediateOutput, x)
}

// scoreRefresh replaces the intermediate output by what a forward impl saves.
func scoreRefresh(t tensortest.TB, x *opregistry.Exec, a moe.FusedScoreForMoEAuxLossBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &stage{t: t}
	logits := s.lostLogits(a.GradLogits.DType(), a.IntermediateOutput, a.ScoreFunction)
	return save(t, x, moe.FusedScoreForMoEAuxLossFwd, forward, moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: logits, Topk: a.Topk, ScoreFunction: a.ScoreFunction, Scores: s.out(dense, tensor.F32, logits.Shape()...),
		RoutingMap: s.out(dense, tensor.Bool, logits.Shape()...), IntermediateOutput: a.IntermediateOutput, Saved: a.Saved,
	})
}

func scoreBwdCases(d tensor.DType) []testCase[moe.FusedScoreForMoEAuxLossBwdArgs] {
	var cases []testCase[moe.FusedScoreForMoEAuxLossBwdArgs]
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre {
			continue
		}
		for _, l := range []layout{dense, padded, turned} {
			cases = append(cases, testCase[moe.FusedScoreForMoEAuxLossBwdArgs]{fmt.Sprintf("%v/%v", r, l), func(s *stage) moe.FusedScoreForMoEAuxLossBwdArgs {
				return scoreBwdArgs(s, l, d, r)
			}})
		}
	}
	return cases
}

func scoreGradCases() []gradCase {
	var cases []gradCase
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre || r.tokens > 7 {
			continue
		}
		cases = append(cases, gradient(r.String(), moe.FusedScoreForMoEAuxLossFwd, moe.FusedScoreForMoEAuxLossBwd,
			func(s *stage) derivation[moe.FusedScoreForMoEAuxLossFwdArgs, moe.FusedScoreForMoEAuxLossBwdArgs] {
				f, b := scoreArgs(s, dense, tensor.F64, r), scoreBwdArgs(s, dense, tensor.F64, r)
				s.saveAll(b, f.Logits)
				return derivation[moe.FusedScoreForMoEAuxLossFwdArgs, moe.FusedScoreForMoEAuxLossBwdArgs]{
					forward: []moe.FusedScoreForMoEAuxLossFwdArgs{f}, backward: []moe.FusedScoreForMoEAuxLossBwdArgs{b},
					y: f.Scores, dy: b.GradScores, wrt: []derivative{{"logits", f.Logits, b.GradLogits}}, refresh: scoreRefresh,
				}
			}))
	}
	return cases
}

// auxLossSizes are rows and columns of probabilities.
func auxLossSizes() [][2]int { return [][2]int{{1, 1}, {5, 8}, {70, 40}, {0, 4}, {3, 0}} }

func auxLossArgs(s *stage, l layout, d, counts tensor.DType, rows, cols int) moe.FusedMoEAuxLossFwdArgs {
	return moe.FusedMoEAuxLossFwdArgs{
		Probs: s.in(l, d, rows, cols), TokensPerExpert: s.integers(counts, s.below(cols, 100), cols),
		TotalNumTokens: 50, NumExperts: 16, Topk: 2, Coeff: 0.5, AuxLoss: s.out(dense, d, 1), ConstBuf: s.out(dense, tensor.F32, 1), Saved: new(opregistry.Saved),
	}
}

// countDTypes returns the dtypes of tokens per expert.
func countDTypes() []tensor.DType {
	return []tensor.DType{tensor.I32, tensor.I64, tensor.F32, tensor.BF16}
}

func auxLossCases(d tensor.DType) []testCase[moe.FusedMoEAuxLossFwdArgs] {
	var cases []testCase[moe.FusedMoEAuxLossFwdArgs]
	for _, size := range auxLossSizes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, counts := range countDTypes() {
				if l != dense && counts != tensor.I32 {
					continue // the dtypes of the counts once
				}
				cases = append(cases, testCase[moe.FusedMoEAuxLossFwdArgs]{fmt.Sprintf("%v/%v/%v", size, l, counts), func(s *stage) moe.FusedMoEAuxLossFwdArgs {
					return auxLossArgs(s, l, d, counts, size[0], size[1])
				}})
			}
		}
	}
	return cases
}

func auxLossBwdArgs(s *stage, l layout, d, counts tensor.DType, rows, cols int) moe.FusedMoEAuxLossBwdArgs {
	return moe.FusedMoEAuxLossBwdArgs{
		ConstBuf: s.values(tensor.F32, 0.0078125), TokensPerExpert: s.integers(counts, s.below(cols, 100), cols),
		GradAuxLoss: s.in(dense, d, 1), GradProbs: s.out(l, d, rows, cols), Saved: new(opregistry.Saved),
	}
}

func auxLossBwdCases(d tensor.DType) []testCase[moe.FusedMoEAuxLossBwdArgs] {
	var cases []testCase[moe.FusedMoEAuxLossBwdArgs]
	for _, size := range auxLossSizes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, counts := range countDTypes() {
				if l != dense && counts != tensor.I32 {
					continue // the dtypes of the counts once
				}
				cases = append(cases, testCase[moe.FusedMoEAuxLossBwdArgs]{fmt.Sprintf("%v/%v/%v", size, l, counts), func(s *stage) moe.FusedMoEAuxLossBwdArgs {
					return auxLossBwdArgs(s, l, d, counts, size[0], size[1])
				}})
			}
		}
	}
	return cases
}

// auxLossRefresh replaces the factor by the one that a forward impl computes from a coefficient
// that yields the same value.
func auxLossRefresh(t tensortest.TB, x *opregistry.Exec, a moe.FusedMoEAuxLossBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &stage{t: t}, a.GradProbs.DType()
	return save(t, x, moe.FusedMoEAuxLossFwd, forward, moe.FusedMoEAuxLossFwdArgs{
		Probs: s.in(dense, d, 1, a.TokensPerExpert.NumElements()), TokensPerExpert: a.TokensPerExpert,
		TotalNumTokens: 1, NumExperts: 1, Topk: 1, Coeff: float32(a.ConstBuf.At(0)),
		AuxLoss: s.out(dense, d, 1), ConstBuf: a.ConstBuf, Saved: a.Saved,
	})
}

func auxLossGradCases() []gradCase {
	return []gradCase{gradient("probs", moe.FusedMoEAuxLossFwd, moe.FusedMoEAuxLossBwd,
		func(s *stage) derivation[moe.FusedMoEAuxLossFwdArgs, moe.FusedMoEAuxLossBwdArgs] {
			f, b := auxLossArgs(s, dense, tensor.F64, tensor.I64, 4, 3), auxLossBwdArgs(s, dense, tensor.F64, tensor.I64, 4, 3)
			f.TotalNumTokens, f.NumExperts = 32, 16 // 16·0.5 / (2·32²) = 2⁻⁸
			b.TokensPerExpert = f.TokensPerExpert
			s.fill(b.ConstBuf, []float64{0x1p-8})
			return derivation[moe.FusedMoEAuxLossFwdArgs, moe.FusedMoEAuxLossBwdArgs]{
				forward: []moe.FusedMoEAuxLossFwdArgs{f}, backward: []moe.FusedMoEAuxLossBwdArgs{b},
				y: f.AuxLoss, dy: b.GradAuxLoss, wrt: []derivative{{"probs", f.Probs, b.GradProbs}}, refresh: auxLossRefresh,
			}
		})}
}
