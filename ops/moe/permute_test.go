package moe_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
)

func TestMoEPermuteFwd(t *testing.T) {
	type args = moe.MoEPermuteFwdArgs
	good := func() args {
		return args{Input: checktest.F32(3, 4), Indices: checktest.Zeros(tensor.I32, 3, 2), Output: checktest.F32(5, 4), RowIDMap: checktest.Zeros(tensor.I32, 6), Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, moe.MoEPermuteFwd, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "axes of input", Edit: func(a *args) { a.Input = checktest.F32(12) }, Operand: "input", Want: "shape [tokens h]"},
		{Name: "dtype of input", Edit: func(a *args) { a.Input = checktest.Zeros(tensor.U8, 3, 4) }, Operand: "input", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F16, 5, 4) }, Operand: "output", Want: "the dtype of input, f32"},
		{Name: "columns of output", Edit: func(a *args) { a.Output = checktest.F32(5, 3) }, Operand: "output", Want: "shape [5 4], as [rows h]"},
		{Name: "rows of output", Edit: func(a *args) { a.Output = checktest.F32(7, 4) }, Operand: "output", Want: "at most 6 rows"},
		{Name: "no indices", Edit: func(a *args) { a.Indices = nil }, Operand: "indices", Want: "a tensor"},
		{Name: "dtype of indices", Edit: func(a *args) { a.Indices = checktest.Zeros(tensor.I64, 3, 2) }, Operand: "indices", Want: "dtype i32"},
		{Name: "rows of indices", Edit: func(a *args) { a.Indices = checktest.Zeros(tensor.I32, 2, 3) }, Operand: "indices", Want: "shape [3 topk], as [tokens topk]"},
		{Name: "length of row_id_map", Edit: func(a *args) { a.RowIDMap = checktest.Zeros(tensor.I32, 5) }, Operand: "row_id_map", Want: "6 elements"},
		{Name: "dtype of row_id_map", Edit: func(a *args) { a.RowIDMap = checktest.F32(6) }, Operand: "row_id_map", Want: "dtype i32"},
		{Name: "output over input", Edit: func(a *args) { a.Output = a.Input }, Operand: "output", Want: "memory apart from input"},
		{Name: "row_id_map over indices", Edit: func(a *args) { a.RowIDMap = checktest.Flat(a.Indices, 6) }, Operand: "row_id_map", Want: "memory apart from indices"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.MoEPermuteFwd, good, map[string]func(a *args){
		"everything": func(a *args) { a.Output = checktest.F32(6, 4) },
		"nothing":    func(a *args) { a.Output = checktest.F32(0, 4) },
		"no tokens": func(a *args) {
			a.Input, a.Indices, a.Output, a.RowIDMap = checktest.F32(0, 4), checktest.Zeros(tensor.I32, 0, 2), checktest.F32(0, 4), checktest.I32()
		},
		"any experts": func(a *args) { a.Indices.Set(-5, 1, 1) },
	})
	checktest.Operands(t, moe.MoEPermuteFwd, good(), checktest.Access{
		"input": opregistry.AccessRead, "indices": opregistry.AccessRead, "output": opregistry.AccessWrite, "row_id_map": opregistry.AccessWrite,
	})
}

