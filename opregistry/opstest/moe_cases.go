package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
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

// permutation returns the numbers below n in an order that depends on the stage.
func (s *stage) permutation(n int) []int {
	s.seed++
	return rand.New(rand.NewPCG(s.seed, 2)).Perm(n)
}

// integers returns a guarded operand of these integers.
func (s *stage) integers(d tensor.DType, v []int, shape ...int) *tensor.Tensor {
	s.t.Helper()
	x := s.out(dense, d, shape...)
	values := make([]float64, len(v))
	for i, n := range v {
		values[i] = float64(n)
	}
	s.fill(x, values)
	return x
}

// rowIDMap gives m.rows of the pairs of token and choice one row each.
func (s *stage) rowIDMap(m moeShape) *tensor.Tensor {
	s.t.Helper()
	entries := s.permutation(m.tokens * m.topk)
	for i, r := range entries {
		if r >= m.rows {
			entries[i] = -1
		}
	}
	return s.integers(tensor.I32, entries, len(entries))
}

func moePermuteArgs(s *stage, l layout, d tensor.DType, m moeShape) moe.MoEPermuteFwdArgs {
	return moe.MoEPermuteFwdArgs{
		Input:   s.in(l, d, m.tokens, m.h),
		Indices: s.integers(tensor.I32, s.below(m.tokens*m.topk, m.experts), m.tokens, m.topk),
		Output:  s.out(l, d, m.rows, m.h), RowIDMap: s.out(dense, tensor.I32, m.tokens*m.topk), Saved: new(opregistry.Saved),
	}
}

// below returns n random numbers below a limit.
func (s *stage) below(n, limit int) []int {
	v := make([]int, n)
	for i, x := range s.indexes(tensor.I64, n, limit).Float64s() {
		v[i] = int(x)
	}
	return v
}

func moePermuteFwdCases(d tensor.DType) []testCase[moe.MoEPermuteFwdArgs] {
	var cases []testCase[moe.MoEPermuteFwdArgs]
	add := func(name string, make func(*stage) moe.MoEPermuteFwdArgs) {
		cases = append(cases, testCase[moe.MoEPermuteFwdArgs]{name, make})
	}
	for _, m := range moeShapes() {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", m, l), func(s *stage) moe.MoEPermuteFwdArgs { return moePermuteArgs(s, l, d, m) })
		}
	}
	add("far_experts", func(s *stage) moe.MoEPermuteFwdArgs {
		a := moePermuteArgs(s, dense, d, moeShape{3, 4, 2, 2, 6})
		s.fill(a.Indices, []float64{math.MaxInt32, -1, 5, math.MinInt32, -1, 5})
		return a
	})
	add("nan_and_inf", func(s *stage) moe.MoEPermuteFwdArgs {
		a := moePermuteArgs(s, dense, d, moeShape{3, 4, 2, 2, 6})
		a.Input.Set(math.NaN(), 0, 1)
		a.Input.Set(math.Inf(-1), 2, 0)
		return a
	})
	return cases
}

