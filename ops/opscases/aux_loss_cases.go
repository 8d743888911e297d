package opscases

import (
	"fmt"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func scoreArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, r routerCase) moe.FusedScoreForMoEAuxLossFwdArgs {
	return moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: logits(s, l, d, r.tokens, r.experts), Topk: r.topk, ScoreFunction: r.score, Scores: s.Out(l, tensor.F32, r.tokens, r.experts),
		RoutingMap: s.Out(l, tensor.Bool, r.tokens, r.experts), IntermediateOutput: s.Out(l, tensor.F32, r.tokens, r.experts), Saved: new(opregistry.Saved),
	}
}

func scoreCases(d tensor.DType) []opstest.Case[moe.FusedScoreForMoEAuxLossFwdArgs] {
	var cases []opstest.Case[moe.FusedScoreForMoEAuxLossFwdArgs]
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre {
			continue
		}
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[moe.FusedScoreForMoEAuxLossFwdArgs]{Name: fmt.Sprintf("%v/%v", r, l), Make: func(s *opstest.Stage) moe.FusedScoreForMoEAuxLossFwdArgs {
				return scoreArgs(s, l, d, r)
			}})
		}
	}
	return cases
}

func scoreBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, r routerCase) moe.FusedScoreForMoEAuxLossBwdArgs {
	a := moe.FusedScoreForMoEAuxLossBwdArgs{
		IntermediateOutput: s.Out(l, tensor.F32, r.tokens, r.experts), GradScores: s.In(l, tensor.F32, r.tokens, r.experts),
		GradLogits: s.Out(l, d, r.tokens, r.experts), Topk: r.topk, ScoreFunction: r.score, Saved: new(opregistry.Saved),
	}
	saveAll(s, a, logits(s, opstest.Dense, tensor.F64, r.tokens, r.experts))
	return a
}

// saveAll writes the intermediate output that the documentation of
// fused_score_for_moe_aux_loss_fwd defines.
func saveAll(s *opstest.Stage, a moe.FusedScoreForMoEAuxLossBwdArgs, logits *tensor.Tensor) {
	s.T.Helper()
	x, experts := logits.Float64s(), logits.Shape()[1]
	for first := 0; first < len(x); first += experts {
		saveScores(x[first:first+experts], nil, a.ScoreFunction, true)
	}
	s.Fill(a.IntermediateOutput, x)
}

// scoreRefresh replaces the intermediate output by what a forward impl saves.
func scoreRefresh(t tensortest.TB, x *opregistry.Exec, a moe.FusedScoreForMoEAuxLossBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &opstest.Stage{T: t}
	logits := lostLogits(s, a.GradLogits.DType(), a.IntermediateOutput, a.ScoreFunction)
	return opstest.RunForward(t, x, moe.FusedScoreForMoEAuxLossFwd, forward, moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: logits, Topk: a.Topk, ScoreFunction: a.ScoreFunction, Scores: s.Out(opstest.Dense, tensor.F32, logits.Shape()...),
		RoutingMap: s.Out(opstest.Dense, tensor.Bool, logits.Shape()...), IntermediateOutput: a.IntermediateOutput, Saved: a.Saved,
	})
}

func scoreBwdCases(d tensor.DType) []opstest.Case[moe.FusedScoreForMoEAuxLossBwdArgs] {
	var cases []opstest.Case[moe.FusedScoreForMoEAuxLossBwdArgs]
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre {
			continue
		}
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[moe.FusedScoreForMoEAuxLossBwdArgs]{Name: fmt.Sprintf("%v/%v", r, l), Make: func(s *opstest.Stage) moe.FusedScoreForMoEAuxLossBwdArgs {
				return scoreBwdArgs(s, l, d, r)
			}})
		}
	}
	return cases
}

func scoreGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	for _, r := range routerCases() {
		if r.groupTopk > 0 || r.pre || r.tokens > 7 {
			continue
		}
		cases = append(cases, opstest.NewGradCase(r.String(), moe.FusedScoreForMoEAuxLossFwd, moe.FusedScoreForMoEAuxLossBwd,
			func(s *opstest.Stage) opstest.Derivation[moe.FusedScoreForMoEAuxLossFwdArgs, moe.FusedScoreForMoEAuxLossBwdArgs] {
				f, b := scoreArgs(s, opstest.Dense, tensor.F64, r), scoreBwdArgs(s, opstest.Dense, tensor.F64, r)
				saveAll(s, b, f.Logits)
				return opstest.Derivation[moe.FusedScoreForMoEAuxLossFwdArgs, moe.FusedScoreForMoEAuxLossBwdArgs]{
					Forward: []moe.FusedScoreForMoEAuxLossFwdArgs{f}, Backward: []moe.FusedScoreForMoEAuxLossBwdArgs{b},
					Y: f.Scores, DY: b.GradScores, Wrt: []opstest.Derivative{{Name: "logits", X: f.Logits, DX: b.GradLogits}}, Refresh: scoreRefresh,
				}
			}))
	}
	return cases
}

