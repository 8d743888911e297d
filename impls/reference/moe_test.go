package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

// Three tokens that choose two of three experts each: expert 0 gets tokens 1 and 2,
// expert 1 tokens 0 and 1, expert 2 tokens 0 and 2.
func TestMoEPermute(t *testing.T) {
	t.Parallel()
	saved := new(opregistry.Saved)
	fwd := moe.MoEPermuteFwdArgs{
		Input: f64(t, []int{3, 1}, 10, 20, 30), Indices: of(t, tensor.I32, []int{3, 2}, 2, 1, 0, 1, 2, 0),
		Output: out(t, tensor.F64, 6, 1), RowIDMap: out(t, tensor.I32, 6), Saved: saved,
	}
	run(t, moe.MoEPermuteFwd, fwd)
	want(t, fwd.Output, 20, 30, 10, 20, 10, 30)
	want(t, fwd.RowIDMap, 4, 0, 5, 2, 3, 1) // [topk][tokens]

	// Without rows for expert 2, its pairs are dropped.
	fwd.Output = out(t, tensor.F64, 4, 1)
	run(t, moe.MoEPermuteFwd, fwd)
	want(t, fwd.Output, 20, 30, 10, 20)
	want(t, fwd.RowIDMap, -1, 0, -1, 2, 3, 1)

	y := moe.MoEUnpermuteArgs{
		Input: f64(t, []int{4, 1}, 1, 2, 3, 4), RowIDMap: fwd.RowIDMap, Prob: of(t, tensor.F32, []int{3, 2}, 0.5, 0.25, 1, 2, 8, 4),
		Output: out(t, tensor.F64, 3, 1), Saved: saved,
	}
	run(t, moe.MoEUnpermuteFwd, y)
	want(t, y.Output, 0.25*3, 1*1+2*4, 4*2)
	y.Prob = nil
	run(t, moe.MoEPermuteBwd, y)
	want(t, y.Output, 3, 5, 2)

	b := moe.MoEUnpermuteBwdArgs{
		InputBwd: f64(t, []int{3, 1}, 1, 10, 100), InputFwd: f64(t, []int{4, 1}, 1, 2, 3, 4), RowIDMap: fwd.RowIDMap,
		Prob:    of(t, tensor.F32, []int{3, 2}, 0.5, 0.25, 1, 2, 8, 4),
		ActGrad: out(t, tensor.F64, 4, 1), ProbGrad: out(t, tensor.F32, 3, 2), Saved: saved,
	}
	run(t, moe.MoEUnpermuteBwd, b)
	want(t, b.ActGrad, 10, 400, 0.25, 20)
	want(t, b.ProbGrad, 0, 3, 10, 40, 0, 200)
}

func TestMoERoutingMap(t *testing.T) {
	t.Parallel()
	a := moe.MoEPermuteWithRoutingMapArgs{
		Tokens: f64(t, []int{3, 1}, 10, 20, 30), RoutingMap: of(t, tensor.Bool, []int{3, 2}, 0, 1, 1, 1, 1, 0),
		Probs: of(t, tensor.F32, []int{3, 2}, 1, 2, 3, 4, 5, 6), Output: out(t, tensor.F64, 4, 1), OutputProbs: out(t, tensor.F32, 4),
		SortedIndices: out(t, tensor.I32, 4), Saved: new(opregistry.Saved),
	}
	run(t, moe.MoEPermuteWithRoutingMap, a)
	want(t, a.Output, 20, 30, 10, 20)
	want(t, a.OutputProbs, 3, 5, 2, 4)
	want(t, a.SortedIndices, 1, 2, 0, 1)
	y := out(t, tensor.F64, 3, 1)
	run(t, moe.MoEUnpermuteWithRoutingMap, moe.MoEUnpermuteWithRoutingMapArgs{
		PermutedTokens: f64(t, []int{4, 1}, 1, 2, 3, 4), SortedIndices: a.SortedIndices, Output: y, Saved: a.Saved,
	})
	want(t, y, 3, 5, 2)
}

func TestMoESortChunks(t *testing.T) {
	t.Parallel()
	a := moe.MoESortChunksFwdArgs{
		Input: f64(t, []int{4, 1}, 1, 2, 3, 4), SplitSizes: i32(t, 1, 0, 2, 1), SortedIdxs: i32(t, 2, 3, 1, 0), Probs: f32(t, 10, 20, 30, 40),
		Output: out(t, tensor.F64, 4, 1), OutputProbs: out(t, tensor.F32, 4), InverseRowMap: out(t, tensor.I64, 4), Saved: new(opregistry.Saved),
	}
	run(t, moe.MoESortChunksFwd, a)
	want(t, a.Output, 2, 3, 4, 1)
	want(t, a.OutputProbs, 20, 30, 40, 10)
	want(t, a.InverseRowMap, 3, 0, 1, 2)
	b := moe.MoESortChunksBwdArgs{
		GradOutput: a.Output, GradProbs: a.OutputProbs, InverseRowMap: a.InverseRowMap,
		GradInput: out(t, tensor.F64, 4, 1), GradInProbs: out(t, tensor.F32, 4), Saved: a.Saved,
	}
	run(t, moe.MoESortChunksBwd, b)
	want(t, b.GradInput, 1, 2, 3, 4)
	want(t, b.GradInProbs, 10, 20, 30, 40)
}

func TestFusedMultiRow(t *testing.T) {
	t.Parallel()
	x, y := of(t, tensor.F8E4M3, []int{3, 1}, 1, 2, 3), out(t, tensor.F8E4M3, 5, 1)
	run(t, moe.FusedMultiRowPadding, moe.MultiRowPaddingArgs{Input: x, Output: y, InputRows: []int{1, 2}, OutputRows: []int{2, 3}})
	want(t, y, 1, 0, 2, 3, 0)
	z := out(t, tensor.F8E4M3, 3, 1)
	run(t, moe.FusedMultiRowUnpadding, moe.MultiRowPaddingArgs{Input: y, Output: z, InputRows: []int{2, 3}, OutputRows: []int{1, 2}})
	want(t, z, 1, 2, 3)
}
