package flagos_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func routerSubjects() []subject {
	return []subject{
		subjectOf[moe.FusedTopkWithScoreFunctionFwdArgs]{moe.FusedTopkWithScoreFunctionFwd, func(m *maker) moe.FusedTopkWithScoreFunctionFwdArgs {
			return routed(m.t, m.rng, m.size(9, 400), m.dense, m.stored)
		}, elementwise},
		subjectOf[moe.FusedTopkWithScoreFunctionBwdArgs]{moe.FusedTopkWithScoreFunctionBwd, func(m *maker) moe.FusedTopkWithScoreFunctionBwdArgs {
			return routedBack(m.t, routed(m.t, m.rng, m.size(9, 400), m.dense, m.stored), m.fill, m.stored)
		}, summed},
		subjectOf[moe.FusedScoreForMoEAuxLossFwdArgs]{moe.FusedScoreForMoEAuxLossFwd, func(m *maker) moe.FusedScoreForMoEAuxLossFwdArgs {
			return scored(routed(m.t, m.rng, m.size(9, 400), m.dense, m.stored), m.dense)
		}, elementwise},
		subjectOf[moe.FusedScoreForMoEAuxLossBwdArgs]{moe.FusedScoreForMoEAuxLossBwd, func(m *maker) moe.FusedScoreForMoEAuxLossBwdArgs {
			return scoredBack(m.t, scored(routed(m.t, m.rng, m.size(9, 400), m.dense, m.stored), m.dense), m.fill, m.dense, m.stored)
		}, summed},
		subjectOf[moe.FusedMoEAuxLossFwdArgs]{moe.FusedMoEAuxLossFwd, func(m *maker) moe.FusedMoEAuxLossFwdArgs {
			rows, experts := m.size(20, 600), m.size(70, 64)
			return moe.FusedMoEAuxLossFwdArgs{
				Probs: m.fill(m.out(rows, experts)), TokensPerExpert: m.indexes(experts, 50, 0), TotalNumTokens: rows, NumExperts: experts, Topk: 2, Coeff: 0.5,
				AuxLoss: m.stored(1), ConstBuf: m.dense(tensor.F32, 1), Saved: new(opregistry.Saved),
			}
		}, summed},
		subjectOf[moe.FusedMoEAuxLossBwdArgs]{moe.FusedMoEAuxLossBwd, func(m *maker) moe.FusedMoEAuxLossBwdArgs {
			rows, experts := m.size(20, 600), m.size(70, 64)
			return moe.FusedMoEAuxLossBwdArgs{
				ConstBuf: m.fill(m.dense(tensor.F32, 1)), TokensPerExpert: m.indexes(experts, 50, 0), GradAuxLoss: m.fill(m.stored(1)),
				GradProbs: m.out(rows, experts), Saved: new(opregistry.Saved),
			}
		}, summed},
		subjectOf[moe.MoEPermuteWithRoutingMapArgs]{moe.MoEPermuteWithRoutingMap, buildByMap, tensortest.Tolerance{}},
		subjectOf[moe.MoEUnpermuteWithRoutingMapArgs]{moe.MoEUnpermuteWithRoutingMap, func(m *maker) moe.MoEUnpermuteWithRoutingMapArgs {
			rows, tokens, h := m.size(60, 900), m.size(20, 300), m.size(70, 200)
			return moe.MoEUnpermuteWithRoutingMapArgs{
				PermutedTokens: m.fill(m.out(rows, h)), SortedIndices: int32s(m, rows, tokens), Output: m.out(tokens, h), Saved: new(opregistry.Saved),
			}
		}, summed},
		subjectOf[moe.MoESortChunksFwdArgs]{moe.MoESortChunksFwd, buildSortChunks, tensortest.Tolerance{}},
		subjectOf[moe.MoESortChunksBwdArgs]{moe.MoESortChunksBwd, func(m *maker) moe.MoESortChunksBwdArgs {
			rows, h := m.size(40, 600), m.size(70, 200)
			return moe.MoESortChunksBwdArgs{
				GradOutput: m.fill(m.out(rows, h)), GradProbs: m.fill(m.dense(tensor.F32, rows)), InverseRowMap: m.indexes(rows, rows, 0),
				GradInput: m.out(rows, h), GradInProbs: m.dense(tensor.F32, rows), Saved: new(opregistry.Saved),
			}
		}, tensortest.Tolerance{}},
		subjectOf[moe.MultiRowPaddingArgs]{moe.FusedMultiRowPadding, func(m *maker) moe.MultiRowPaddingArgs { return buildGroups(m, 1) }, tensortest.Tolerance{}},
		subjectOf[moe.MultiRowPaddingArgs]{moe.FusedMultiRowUnpadding, func(m *maker) moe.MultiRowPaddingArgs { return buildGroups(m, -1) }, tensortest.Tolerance{}},
	}
}