// auxLossSizes are rows and columns of probabilities.
func auxLossSizes() [][2]int { return [][2]int{{1, 1}, {5, 8}, {70, 40}, {0, 4}, {3, 0}} }

func auxLossArgs(s *opstest.Stage, l opstest.Layout, d, counts tensor.DType, rows, cols int) moe.FusedMoEAuxLossFwdArgs {
	return moe.FusedMoEAuxLossFwdArgs{
		Probs: s.In(l, d, rows, cols), TokensPerExpert: s.Integers(counts, below(s, cols, 100), cols),
		TotalNumTokens: 50, NumExperts: 16, Topk: 2, Coeff: 0.5, AuxLoss: s.Out(opstest.Dense, d, 1), ConstBuf: s.Out(opstest.Dense, tensor.F32, 1), Saved: new(opregistry.Saved),
	}
}

// countDTypes returns the dtypes of tokens per expert.
func countDTypes() []tensor.DType {
	return []tensor.DType{tensor.I32, tensor.I64, tensor.F32, tensor.BF16}
}

func auxLossCases(d tensor.DType) []opstest.Case[moe.FusedMoEAuxLossFwdArgs] {
	var cases []opstest.Case[moe.FusedMoEAuxLossFwdArgs]
	for _, size := range auxLossSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, counts := range countDTypes() {
				if l != opstest.Dense && counts != tensor.I32 {
					continue // the dtypes of the counts once
				}
				cases = append(cases, opstest.Case[moe.FusedMoEAuxLossFwdArgs]{Name: fmt.Sprintf("%v/%v/%v", size, l, counts), Make: func(s *opstest.Stage) moe.FusedMoEAuxLossFwdArgs {
					return auxLossArgs(s, l, d, counts, size[0], size[1])
				}})
			}
		}
	}
	return cases
}

func auxLossBwdArgs(s *opstest.Stage, l opstest.Layout, d, counts tensor.DType, rows, cols int) moe.FusedMoEAuxLossBwdArgs {
	return moe.FusedMoEAuxLossBwdArgs{
		ConstBuf: s.Values(tensor.F32, 0.0078125), TokensPerExpert: s.Integers(counts, below(s, cols, 100), cols),
		GradAuxLoss: s.In(opstest.Dense, d, 1), GradProbs: s.Out(l, d, rows, cols), Saved: new(opregistry.Saved),
	}
}

func auxLossBwdCases(d tensor.DType) []opstest.Case[moe.FusedMoEAuxLossBwdArgs] {
	var cases []opstest.Case[moe.FusedMoEAuxLossBwdArgs]
	for _, size := range auxLossSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, counts := range countDTypes() {
				if l != opstest.Dense && counts != tensor.I32 {
					continue // the dtypes of the counts once
				}
				cases = append(cases, opstest.Case[moe.FusedMoEAuxLossBwdArgs]{Name: fmt.Sprintf("%v/%v/%v", size, l, counts), Make: func(s *opstest.Stage) moe.FusedMoEAuxLossBwdArgs {
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
	s, d := &opstest.Stage{T: t}, a.GradProbs.DType()
	return opstest.RunForward(t, x, moe.FusedMoEAuxLossFwd, forward, moe.FusedMoEAuxLossFwdArgs{
		Probs: s.In(opstest.Dense, d, 1, a.TokensPerExpert.NumElements()), TokensPerExpert: a.TokensPerExpert,
		TotalNumTokens: 1, NumExperts: 1, Topk: 1, Coeff: float32(a.ConstBuf.At(0)),
		AuxLoss: s.Out(opstest.Dense, d, 1), ConstBuf: a.ConstBuf, Saved: a.Saved,
	})
}

func auxLossGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("probs", moe.FusedMoEAuxLossFwd, moe.FusedMoEAuxLossBwd,
		func(s *opstest.Stage) opstest.Derivation[moe.FusedMoEAuxLossFwdArgs, moe.FusedMoEAuxLossBwdArgs] {
			f, b := auxLossArgs(s, opstest.Dense, tensor.F64, tensor.I64, 4, 3), auxLossBwdArgs(s, opstest.Dense, tensor.F64, tensor.I64, 4, 3)
			f.TotalNumTokens, f.NumExperts = 32, 16 // 16·0.5 / (2·32²) = 2⁻⁸
			b.TokensPerExpert = f.TokensPerExpert
			s.Fill(b.ConstBuf, []float64{0x1p-8})
			return opstest.Derivation[moe.FusedMoEAuxLossFwdArgs, moe.FusedMoEAuxLossBwdArgs]{
				Forward: []moe.FusedMoEAuxLossFwdArgs{f}, Backward: []moe.FusedMoEAuxLossBwdArgs{b},
				Y: f.AuxLoss, DY: b.GradAuxLoss, Wrt: []opstest.Derivative{{Name: "probs", X: f.Probs, DX: b.GradProbs}}, Refresh: auxLossRefresh,
			}
		})}
}