func TestMoEUnpermute(t *testing.T) {
	type args = moe.MoEUnpermuteArgs
	good := func() args {
		return args{Input: checktest.F32(5, 4), RowIDMap: checktest.I32(0, 1, -1, 4, 3, 2), Prob: checktest.F32(3, 2), Output: checktest.F32(3, 4), Saved: new(opregistry.Saved)}
	}
	for _, op := range []*opregistry.Op[args]{moe.MoEPermuteBwd, moe.MoEUnpermuteFwd} {
		checktest.Validation(t, op, good, []checktest.Refusal[args]{
			{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
			{Name: "columns of output", Edit: func(a *args) { a.Output = checktest.F32(3, 5) }, Operand: "output", Want: "shape [3 4], as [tokens h]"},
			{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.BF16, 3, 4) }, Operand: "output", Want: "the dtype of input, f32"},
			{Name: "no row_id_map", Edit: func(a *args) { a.RowIDMap = nil }, Operand: "row_id_map", Want: "a tensor"},
			{Name: "dtype of row_id_map", Edit: func(a *args) { a.RowIDMap = checktest.I64(0, 1, -1, 4, 3, 2) }, Operand: "row_id_map", Want: "dtype i32"},
			{Name: "length of row_id_map", Edit: func(a *args) { a.RowIDMap = checktest.I32(0, 1) }, Operand: "row_id_map", Want: "as many entries for each of the 3 rows"},
			{Name: "entry too large", Edit: func(a *args) { a.RowIDMap.Set(5, 2) }, Operand: "row_id_map", Want: "-1 or a row of input, below 5"},
			{Name: "entry too small", Edit: func(a *args) { a.RowIDMap.Set(-2, 2) }, Operand: "row_id_map", Want: "-1 or a row of input"},
			{Name: "no tokens", Edit: func(a *args) { a.Output = checktest.F32(0, 4) }, Operand: "output", Want: "shape [3 4], as [tokens h]"},
			{Name: "dtype of prob", Edit: func(a *args) { a.Prob = checktest.Zeros(tensor.BF16, 3, 2) }, Operand: "prob", Want: "dtype f32"},
			{Name: "rows of prob", Edit: func(a *args) { a.Prob = checktest.F32(2, 3) }, Operand: "output", Want: "shape [2 4], as [tokens h]"},
			{Name: "columns of prob", Edit: func(a *args) { a.Prob = checktest.F32(3, 3) }, Operand: "prob", Want: "6 elements"},
			{Name: "output over input", Edit: func(a *args) { a.Output = checktest.View(a.Input, 3, 4) }, Operand: "output", Want: "memory apart from input"},
			{Name: "output over prob", Edit: func(a *args) { a.Prob = checktest.View(a.Output, 3, 2) }, Operand: "output", Want: "memory apart from prob"},
			{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
		})
		checktest.Accepted(t, op, good, map[string]func(a *args){
			"unweighted": func(a *args) { a.Prob = nil },
			"no tokens": func(a *args) {
				a.Output, a.RowIDMap, a.Prob = checktest.F32(0, 4), checktest.I32(), checktest.F32(0, 2)
			},
		})
		checktest.Operands(t, op, good(), checktest.Access{"input": opregistry.AccessRead, "row_id_map": opregistry.AccessRead, "prob": opregistry.AccessRead, "output": opregistry.AccessWrite})
	}
}