// routed makes the choice of experts for some tokens. Logits of a token are a sixteenth apart, so
// that f32 and f64 agree on which is larger.
func routed(t testing.TB, r *rand.Rand, tokens int, zeros func(tensor.DType, ...int) *tensor.Tensor, stored func(...int) *tensor.Tensor) moe.FusedTopkWithScoreFunctionFwdArgs {
	groups, size := 1+r.IntN(4), 2+r.IntN(15)
	experts := groups * size
	a := moe.FusedTopkWithScoreFunctionFwdArgs{
		Logits: stored(tokens, experts), Topk: 1 + r.IntN(min(experts, 8)), ScoreFunction: moe.ScoreFunction(1 + r.IntN(3)),
		Probs: stored(tokens, experts), RoutingMap: zeros(tensor.Bool, tokens, experts), IntermediateOutput: zeros(tensor.F32, tokens, experts),
		Saved: new(opregistry.Saved),
	}
	if r.IntN(2) == 0 {
		a.NumGroups, a.GroupTopk = groups, 1+r.IntN(groups)
		a.Topk = a.GroupTopk * (1 + r.IntN(min(size, 3)))
	}
	if a.ScoreFunction == moe.SoftmaxScore {
		a.UsePreSoftmax = r.IntN(2) == 0
	} else if r.IntN(2) == 0 {
		a.ScalingFactor = opregistry.Float(2.5)
	}
	var logits []float64
	for range tokens {
		for _, rank := range r.Perm(experts) {
			logits = append(logits, float64(rank-experts/2)/16)
		}
	}
	require.NoError(t, a.Logits.SetFloat64s(logits))
	return a
}

// routedBack makes the gradient of a choice of experts.
func routedBack(t testing.TB, a moe.FusedTopkWithScoreFunctionFwdArgs, fill func(*tensor.Tensor) *tensor.Tensor, stored func(...int) *tensor.Tensor) moe.FusedTopkWithScoreFunctionBwdArgs {
	require.NoError(t, runOf(t, slowSource, moe.FusedTopkWithScoreFunctionFwd)(opregistry.NewExec(nil, 0), a))
	grad := fill(stored(a.Logits.Shape()...))
	return moe.FusedTopkWithScoreFunctionBwdArgs{
		RoutingMap: a.RoutingMap, IntermediateOutput: a.IntermediateOutput, GradProbs: grad, GradLogits: grad, Topk: a.Topk,
		UsePreSoftmax: a.UsePreSoftmax, ScalingFactor: a.ScalingFactor, ScoreFunction: a.ScoreFunction, Saved: a.Saved,
	}
}

func scored(a moe.FusedTopkWithScoreFunctionFwdArgs, zeros func(tensor.DType, ...int) *tensor.Tensor) moe.FusedScoreForMoEAuxLossFwdArgs {
	return moe.FusedScoreForMoEAuxLossFwdArgs{
		Logits: a.Logits, Topk: a.Topk, ScoreFunction: a.ScoreFunction, Scores: zeros(tensor.F32, a.Logits.Shape()...), RoutingMap: a.RoutingMap,
		IntermediateOutput: a.IntermediateOutput, Saved: a.Saved,
	}
}

