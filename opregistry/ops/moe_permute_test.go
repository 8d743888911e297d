package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestMoEPermuteFwd(t *testing.T) {
	type args = ops.MoEPermuteFwdArgs
	good := func() args {
		return args{Input: f32(3, 4), Indices: of(tensor.I32, 3, 2), Output: f32(5, 4), RowIDMap: of(tensor.I32, 6), Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.MoEPermuteFwd, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"axes of input", func(a *args) { a.Input = f32(12) }, "input", "2 axes"},
		{"dtype of input", func(a *args) { a.Input = of(tensor.U8, 3, 4) }, "input", "dtype f32, bf16, f16 or f64"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.F16, 5, 4) }, "output", "the dtype of input, f32"},
		{"columns of output", func(a *args) { a.Output = f32(5, 3) }, "output", "rows of 4"},
		{"rows of output", func(a *args) { a.Output = f32(7, 4) }, "output", "at most 6 rows"},
		{"no indices", func(a *args) { a.Indices = nil }, "indices", "a tensor"},
		{"dtype of indices", func(a *args) { a.Indices = of(tensor.I64, 3, 2) }, "indices", "dtype i32"},
		{"rows of indices", func(a *args) { a.Indices = of(tensor.I32, 2, 3) }, "indices", "a row for each of 3 tokens"},
		{"length of row_id_map", func(a *args) { a.RowIDMap = of(tensor.I32, 5) }, "row_id_map", "6 elements"},
		{"dtype of row_id_map", func(a *args) { a.RowIDMap = f32(6) }, "row_id_map", "dtype i32"},
		{"output over input", func(a *args) { a.Output = a.Input }, "output", "memory apart from input"},
		{"row_id_map over indices", func(a *args) { a.RowIDMap = flat(a.Indices, 6) }, "row_id_map", "memory apart from indices"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.MoEPermuteFwd, good, map[string]func(a *args){
		"everything": func(a *args) { a.Output = f32(6, 4) },
		"nothing":    func(a *args) { a.Output = f32(0, 4) },
		"no tokens": func(a *args) {
			a.Input, a.Indices, a.Output, a.RowIDMap = f32(0, 4), of(tensor.I32, 0, 2), f32(0, 4), i32()
		},
		"any experts": func(a *args) { a.Indices.Set(-5, 1, 1) },
	})
	testOperands(t, ops.MoEPermuteFwd, good(), access{
		"input": opregistry.AccessRead, "indices": opregistry.AccessRead, "output": opregistry.AccessWrite, "row_id_map": opregistry.AccessWrite,
	})
}