func TestMoEUnpermuteBwd(t *testing.T) {
	type args = moe.MoEUnpermuteBwdArgs
	good := func() args {
		return args{
			InputBwd: checktest.F32(3, 4), InputFwd: checktest.F32(5, 4), RowIDMap: checktest.I32(0, 1, -1, 4, 3, 2), Prob: checktest.F32(3, 2),
			ActGrad: checktest.F32(5, 4), ProbGrad: checktest.F32(3, 2), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.MoEUnpermuteBwd, good, []checktest.Refusal[args]{
		{Name: "no input_fwd", Edit: func(a *args) { a.InputFwd = nil }, Operand: "input_fwd", Want: "a tensor"},
		{Name: "columns of input_fwd", Edit: func(a *args) { a.InputFwd = checktest.F32(5, 3) }, Operand: "input_fwd", Want: "shape [5 4], as [rows h]"},
		{Name: "entry too large", Edit: func(a *args) { a.RowIDMap.Set(5, 2) }, Operand: "row_id_map", Want: "-1 or a row of input_fwd, below 5"},
		{Name: "shape of act_grad", Edit: func(a *args) { a.ActGrad = checktest.F32(3, 4) }, Operand: "act_grad", Want: "the shape of input_fwd"},
		{Name: "no prob_grad", Edit: func(a *args) { a.ProbGrad = nil }, Operand: "prob_grad", Want: "a tensor"},
		{Name: "prob_grad without prob", Edit: func(a *args) { a.Prob = nil }, Operand: "prob_grad", Want: "nil without prob"},
		{Name: "shape of prob_grad", Edit: func(a *args) { a.ProbGrad = checktest.F32(2, 3) }, Operand: "prob_grad", Want: "shape [3 2], as [tokens topk]"},
		{Name: "act_grad over input_fwd", Edit: func(a *args) { a.ActGrad = a.InputFwd }, Operand: "act_grad", Want: "memory apart from input_fwd"},
		{Name: "prob_grad over prob", Edit: func(a *args) { a.ProbGrad = a.Prob }, Operand: "prob_grad", Want: "memory apart from prob"},
		{Name: "act_grad over prob_grad", Edit: func(a *args) { a.ProbGrad = checktest.View(a.ActGrad, 3, 2) }, Operand: "prob_grad", Want: "memory apart from act_grad"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.MoEUnpermuteBwd, good, map[string]func(a *args){"unweighted": func(a *args) { a.Prob, a.ProbGrad = nil, nil }})
	checktest.Operands(t, moe.MoEUnpermuteBwd, good(), checktest.Access{
		"input_bwd": opregistry.AccessRead, "input_fwd": opregistry.AccessRead, "row_id_map": opregistry.AccessRead, "prob": opregistry.AccessRead,
		"act_grad": opregistry.AccessWrite, "prob_grad": opregistry.AccessWrite,
	})
}

func TestMoERoutingMap(t *testing.T) {
	type args = moe.MoEPermuteWithRoutingMapArgs
	good := func() args {
		a := args{
			Tokens: checktest.F32(3, 4), RoutingMap: checktest.Zeros(tensor.Bool, 3, 2), Probs: checktest.F32(3, 2), Output: checktest.F32(2, 4), OutputProbs: checktest.F32(2),
			SortedIndices: checktest.I32(0, 0), Saved: new(opregistry.Saved),
		}
		a.RoutingMap.Set(1, 0, 1)
		a.RoutingMap.Set(1, 2, 0)
		return a
	}
	checktest.Validation(t, moe.MoEPermuteWithRoutingMap, good, []checktest.Refusal[args]{
		{Name: "no tokens", Edit: func(a *args) { a.Tokens = nil }, Operand: "tokens", Want: "a tensor"},
		{Name: "no routing_map", Edit: func(a *args) { a.RoutingMap = nil }, Operand: "routing_map", Want: "a tensor"},
		{Name: "dtype of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.Zeros(tensor.U8, 3, 2) }, Operand: "routing_map", Want: "dtype bool"},
		{Name: "rows of routing_map", Edit: func(a *args) { a.RoutingMap = checktest.Zeros(tensor.Bool, 2, 2) }, Operand: "routing_map", Want: "shape [3 experts], as [tokens experts]"},
		{Name: "rows of output", Edit: func(a *args) { a.RoutingMap.Set(1, 1, 1) }, Operand: "output", Want: "3 rows, one per true entry"},
		{Name: "columns of output", Edit: func(a *args) { a.Output = checktest.F32(2, 3) }, Operand: "output", Want: "shape [2 4], as [rows h]"},
		{Name: "shape of probs", Edit: func(a *args) { a.Probs = checktest.F32(2, 3) }, Operand: "probs", Want: "the shape of routing_map"},
		{Name: "dtype of probs", Edit: func(a *args) { a.Probs = checktest.Zeros(tensor.BF16, 3, 2) }, Operand: "probs", Want: "dtype f32"},
		{Name: "no output_probs", Edit: func(a *args) { a.OutputProbs = nil }, Operand: "output_probs", Want: "a tensor"},
		{Name: "length of output_probs", Edit: func(a *args) { a.OutputProbs = checktest.F32(3) }, Operand: "output_probs", Want: "shape [2], as [rows]"},
		{Name: "output_probs without probs", Edit: func(a *args) { a.Probs = nil }, Operand: "output_probs", Want: "nil without probs"},
		{Name: "length of sorted_indices", Edit: func(a *args) { a.SortedIndices = checktest.I32(0) }, Operand: "sorted_indices", Want: "shape [2], as [rows]"},
		{Name: "dtype of sorted_indices", Edit: func(a *args) { a.SortedIndices = checktest.I64(0, 0) }, Operand: "sorted_indices", Want: "dtype i32"},
		{Name: "output over tokens", Edit: func(a *args) { a.Output = checktest.View(a.Tokens, 2, 4) }, Operand: "output", Want: "memory apart from tokens"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.MoEPermuteWithRoutingMap, good, map[string]func(a *args){"without probs": func(a *args) { a.Probs, a.OutputProbs = nil, nil }})
	checktest.Operands(t, moe.MoEPermuteWithRoutingMap, good(), checktest.Access{
		"tokens": opregistry.AccessRead, "routing_map": opregistry.AccessRead, "probs": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "output_probs": opregistry.AccessWrite, "sorted_indices": opregistry.AccessWrite,
	})

	type back = moe.MoEUnpermuteWithRoutingMapArgs
	undo := func() back {
		return back{PermutedTokens: checktest.F32(2, 4), SortedIndices: checktest.I32(0, 2), Output: checktest.F32(3, 4), Saved: new(opregistry.Saved)}
	}
	checktest.Validation(t, moe.MoEUnpermuteWithRoutingMap, undo, []checktest.Refusal[back]{
		{Name: "no rows", Edit: func(a *back) { a.PermutedTokens = nil }, Operand: "permuted_tokens", Want: "a tensor"},
		{Name: "columns of output", Edit: func(a *back) { a.Output = checktest.F32(3, 5) }, Operand: "output", Want: "shape [3 4], as [tokens h]"},
		{Name: "length of sorted_indices", Edit: func(a *back) { a.SortedIndices = checktest.I32(0) }, Operand: "sorted_indices", Want: "shape [2], as [rows]"},
		{Name: "index too large", Edit: func(a *back) { a.SortedIndices = checktest.I32(0, 3) }, Operand: "sorted_indices", Want: "values in [0, 3)"},
		{Name: "negative index", Edit: func(a *back) { a.SortedIndices = checktest.I32(-1, 0) }, Operand: "sorted_indices", Want: "values in [0, 3)"},
		{Name: "output over rows", Edit: func(a *back) { a.PermutedTokens = checktest.View(a.Output, 2, 4) }, Operand: "output", Want: "memory apart from permuted_tokens"},
		{Name: "no saved", Edit: func(a *back) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Operands(t, moe.MoEUnpermuteWithRoutingMap, undo(), checktest.Access{
		"permuted_tokens": opregistry.AccessRead, "sorted_indices": opregistry.AccessRead, "output": opregistry.AccessWrite,
	})
}

func TestMoESortChunks(t *testing.T) {
	type args = moe.MoESortChunksFwdArgs
	good := func() args {
		return args{
			Input: checktest.F32(5, 4), SplitSizes: checktest.I64(2, 0, 3), SortedIdxs: checktest.I32(2, 0, 1), Probs: checktest.F32(5), Output: checktest.F32(5, 4), OutputProbs: checktest.F32(5),
			InverseRowMap: checktest.I64(0, 0, 0, 0, 0), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.MoESortChunksFwd, good, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "axes of input", Edit: func(a *args) { a.Input = checktest.F32(5) }, Operand: "input", Want: "shape [rows h]"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(4, 4) }, Operand: "output", Want: "the shape of input"},
		{Name: "dtype of split_sizes", Edit: func(a *args) { a.SplitSizes = checktest.F32(3) }, Operand: "split_sizes", Want: "dtype i32 or i64"},
		{Name: "sum of split_sizes", Edit: func(a *args) { a.SplitSizes = checktest.I64(2, 0, 2) }, Operand: "split_sizes", Want: "add up to 5"},
		{Name: "negative size", Edit: func(a *args) { a.SplitSizes = checktest.I64(6, -1, 0) }, Operand: "split_sizes", Want: "add up to 5"},
		{Name: "too few chunks", Edit: func(a *args) { a.SortedIdxs = checktest.I32(0, 1) }, Operand: "sorted_idxs", Want: "the shape of split_sizes, [3]"},
		{Name: "chunk too large", Edit: func(a *args) { a.SortedIdxs = checktest.I32(3, 0, 1) }, Operand: "sorted_idxs", Want: "values in [0, 3)"},
		{Name: "chunk twice", Edit: func(a *args) { a.SortedIdxs = checktest.I32(2, 0, 2) }, Operand: "sorted_idxs", Want: "each value once"},
		{Name: "length of probs", Edit: func(a *args) { a.Probs = checktest.F32(4) }, Operand: "probs", Want: "shape [5], as [rows]"},
		{Name: "no output_probs", Edit: func(a *args) { a.OutputProbs = nil }, Operand: "output_probs", Want: "a tensor"},
		{Name: "output_probs without probs", Edit: func(a *args) { a.Probs = nil }, Operand: "output_probs", Want: "nil without probs"},
		{Name: "length of inverse_row_map", Edit: func(a *args) { a.InverseRowMap = checktest.I64(0) }, Operand: "inverse_row_map", Want: "shape [5], as [rows]"},
		{Name: "output is input", Edit: func(a *args) { a.Output = a.Input }, Operand: "output", Want: "memory apart from input"},
		{Name: "no saved", Edit: func(a *args) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Accepted(t, moe.MoESortChunksFwd, good, map[string]func(a *args){
		"no rows": func(a *args) {
			*a = args{Input: checktest.F32(0, 4), SplitSizes: checktest.I64(), SortedIdxs: checktest.I64(), Output: checktest.F32(0, 4), InverseRowMap: checktest.I32(), Saved: a.Saved}
		},
	})
	checktest.Operands(t, moe.MoESortChunksFwd, good(), checktest.Access{
		"input": opregistry.AccessRead, "split_sizes": opregistry.AccessRead, "sorted_idxs": opregistry.AccessRead, "probs": opregistry.AccessRead,
		"output": opregistry.AccessWrite, "output_probs": opregistry.AccessWrite, "inverse_row_map": opregistry.AccessWrite,
	})
	many := good()
	index := make([]int32, 3000)
	for i := range index {
		index[i] = int32(len(index) - 1 - i)
	}
	many.SplitSizes, many.SortedIdxs = checktest.Zeros(tensor.I64, len(index)), checktest.I32(index...)
	many.SplitSizes.Set(5, 0)
	checktest.Accepted(t, moe.MoESortChunksFwd, func() args { return many }, map[string]func(a *args){"many chunks": func(*args) {}})
	checktest.Refused(t, moe.MoESortChunksFwd, func() args { return many }, checktest.Refusal[args]{Name: "late", Edit: func(*args) { many.SortedIdxs.Set(2500, 2999) }, Operand: "sorted_idxs", Want: "each value once"})

	type back = moe.MoESortChunksBwdArgs
	undo := func() back {
		return back{
			GradOutput: checktest.F32(3, 4), GradProbs: checktest.F32(3), InverseRowMap: checktest.I64(2, 0, 1), GradInput: checktest.F32(3, 4), GradInProbs: checktest.F32(3), Saved: new(opregistry.Saved),
		}
	}
	checktest.Validation(t, moe.MoESortChunksBwd, undo, []checktest.Refusal[back]{
		{Name: "no gradient", Edit: func(a *back) { a.GradOutput = nil }, Operand: "grad_output", Want: "a tensor"},
		{Name: "shape of grad_input", Edit: func(a *back) { a.GradInput = checktest.F32(2, 4) }, Operand: "grad_input", Want: "the shape of grad_output"},
		{Name: "length of inverse_row_map", Edit: func(a *back) { a.InverseRowMap = checktest.I64(2, 0) }, Operand: "inverse_row_map", Want: "shape [3], as [rows]"},
		{Name: "row too large", Edit: func(a *back) { a.InverseRowMap = checktest.I64(2, 0, 3) }, Operand: "inverse_row_map", Want: "values in [0, 3)"},
		{Name: "no grad_input_probs", Edit: func(a *back) { a.GradInProbs = nil }, Operand: "grad_input_probs", Want: "a tensor"},
		{Name: "length of grad_probs", Edit: func(a *back) { a.GradProbs = checktest.F32(4) }, Operand: "grad_probs", Want: "shape [3], as [rows]"},
		{Name: "grad_input is grad_output", Edit: func(a *back) { a.GradInput = a.GradOutput }, Operand: "grad_input", Want: "memory apart from grad_output"},
		{Name: "no saved", Edit: func(a *back) { a.Saved = nil }, Operand: "saved", Want: "Saved"},
	})
	checktest.Operands(t, moe.MoESortChunksBwd, undo(), checktest.Access{
		"grad_output": opregistry.AccessRead, "grad_probs": opregistry.AccessRead, "inverse_row_map": opregistry.AccessRead,
		"grad_input": opregistry.AccessWrite, "grad_input_probs": opregistry.AccessWrite,
	})
}

func TestFusedMultiRow(t *testing.T) {
	type args = moe.MultiRowPaddingArgs
	pad := func() args {
		return args{Input: checktest.Zeros(tensor.F8E4M3, 5, 4), Output: checktest.Zeros(tensor.F8E4M3, 8, 4), InputRows: []int{2, 0, 3}, OutputRows: []int{4, 0, 4}}
	}
	checktest.Validation(t, moe.FusedMultiRowPadding, pad, []checktest.Refusal[args]{
		{Name: "no input", Edit: func(a *args) { a.Input = nil }, Operand: "input", Want: "a tensor"},
		{Name: "axes of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F8E4M3, 32) }, Operand: "output", Want: "shape [output_rows 4], as [output_rows h]"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.F32(8, 4) }, Operand: "output", Want: "the dtype of input"},
		{Name: "columns of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.F8E4M3, 8, 3) }, Operand: "output", Want: "shape [8 4], as [output_rows h]"},
		{Name: "number of groups", Edit: func(a *args) { a.OutputRows = []int{4, 4} }, Operand: "output_rows", Want: "3 groups"},
		{Name: "rows of input", Edit: func(a *args) { a.InputRows = []int{2, 0, 2} }, Operand: "input_rows", Want: "add up to the 5 rows of input"},
		{Name: "rows of output", Edit: func(a *args) { a.OutputRows = []int{4, 0, 5} }, Operand: "output_rows", Want: "add up to the 8 rows of output"},
		{Name: "negative rows", Edit: func(a *args) { a.InputRows = []int{6, -1, 0} }, Operand: "input_rows", Want: "add up to the 5 rows of input"},
		{Name: "too short", Edit: func(a *args) { a.OutputRows = []int{1, 3, 4} }, Operand: "output_rows", Want: "at least the 2 rows of group 0"},
		{Name: "output over input", Edit: func(a *args) { a.Input = checktest.View(a.Output, 5, 4) }, Operand: "output", Want: "memory apart from input"},
	})
	unpad := func() args {
		a := pad()
		return args{Input: a.Output, Output: a.Input, InputRows: a.OutputRows, OutputRows: a.InputRows}
	}
	checktest.Validation(t, moe.FusedMultiRowUnpadding, unpad, []checktest.Refusal[args]{
		{Name: "too long", Edit: func(a *args) { a.OutputRows = []int{1, 1, 3} }, Operand: "output_rows", Want: "at most the 0 rows of group 1"},
	})
	checktest.Operands(t, moe.FusedMultiRowPadding, pad(), checktest.Access{"input": opregistry.AccessRead, "output": opregistry.AccessWrite})
}