func scoredBack(t testing.TB, a moe.FusedScoreForMoEAuxLossFwdArgs, fill func(*tensor.Tensor) *tensor.Tensor, zeros func(tensor.DType, ...int) *tensor.Tensor, stored func(...int) *tensor.Tensor) moe.FusedScoreForMoEAuxLossBwdArgs {
	require.NoError(t, runOf(t, slowSource, moe.FusedScoreForMoEAuxLossFwd)(opregistry.NewExec(nil, 0), a))
	return moe.FusedScoreForMoEAuxLossBwdArgs{
		IntermediateOutput: a.IntermediateOutput, GradScores: fill(zeros(tensor.F32, a.Logits.Shape()...)), GradLogits: stored(a.Logits.Shape()...),
		Topk: a.Topk, ScoreFunction: a.ScoreFunction, Saved: a.Saved,
	}
}

func int32s(m *maker, n, limit int) *tensor.Tensor {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(m.rng.IntN(limit))
	}
	return set(m.t, m.dense(tensor.I32, n), values...)
}

func buildByMap(m *maker) moe.MoEPermuteWithRoutingMapArgs {
	tokens, experts, h := m.size(20, 300), m.size(16, 16), m.size(70, 200)
	values, rows := make([]float64, tokens*experts), 0
	for i := range values {
		if m.rng.IntN(4) == 0 {
			values[i] = 1
			rows++
		}
	}
	a := moe.MoEPermuteWithRoutingMapArgs{
		Tokens: m.fill(m.out(tokens, h)), RoutingMap: set(m.t, m.dense(tensor.Bool, tokens, experts), values...), Output: m.out(rows, h),
		SortedIndices: m.dense(tensor.I32, rows), Saved: new(opregistry.Saved),
	}
	if m.coin() {
		a.Probs, a.OutputProbs = m.fill(m.dense(tensor.F32, tokens, experts)), m.dense(tensor.F32, rows)
	}
	return a
}

func buildSortChunks(m *maker) moe.MoESortChunksFwdArgs {
	chunks, h, rows := m.size(6, 16), m.size(70, 200), 0
	sizes, order := make([]float64, chunks), make([]float64, chunks)
	for i, chunk := range m.rng.Perm(chunks) {
		n := m.rng.IntN(m.size(8, 60) + 1)
		sizes[i], order[i] = float64(n), float64(chunk)
		rows += n
	}
	a := moe.MoESortChunksFwdArgs{
		Input: m.fill(m.out(rows, h)), SplitSizes: set(m.t, m.dense(tensor.I64, chunks), sizes...), SortedIdxs: set(m.t, m.dense(tensor.I32, chunks), order...),
		Output: m.out(rows, h), InverseRowMap: m.dense(tensor.I32, rows), Saved: new(opregistry.Saved),
	}
	if m.coin() {
		a.Probs, a.OutputProbs = m.fill(m.dense(tensor.F32, rows)), m.dense(tensor.F32, rows)
	}
	return a
}

// buildGroups makes groups that the op makes longer, or shorter with a negative sign.
func buildGroups(m *maker, sign int) moe.MultiRowPaddingArgs {
	var short, long []int
	rows, longRows, h := 0, 0, m.size(70, 200)
	for range m.size(5, 8) {
		n, more := m.rng.IntN(m.size(8, 60)+1), m.rng.IntN(8)
		short, long = append(short, n), append(long, n+more)
		rows, longRows = rows+n, longRows+n+more
	}
	if sign > 0 {
		return moe.MultiRowPaddingArgs{Input: m.fill(m.out(rows, h)), Output: m.out(longRows, h), InputRows: short, OutputRows: long}
	}
	return moe.MultiRowPaddingArgs{Input: m.fill(m.out(longRows, h)), Output: m.out(rows, h), InputRows: long, OutputRows: short}
}