func TestMoEUnpermute(t *testing.T) {
	type args = ops.MoEUnpermuteArgs
	good := func() args {
		return args{Input: f32(5, 4), RowIDMap: i32(0, 1, -1, 4, 3, 2), Prob: f32(3, 2), Output: f32(3, 4), Saved: new(opregistry.Saved)}
	}
	for _, op := range []*opregistry.Op[args]{ops.MoEPermuteBwd, ops.MoEUnpermuteFwd} {
		testValidation(t, op, good, []refusal[args]{
			{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
			{"columns of output", func(a *args) { a.Output = f32(3, 5) }, "output", "rows of 4"},
			{"dtype of output", func(a *args) { a.Output = of(tensor.BF16, 3, 4) }, "output", "the dtype of input, f32"},
			{"no row_id_map", func(a *args) { a.RowIDMap = nil }, "row_id_map", "a tensor"},
			{"dtype of row_id_map", func(a *args) { a.RowIDMap = i64(0, 1, -1, 4, 3, 2) }, "row_id_map", "dtype i32"},
			{"length of row_id_map", func(a *args) { a.RowIDMap = i32(0, 1) }, "row_id_map", "as many entries for each of the 3 rows"},
			{"entry too large", func(a *args) { a.RowIDMap.Set(5, 2) }, "row_id_map", "-1 or a row of input, below 5"},
			{"entry too small", func(a *args) { a.RowIDMap.Set(-2, 2) }, "row_id_map", "-1 or a row of input"},
			{"no tokens", func(a *args) { a.Output = f32(0, 4) }, "row_id_map", "each of the 0 rows"},
			{"dtype of prob", func(a *args) { a.Prob = of(tensor.BF16, 3, 2) }, "prob", "dtype f32"},
			{"rows of prob", func(a *args) { a.Prob = f32(2, 3) }, "prob", "a row for each of the 3 rows"},
			{"columns of prob", func(a *args) { a.Prob = f32(3, 3) }, "prob", "6 elements"},
			{"output over input", func(a *args) { a.Output = view(a.Input, 3, 4) }, "output", "memory apart from input"},
			{"output over prob", func(a *args) { a.Prob = view(a.Output, 3, 2) }, "output", "memory apart from prob"},
			{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
		})
		testAccepted(t, op, good, map[string]func(a *args){
			"unweighted": func(a *args) { a.Prob = nil },
			"no tokens":  func(a *args) { a.Output, a.RowIDMap, a.Prob = f32(0, 4), i32(), f32(0, 2) },
		})
		testOperands(t, op, good(), access{"input": opregistry.AccessRead, "row_id_map": opregistry.AccessRead, "prob": opregistry.AccessRead, "output": opregistry.AccessWrite})
	}
}

func TestMoEUnpermuteBwd(t *testing.T) {
	type args = ops.MoEUnpermuteBwdArgs
	good := func() args {
		return args{
			InputBwd: f32(3, 4), InputFwd: f32(5, 4), RowIDMap: i32(0, 1, -1, 4, 3, 2), Prob: f32(3, 2),
			ActGrad: f32(5, 4), ProbGrad: f32(3, 2), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.MoEUnpermuteBwd, good, []refusal[args]{
		{"no input_fwd", func(a *args) { a.InputFwd = nil }, "input_fwd", "a tensor"},
		{"columns of input_fwd", func(a *args) { a.InputFwd = f32(5, 3) }, "input_fwd", "rows of 4"},
		{"entry too large", func(a *args) { a.RowIDMap.Set(5, 2) }, "row_id_map", "-1 or a row of input_fwd, below 5"},
		{"shape of act_grad", func(a *args) { a.ActGrad = f32(3, 4) }, "act_grad", "the shape of input_fwd"},
		{"no prob_grad", func(a *args) { a.ProbGrad = nil }, "prob_grad", "a tensor"},
		{"prob_grad without prob", func(a *args) { a.Prob = nil }, "prob_grad", "nil without prob"},
		{"shape of prob_grad", func(a *args) { a.ProbGrad = f32(2, 3) }, "prob_grad", "a row for each of the 3 rows"},
		{"act_grad over input_fwd", func(a *args) { a.ActGrad = a.InputFwd }, "act_grad", "memory apart from input_fwd"},
		{"prob_grad over prob", func(a *args) { a.ProbGrad = a.Prob }, "prob_grad", "memory apart from prob"},
		{"act_grad over prob_grad", func(a *args) { a.ProbGrad = view(a.ActGrad, 3, 2) }, "act_grad", "memory apart from prob_grad"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.MoEUnpermuteBwd, good, map[string]func(a *args){"unweighted": func(a *args) { a.Prob, a.ProbGrad = nil, nil }})
	testOperands(t, ops.MoEUnpermuteBwd, good(), access{
		"input_bwd": opregistry.AccessRead, "input_fwd": opregistry.AccessRead, "row_id_map": opregistry.AccessRead, "prob": opregistry.AccessRead,
		"act_grad": opregistry.AccessWrite, "prob_grad": opregistry.AccessWrite,
	})
}

func TestMoERoutingMap(t *testing.T) {
	type args = ops.MoEPermuteWithRoutingMapArgs
	good := func() args {
		a := args{
			Tokens: f32(3, 4), RoutingMap: of(tensor.Bool, 3, 2), Probs: f32(3, 2), Output: f32(2, 4), OutputProbs: f32(2),
			SortedIndices: i32(0, 0), Saved: new(opregistry.Saved),
		}
		a.RoutingMap.Set(1, 0, 1)
		a.RoutingMap.Set(1, 2, 0)
		return a
	}
	testValidation(t, ops.MoEPermuteWithRoutingMap, good, []refusal[args]{
		{"no tokens", func(a *args) { a.Tokens = nil }, "tokens", "a tensor"},
		{"no routing_map", func(a *args) { a.RoutingMap = nil }, "routing_map", "a tensor"},
		{"dtype of routing_map", func(a *args) { a.RoutingMap = of(tensor.U8, 3, 2) }, "routing_map", "dtype bool"},
		{"rows of routing_map", func(a *args) { a.RoutingMap = of(tensor.Bool, 2, 2) }, "routing_map", "a row for each of 3 tokens"},
		{"rows of output", func(a *args) { a.RoutingMap.Set(1, 1, 1) }, "output", "3 rows, one a true entry"},
		{"columns of output", func(a *args) { a.Output = f32(2, 3) }, "output", "rows of 4"},
		{"shape of probs", func(a *args) { a.Probs = f32(2, 3) }, "probs", "the shape of routing_map"},
		{"dtype of probs", func(a *args) { a.Probs = of(tensor.BF16, 3, 2) }, "probs", "dtype f32"},
		{"no output_probs", func(a *args) { a.OutputProbs = nil }, "output_probs", "a tensor"},
		{"length of output_probs", func(a *args) { a.OutputProbs = f32(3) }, "output_probs", "2 elements"},
		{"output_probs without probs", func(a *args) { a.Probs = nil }, "output_probs", "nil without probs"},
		{"length of sorted_indices", func(a *args) { a.SortedIndices = i32(0) }, "sorted_indices", "2 elements"},
		{"dtype of sorted_indices", func(a *args) { a.SortedIndices = i64(0, 0) }, "sorted_indices", "dtype i32"},
		{"output over tokens", func(a *args) { a.Output = view(a.Tokens, 2, 4) }, "output", "memory apart from tokens"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.MoEPermuteWithRoutingMap, good, map[string]func(a *args){"without probs": func(a *args) { a.Probs, a.OutputProbs = nil, nil }})
	testOperands(t, ops.MoEPermuteWithRoutingMap, good(), access{
		"tokens": opregistry.AccessRead, "routing_map": opregistry.AccessRead, "probs": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "output_probs": opregistry.AccessWrite, "sorted_indices": opregistry.AccessWrite,
	})

	type back = ops.MoEUnpermuteWithRoutingMapArgs
	undo := func() back {
		return back{PermutedTokens: f32(2, 4), SortedIndices: i32(0, 2), Output: f32(3, 4), Saved: new(opregistry.Saved)}
	}
	testValidation(t, ops.MoEUnpermuteWithRoutingMap, undo, []refusal[back]{
		{"no rows", func(a *back) { a.PermutedTokens = nil }, "permuted_tokens", "a tensor"},
		{"columns of output", func(a *back) { a.Output = f32(3, 5) }, "output", "rows of 4"},
		{"length of sorted_indices", func(a *back) { a.SortedIndices = i32(0) }, "sorted_indices", "2 elements"},
		{"index too large", func(a *back) { a.SortedIndices = i32(0, 3) }, "sorted_indices", "values in [0, 3)"},
		{"negative index", func(a *back) { a.SortedIndices = i32(-1, 0) }, "sorted_indices", "values in [0, 3)"},
		{"output over rows", func(a *back) { a.PermutedTokens = view(a.Output, 2, 4) }, "output", "memory apart from permuted_tokens"},
		{"no saved", func(a *back) { a.Saved = nil }, "saved", "Saved"},
	})
	testOperands(t, ops.MoEUnpermuteWithRoutingMap, undo(), access{
		"permuted_tokens": opregistry.AccessRead, "sorted_indices": opregistry.AccessRead, "output": opregistry.AccessWrite,
	})
}

func TestMoESortChunks(t *testing.T) {
	type args = ops.MoESortChunksFwdArgs
	good := func() args {
		return args{
			Input: f32(5, 4), SplitSizes: i64(2, 0, 3), SortedIdxs: i32(2, 0, 1), Probs: f32(5), Output: f32(5, 4), OutputProbs: f32(5),
			InverseRowMap: i64(0, 0, 0, 0, 0), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.MoESortChunksFwd, good, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"axes of input", func(a *args) { a.Input = f32(5) }, "input", "2 axes"},
		{"shape of output", func(a *args) { a.Output = f32(4, 4) }, "output", "the shape of input"},
		{"dtype of split_sizes", func(a *args) { a.SplitSizes = f32(3) }, "split_sizes", "dtype i32 or i64"},
		{"sum of split_sizes", func(a *args) { a.SplitSizes = i64(2, 0, 2) }, "split_sizes", "add up to 5"},
		{"negative size", func(a *args) { a.SplitSizes = i64(6, -1, 0) }, "split_sizes", "add up to 5"},
		{"too few chunks", func(a *args) { a.SortedIdxs = i32(0, 1) }, "sorted_idxs", "3 elements"},
		{"chunk too large", func(a *args) { a.SortedIdxs = i32(3, 0, 1) }, "sorted_idxs", "values in [0, 3)"},
		{"chunk twice", func(a *args) { a.SortedIdxs = i32(2, 0, 2) }, "sorted_idxs", "each value once"},
		{"length of probs", func(a *args) { a.Probs = f32(4) }, "probs", "5 elements"},
		{"no output_probs", func(a *args) { a.OutputProbs = nil }, "output_probs", "a tensor"},
		{"output_probs without probs", func(a *args) { a.Probs = nil }, "output_probs", "nil without probs"},
		{"length of inverse_row_map", func(a *args) { a.InverseRowMap = i64(0) }, "inverse_row_map", "5 elements"},
		{"output is input", func(a *args) { a.Output = a.Input }, "output", "memory apart from input"},
		{"no saved", func(a *args) { a.Saved = nil }, "saved", "Saved"},
	})
	testAccepted(t, ops.MoESortChunksFwd, good, map[string]func(a *args){
		"no rows": func(a *args) {
			*a = args{Input: f32(0, 4), SplitSizes: i64(), SortedIdxs: i64(), Output: f32(0, 4), InverseRowMap: i32(), Saved: a.Saved}
		},
	})
	testOperands(t, ops.MoESortChunksFwd, good(), access{
		"input": opregistry.AccessRead, "split_sizes": opregistry.AccessRead, "sorted_idxs": opregistry.AccessRead, "probs": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "output_probs": opregistry.AccessWrite, "inverse_row_map": opregistry.AccessWrite,
	})
	many := good()
	index := make([]int32, 3000)
	for i := range index {
		index[i] = int32(len(index) - 1 - i)
	}
	many.SplitSizes, many.SortedIdxs = of(tensor.I64, len(index)), i32(index...)
	many.SplitSizes.Set(5, 0)
	testAccepted(t, ops.MoESortChunksFwd, func() args { return many }, map[string]func(a *args){"many chunks": func(*args) {}})
	testRefused(t, ops.MoESortChunksFwd, func() args { return many }, refusal[args]{"late", func(*args) { many.SortedIdxs.Set(2500, 2999) }, "sorted_idxs", "each value once"})

	type back = ops.MoESortChunksBwdArgs
	undo := func() back {
		return back{
			GradOutput: f32(3, 4), GradProbs: f32(3), InverseRowMap: i64(2, 0, 1), GradInput: f32(3, 4), GradInProbs: f32(3), Saved: new(opregistry.Saved),
		}
	}
	testValidation(t, ops.MoESortChunksBwd, undo, []refusal[back]{
		{"no gradient", func(a *back) { a.GradOutput = nil }, "grad_output", "a tensor"},
		{"shape of grad_input", func(a *back) { a.GradInput = f32(2, 4) }, "grad_input", "the shape of grad_output"},
		{"length of inverse_row_map", func(a *back) { a.InverseRowMap = i64(2, 0) }, "inverse_row_map", "3 elements"},
		{"row too large", func(a *back) { a.InverseRowMap = i64(2, 0, 3) }, "inverse_row_map", "values in [0, 3)"},
		{"no grad_input_probs", func(a *back) { a.GradInProbs = nil }, "grad_input_probs", "a tensor"},
		{"length of grad_probs", func(a *back) { a.GradProbs = f32(4) }, "grad_probs", "3 elements"},
		{"grad_input is grad_output", func(a *back) { a.GradInput = a.GradOutput }, "grad_input", "memory apart from grad_output"},
		{"no saved", func(a *back) { a.Saved = nil }, "saved", "Saved"},
	})
	testOperands(t, ops.MoESortChunksBwd, undo(), access{
		"grad_output": opregistry.AccessRead, "grad_probs": opregistry.AccessRead, "inverse_row_map": opregistry.AccessRead,
		"grad_input": opregistry.AccessWrite, "grad_input_probs": opregistry.AccessWrite,
	})
}

func TestFusedMultiRow(t *testing.T) {
	type args = ops.MultiRowPaddingArgs
	pad := func() args {
		return args{Input: of(tensor.F8E4M3, 5, 4), Output: of(tensor.F8E4M3, 8, 4), InputRows: []int{2, 0, 3}, OutputRows: []int{4, 0, 4}}
	}
	testValidation(t, ops.FusedMultiRowPadding, pad, []refusal[args]{
		{"no input", func(a *args) { a.Input = nil }, "input", "a tensor"},
		{"axes of output", func(a *args) { a.Output = of(tensor.F8E4M3, 32) }, "output", "2 axes"},
		{"dtype of output", func(a *args) { a.Output = f32(8, 4) }, "output", "the dtype of input"},
		{"columns of output", func(a *args) { a.Output = of(tensor.F8E4M3, 8, 3) }, "output", "rows of 4"},
		{"number of groups", func(a *args) { a.OutputRows = []int{4, 4} }, "output_rows", "3 groups"},
		{"rows of input", func(a *args) { a.InputRows = []int{2, 0, 2} }, "input_rows", "add up to the 5 rows of input"},
		{"rows of output", func(a *args) { a.OutputRows = []int{4, 0, 5} }, "output_rows", "add up to the 8 rows of output"},
		{"negative rows", func(a *args) { a.InputRows = []int{6, -1, 0} }, "input_rows", "add up to the 5 rows of input"},
		{"too short", func(a *args) { a.OutputRows = []int{1, 3, 4} }, "output_rows", "at least the 2 rows of group 0"},
		{"output over input", func(a *args) { a.Input = view(a.Output, 5, 4) }, "output", "memory apart from input"},
	})
	unpad := func() args {
		a := pad()
		return args{Input: a.Output, Output: a.Input, InputRows: a.OutputRows, OutputRows: a.InputRows}
	}
	testValidation(t, ops.FusedMultiRowUnpadding, unpad, []refusal[args]{
		{"too long", func(a *args) { a.OutputRows = []int{1, 1, 3} }, "output_rows", "at most the 0 rows of group 1"},
	})
	testOperands(t, ops.FusedMultiRowPadding, pad(), access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
