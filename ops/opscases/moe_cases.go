package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// moeShape is a batch of tokens of size h, each of which chooses topk experts; rows of the pairs
// are kept.
type moeShape struct{ tokens, h, experts, topk, rows int }

func (m moeShape) String() string {
	return fmt.Sprintf("tokens%d,h%d,experts%d,topk%d,rows%d", m.tokens, m.h, m.experts, m.topk, m.rows)
}

func moeShapes() []moeShape {
	return []moeShape{
		{1, 1, 1, 1, 1}, {5, 3, 4, 2, 10}, {5, 3, 4, 2, 7}, {33, 65, 8, 3, 99}, {17, 16, 64, 8, 100},
		{4, 5, 1, 1, 4}, {3, 4, 2, 2, 0}, {0, 4, 2, 2, 0}, {4, 0, 3, 2, 8},
	}
}

// rowIDMap gives m.rows of the pairs of token and choice one row each.
func rowIDMap(s *opstest.Stage, m moeShape) *tensor.Tensor {
	s.T.Helper()
	entries := s.Permutation(m.tokens * m.topk)
	for i, r := range entries {
		if r >= m.rows {
			entries[i] = -1
		}
	}
	return s.Integers(tensor.I32, entries, len(entries))
}

func moePermuteArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, m moeShape) moe.MoEPermuteFwdArgs {
	return moe.MoEPermuteFwdArgs{
		Input:   s.In(l, d, m.tokens, m.h),
		Indices: s.Integers(tensor.I32, below(s, m.tokens*m.topk, m.experts), m.tokens, m.topk),
		Output:  s.Out(l, d, m.rows, m.h), RowIDMap: s.Out(opstest.Dense, tensor.I32, m.tokens*m.topk), Saved: new(opregistry.Saved),
	}
}

// below returns n random numbers below a limit.
func below(s *opstest.Stage, n, limit int) []int {
	var v []int
	for _, x := range s.Indexes(tensor.I64, n, limit).Float64s() {
		v = append(v, int(x))
	}
	return v
}

func moePermuteFwdCases(d tensor.DType) []opstest.Case[moe.MoEPermuteFwdArgs] {
	var cases []opstest.Case[moe.MoEPermuteFwdArgs]
	add := func(name string, make func(*opstest.Stage) moe.MoEPermuteFwdArgs) {
		cases = append(cases, opstest.Case[moe.MoEPermuteFwdArgs]{Name: name, Make: make})
	}
	for _, m := range moeShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", m, l), func(s *opstest.Stage) moe.MoEPermuteFwdArgs { return moePermuteArgs(s, l, d, m) })
		}
	}
	add("far_experts", func(s *opstest.Stage) moe.MoEPermuteFwdArgs {
		a := moePermuteArgs(s, opstest.Dense, d, moeShape{3, 4, 2, 2, 6})
		s.Fill(a.Indices, []float64{math.MaxInt32, -1, 5, math.MinInt32, -1, 5})
		return a
	})
	add("nan_and_inf", func(s *opstest.Stage) moe.MoEPermuteFwdArgs {
		a := moePermuteArgs(s, opstest.Dense, d, moeShape{3, 4, 2, 2, 6})
		a.Input.Set(math.NaN(), 0, 1)
		a.Input.Set(math.Inf(-1), 2, 0)
		a.Input.Set(math.Copysign(0, -1), 1, 0)
		return a
	})
	return cases
}

func moeUnpermuteArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, m moeShape, weighted bool) moe.MoEUnpermuteArgs {
	a := moe.MoEUnpermuteArgs{
		Input: s.In(l, d, m.rows, m.h), RowIDMap: rowIDMap(s, m), Output: s.Out(l, d, m.tokens, m.h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Prob = s.Short(tensor.F32, m.tokens, m.topk)
	}
	return a
}

func moeUnpermuteCases(d tensor.DType) []opstest.Case[moe.MoEUnpermuteArgs] {
	var cases []opstest.Case[moe.MoEUnpermuteArgs]
	add := func(name string, make func(*opstest.Stage) moe.MoEUnpermuteArgs) {
		cases = append(cases, opstest.Case[moe.MoEUnpermuteArgs]{Name: name, Make: make})
	}
	for _, m := range moeShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, weighted := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *opstest.Stage) moe.MoEUnpermuteArgs {
					return moeUnpermuteArgs(s, l, d, m, weighted)
				})
			}
		}
	}
	// A sum that is rounded to a narrow dtype after each term has a large error here.
	add("many_experts", func(s *opstest.Stage) moe.MoEUnpermuteArgs {
		return moeUnpermuteArgs(s, opstest.Dense, d, moeShape{2, 9, 64, 64, 128}, true)
	})
	add("nan_in_one_row", func(s *opstest.Stage) moe.MoEUnpermuteArgs {
		a := moeUnpermuteArgs(s, opstest.Dense, d, moeShape{5, 3, 4, 2, 10}, true)
		a.Input.Set(math.NaN(), 3, 1)
		return a
	})
	// A dropped entry contributes nothing, whatever its weight.
	add("nan_weight_of_nothing", func(s *opstest.Stage) moe.MoEUnpermuteArgs {
		a := moeUnpermuteArgs(s, opstest.Dense, d, moeShape{5, 3, 4, 2, 7}, true)
		for i := range 10 {
			if a.RowIDMap.At(i) < 0 {
				a.Prob.Set(math.NaN(), i%5, i/5)
			}
		}
		return a
	})
	return cases
}

// moeRefresh replaces a map by the one that a forward impl computes for experts in the order of the
// rows.
func moeRefresh(t tensortest.TB, x *opregistry.Exec, forward opregistry.Impl, rowIDMap *tensor.Tensor, tokens int, d tensor.DType, saved *opregistry.Saved) error {
	t.Helper()
	if tokens == 0 {
		return nil
	}
	s := &opstest.Stage{T: t}
	topk := rowIDMap.NumElements() / tokens
	experts := make([]int, tokens*topk)
	for i, r := range rowIDMap.Float64s() {
		if r < 0 {
			r = math.MaxInt32
		}
		experts[i%tokens*topk+i/tokens] = int(r)
	}
	return opstest.RunForward(t, x, moe.MoEPermuteFwd, forward, moe.MoEPermuteFwdArgs{
		Input: s.In(opstest.Dense, d, tokens, 1), Indices: s.Integers(tensor.I32, experts, tokens, topk),
		Output: s.Out(opstest.Dense, d, kept(rowIDMap), 1), RowIDMap: rowIDMap, Saved: saved,
	})
}

// kept returns how many entries of a map have a row.
func kept(rowIDMap *tensor.Tensor) int {
	n := 0
	for _, r := range rowIDMap.Float64s() {
		if r >= 0 {
			n++
		}
	}
	return n
}

func moeUnpermuteRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoEUnpermuteArgs, forward opregistry.Impl) error {
	t.Helper()
	return moeRefresh(t, x, forward, a.RowIDMap, a.Output.Shape()[0], a.Input.DType(), a.Saved)
}

func moeUnpermuteBwdRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoEUnpermuteBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	return moeRefresh(t, x, forward, a.RowIDMap, a.InputBwd.Shape()[0], a.InputBwd.DType(), a.Saved)
}

func moeUnpermuteBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, m moeShape, weighted bool) moe.MoEUnpermuteBwdArgs {
	a := moe.MoEUnpermuteBwdArgs{
		InputBwd: s.In(l, d, m.tokens, m.h), InputFwd: s.In(l, d, m.rows, m.h), RowIDMap: rowIDMap(s, m),
		ActGrad: s.Out(l, d, m.rows, m.h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Prob, a.ProbGrad = s.Short(tensor.F32, m.tokens, m.topk), s.Out(opstest.Dense, tensor.F32, m.tokens, m.topk)
	}
	return a
}

func moeUnpermuteBwdCases(d tensor.DType) []opstest.Case[moe.MoEUnpermuteBwdArgs] {
	var cases []opstest.Case[moe.MoEUnpermuteBwdArgs]
	add := func(name string, make func(*opstest.Stage) moe.MoEUnpermuteBwdArgs) {
		cases = append(cases, opstest.Case[moe.MoEUnpermuteBwdArgs]{Name: name, Make: make})
	}
	for _, m := range moeShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, weighted := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *opstest.Stage) moe.MoEUnpermuteBwdArgs {
					return moeUnpermuteBwdArgs(s, l, d, m, weighted)
				})
			}
		}
	}
	add("rows_of_no_token", func(s *opstest.Stage) moe.MoEUnpermuteBwdArgs {
		a := moeUnpermuteBwdArgs(s, opstest.Dense, d, moeShape{2, 3, 4, 2, 4}, true)
		s.Fill(a.RowIDMap, []float64{1, -1, 0, -1})
		return a
	})
	return cases
}

// moePermuteGradCases check the gradient with respect to the tokens.
func moePermuteGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	for _, m := range []moeShape{{4, 3, 3, 2, 8}, {4, 3, 3, 2, 5}} {
		cases = append(cases, opstest.NewGradCase(m.String(), moe.MoEPermuteFwd, moe.MoEPermuteBwd,
			func(s *opstest.Stage) opstest.Derivation[moe.MoEPermuteFwdArgs, moe.MoEUnpermuteArgs] {
				f, b := moePermuteArgs(s, opstest.Dense, tensor.F64, m), moeUnpermuteArgs(s, opstest.Dense, tensor.F64, m, false)
				s.Fill(b.RowIDMap, sortedPairs(f.Indices, m))
				return opstest.Derivation[moe.MoEPermuteFwdArgs, moe.MoEUnpermuteArgs]{
					Forward: []moe.MoEPermuteFwdArgs{f}, Backward: []moe.MoEUnpermuteArgs{b},
					Y: f.Output, DY: b.Input, Wrt: []opstest.Derivative{{Name: "tokens", X: f.Input, DX: b.Output}}, Refresh: moeUnpermuteRefresh,
				}
			}))
	}
	return cases
}

// sortedPairs computes a row_id_map by counting: the row of a pair is the number of pairs that come
// before it.
func sortedPairs(indices *tensor.Tensor, m moeShape) []float64 {
	v := indices.Float64s()
	rows := make([]float64, len(v))
	for i := range v {
		before := 0
		for j := range v {
			if v[j] < v[i] || v[j] == v[i] && j < i {
				before++
			}
		}
		if before >= m.rows {
			before = -1
		}
		rows[i%m.topk*m.tokens+i/m.topk] = float64(before)
	}
	return rows
}

func moeUnpermuteGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	for _, m := range []moeShape{{4, 3, 3, 2, 8}, {4, 3, 3, 2, 5}} {
		cases = append(cases, opstest.NewGradCase(m.String(), moe.MoEUnpermuteFwd, moe.MoEUnpermuteBwd,
			func(s *opstest.Stage) opstest.Derivation[moe.MoEUnpermuteArgs, moe.MoEUnpermuteBwdArgs] {
				b := moeUnpermuteBwdArgs(s, opstest.Dense, tensor.F64, m, true)
				f := moe.MoEUnpermuteArgs{Input: b.InputFwd, RowIDMap: b.RowIDMap, Prob: b.Prob, Output: s.F64Out(m.tokens, m.h), Saved: b.Saved}
				return opstest.Derivation[moe.MoEUnpermuteArgs, moe.MoEUnpermuteBwdArgs]{
					Forward: []moe.MoEUnpermuteArgs{f}, Backward: []moe.MoEUnpermuteBwdArgs{b},
					Y: f.Output, DY: b.InputBwd, Wrt: []opstest.Derivative{{Name: "rows", X: b.InputFwd, DX: b.ActGrad}, {Name: "prob", X: b.Prob, DX: b.ProbGrad}},
				}
			}))
	}
	return cases
}