func moeUnpermuteArgs(s *stage, l layout, d tensor.DType, m moeShape, weighted bool) moe.MoEUnpermuteArgs {
	a := moe.MoEUnpermuteArgs{
		Input: s.in(l, d, m.rows, m.h), RowIDMap: s.rowIDMap(m), Output: s.out(l, d, m.tokens, m.h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Prob = s.short(tensor.F32, m.tokens, m.topk)
	}
	return a
}

func moeUnpermuteCases(d tensor.DType) []testCase[moe.MoEUnpermuteArgs] {
	var cases []testCase[moe.MoEUnpermuteArgs]
	add := func(name string, make func(*stage) moe.MoEUnpermuteArgs) {
		cases = append(cases, testCase[moe.MoEUnpermuteArgs]{name, make})
	}
	for _, m := range moeShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, weighted := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *stage) moe.MoEUnpermuteArgs {
					return moeUnpermuteArgs(s, l, d, m, weighted)
				})
			}
		}
	}
	// A sum that is rounded to a narrow dtype after each term has a large error here.
	add("many_experts", func(s *stage) moe.MoEUnpermuteArgs {
		return moeUnpermuteArgs(s, dense, d, moeShape{2, 9, 64, 64, 128}, true)
	})
	add("nan_in_one_row", func(s *stage) moe.MoEUnpermuteArgs {
		a := moeUnpermuteArgs(s, dense, d, moeShape{5, 3, 4, 2, 10}, true)
		a.Input.Set(math.NaN(), 3, 1)
		return a
	})
	// A dropped entry contributes nothing, whatever its weight.
	add("nan_weight_of_nothing", func(s *stage) moe.MoEUnpermuteArgs {
		a := moeUnpermuteArgs(s, dense, d, moeShape{5, 3, 4, 2, 7}, true)
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
	s := &stage{t: t}
	topk := rowIDMap.NumElements() / tokens
	experts := make([]int, tokens*topk)
	for i, r := range rowIDMap.Float64s() {
		if r < 0 {
			r = math.MaxInt32
		}
		experts[i%tokens*topk+i/tokens] = int(r)
	}
	return save(t, x, moe.MoEPermuteFwd, forward, moe.MoEPermuteFwdArgs{
		Input: s.in(dense, d, tokens, 1), Indices: s.integers(tensor.I32, experts, tokens, topk),
		Output: s.out(dense, d, kept(rowIDMap), 1), RowIDMap: rowIDMap, Saved: saved,
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

func moeUnpermuteBwdArgs(s *stage, l layout, d tensor.DType, m moeShape, weighted bool) moe.MoEUnpermuteBwdArgs {
	a := moe.MoEUnpermuteBwdArgs{
		InputBwd: s.in(l, d, m.tokens, m.h), InputFwd: s.in(l, d, m.rows, m.h), RowIDMap: s.rowIDMap(m),
		ActGrad: s.out(l, d, m.rows, m.h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Prob, a.ProbGrad = s.short(tensor.F32, m.tokens, m.topk), s.out(dense, tensor.F32, m.tokens, m.topk)
	}
	return a
}

func moeUnpermuteBwdCases(d tensor.DType) []testCase[moe.MoEUnpermuteBwdArgs] {
	var cases []testCase[moe.MoEUnpermuteBwdArgs]
	add := func(name string, make func(*stage) moe.MoEUnpermuteBwdArgs) {
		cases = append(cases, testCase[moe.MoEUnpermuteBwdArgs]{name, make})
	}
	for _, m := range moeShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, weighted := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *stage) moe.MoEUnpermuteBwdArgs {
					return moeUnpermuteBwdArgs(s, l, d, m, weighted)
				})
			}
		}
	}
	add("rows_of_no_token", func(s *stage) moe.MoEUnpermuteBwdArgs {
		a := moeUnpermuteBwdArgs(s, dense, d, moeShape{2, 3, 4, 2, 4}, true)
		s.fill(a.RowIDMap, []float64{1, -1, 0, -1})
		return a
	})
	return cases
}

// moePermuteGradCases check the gradient with respect to the tokens.
func moePermuteGradCases() []gradCase {
	var cases []gradCase
	for _, m := range []moeShape{{4, 3, 3, 2, 8}, {4, 3, 3, 2, 5}} {
		cases = append(cases, gradient(m.String(), moe.MoEPermuteFwd, moe.MoEPermuteBwd,
			func(s *stage) derivation[moe.MoEPermuteFwdArgs, moe.MoEUnpermuteArgs] {
				f, b := moePermuteArgs(s, dense, tensor.F64, m), moeUnpermuteArgs(s, dense, tensor.F64, m, false)
				s.fill(b.RowIDMap, sortedPairs(f.Indices, m))
				return derivation[moe.MoEPermuteFwdArgs, moe.MoEUnpermuteArgs]{
					forward: []moe.MoEPermuteFwdArgs{f}, backward: []moe.MoEUnpermuteArgs{b},
					y: f.Output, dy: b.Input, wrt: []derivative{{"tokens", f.Input, b.Output}}, refresh: moeUnpermuteRefresh,
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

func moeUnpermuteGradCases() []gradCase {
	var cases []gradCase
	for _, m := range []moeShape{{4, 3, 3, 2, 8}, {4, 3, 3, 2, 5}} {
		cases = append(cases, gradient(m.String(), moe.MoEUnpermuteFwd, moe.MoEUnpermuteBwd,
			func(s *stage) derivation[moe.MoEUnpermuteArgs, moe.MoEUnpermuteBwdArgs] {
				b := moeUnpermuteBwdArgs(s, dense, tensor.F64, m, true)
				f := moe.MoEUnpermuteArgs{Input: b.InputFwd, RowIDMap: b.RowIDMap, Prob: b.Prob, Output: s.blank(m.tokens, m.h), Saved: b.Saved}
				return derivation[moe.MoEUnpermuteArgs, moe.MoEUnpermuteBwdArgs]{
					forward: []moe.MoEUnpermuteArgs{f}, backward: []moe.MoEUnpermuteBwdArgs{b},
					y: f.Output, dy: b.InputBwd, wrt: []derivative{{"rows", b.InputFwd, b.ActGrad}, {"prob", b.Prob, b.ProbGrad}},
				}
			}))
	}
	return cases
}