func TestRandomRoutesEqualTheReference(t *testing.T) {
	compare(t, moe.FusedTopkWithScoreFunctionFwd, func(r *random) moe.FusedTopkWithScoreFunctionFwdArgs {
		return routed(r.t, r.Rand, r.between(0, 9), r.zeros, r.stored)
	})
	compare(t, moe.FusedTopkWithScoreFunctionBwd, func(r *random) moe.FusedTopkWithScoreFunctionBwdArgs {
		return routedBack(r.t, routed(r.t, r.Rand, r.between(0, 9), r.zeros, r.stored), kept, r.stored)
	})
	compare(t, moe.FusedScoreForMoEAuxLossFwd, func(r *random) moe.FusedScoreForMoEAuxLossFwdArgs {
		return scored(routed(r.t, r.Rand, r.between(0, 9), r.zeros, r.stored), r.zeros)
	})
	compare(t, moe.FusedScoreForMoEAuxLossBwd, func(r *random) moe.FusedScoreForMoEAuxLossBwdArgs {
		return scoredBack(r.t, scored(routed(r.t, r.Rand, r.between(0, 9), r.zeros, r.stored), r.zeros), kept, r.of, r.stored)
	})
	compare(t, moe.MoEPermuteWithRoutingMap, func(r *random) moe.MoEPermuteWithRoutingMapArgs {
		return buildByMap(newMakerOf(r.t, r.dtype, r.Uint64(), false))
	})
}

// kept returns a tensor that has its values already.
func kept(x *tensor.Tensor) *tensor.Tensor { return x }

func TestAuxLossGradientHasEqualRows(t *testing.T) {
	const rows, experts = 700, 60 // more than are copied at a time
	tokens := make([]float64, experts)
	for e := range tokens {
		tokens[e] = float64(e)
	}
	got, err := tensor.FromSlice(make([]float32, rows*experts), rows, experts)
	require.NoError(t, err)
	a := moe.FusedMoEAuxLossBwdArgs{
		ConstBuf: vector(t, 1), TokensPerExpert: vector(t, tokens...), GradAuxLoss: vector(t, 1), GradProbs: got, Saved: new(opregistry.Saved),
	}
	require.NoError(t, runOf(t, flagos.Source(), moe.FusedMoEAuxLossBwd)(opregistry.NewExec(nil, 0), a))
	values := got.Float64s()
	for r := range rows {
		require.Equal(t, tokens, values[r*experts:][:experts], "row %d", r)
	}
}

func TestRoutesOfEqualInfiniteAndMissingScores(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	zeros := func(d tensor.DType, shape ...int) *tensor.Tensor {
		x, err := tensor.New(cpu.New(), d, shape...)
		require.NoError(t, err)
		return x
	}
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0}
	for range 300 {
		groups, size, tokens := 1+r.IntN(5), 1+r.IntN(20), r.IntN(40)
		experts := groups * size
		logits := make([]float64, tokens*experts)
		usual := 1 + r.IntN(30) // one score in so many is unusual
		for i := range logits {
			if logits[i] = float64(r.IntN(8)) / 4; r.IntN(usual) == 0 {
				logits[i] = odd[r.IntN(len(odd))]
			}
		}
		a := moe.FusedTopkWithScoreFunctionFwdArgs{
			Logits: zeros(tensor.F32, tokens, experts), Topk: 1 + r.IntN(min(experts, 20)), ScoreFunction: moe.SoftmaxScore,
			Probs: zeros(tensor.F32, tokens, experts), RoutingMap: zeros(tensor.Bool, tokens, experts),
			IntermediateOutput: zeros(tensor.F32, tokens, experts), Saved: new(opregistry.Saved),
			UsePreSoftmax: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 {
			a.NumGroups, a.GroupTopk = groups, 1+r.IntN(groups)
			a.Topk = a.GroupTopk * (1 + r.IntN(size))
		}
		require.NoError(t, a.Logits.SetFloat64s(logits))
		run := func(s opregistry.Source) (routes, probs []float64) {
			require.NoError(t, runOf(t, s, moe.FusedTopkWithScoreFunctionFwd)(opregistry.NewExec(nil, 0), a))
			return a.RoutingMap.Float64s(), a.Probs.Float64s()
		}
		want, wantProbs := run(reference.Source())
		got, probs := run(flagos.Source())
		require.Equal(t, want, got, "%d of %d experts, %d of %d groups, logits %v", a.Topk, experts, a.GroupTopk, a.NumGroups, logits)
		for i, w := range wantProbs {
			require.Equal(t, math.IsNaN(w), math.IsNaN(probs[i]), "weight %d", i)
			if !math.IsNaN(w) {
				require.InDelta(t, w, probs[i], 1e-6, "weight %d", i)
			}
		}
	}
}
