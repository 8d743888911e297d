package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/moe"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func routingMapArgs(s *stage, l layout, d tensor.DType, m moeShape, weighted bool) moe.MoEPermuteWithRoutingMapArgs {
	chosen, rows := make([]float64, m.tokens*m.experts), 0
	for i, v := range s.below(len(chosen), 5) {
		if v < 2 {
			chosen[i] = 1
			rows++
		}
	}
	a := moe.MoEPermuteWithRoutingMapArgs{
		Tokens: s.in(l, d, m.tokens, m.h), RoutingMap: s.out(l, tensor.Bool, m.tokens, m.experts), Output: s.out(l, d, rows, m.h),
		SortedIndices: s.out(dense, tensor.I32, rows), Saved: new(opregistry.Saved),
	}
	s.fill(a.RoutingMap, chosen)
	if weighted {
		a.Probs, a.OutputProbs = s.in(l, tensor.F32, m.tokens, m.experts), s.out(dense, tensor.F32, rows)
	}
	return a
}

func routingMapCases(d tensor.DType) []testCase[moe.MoEPermuteWithRoutingMapArgs] {
	var cases []testCase[moe.MoEPermuteWithRoutingMapArgs]
	for _, m := range moeShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, weighted := range []bool{false, true} {
				cases = append(cases, testCase[moe.MoEPermuteWithRoutingMapArgs]{fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *stage) moe.MoEPermuteWithRoutingMapArgs {
					return routingMapArgs(s, l, d, m, weighted)
				}})
			}
		}
	}
	return append(cases, testCase[moe.MoEPermuteWithRoutingMapArgs]{"nan_and_inf", func(s *stage) moe.MoEPermuteWithRoutingMapArgs {
		a := routingMapArgs(s, dense, d, moeShape{tokens: 6, h: 3, experts: 4}, true)
		a.Tokens.Set(math.NaN(), 1, 1)
		a.Tokens.Set(math.Inf(1), 2, 0)
		a.Probs.Set(math.NaN(), 3, 2)
		return a
	}})
}

func unpermuteMapArgs(s *stage, l layout, d tensor.DType, m moeShape) moe.MoEUnpermuteWithRoutingMapArgs {
	rows := m.rows
	if m.tokens == 0 {
		rows = 0
	}
	return moe.MoEUnpermuteWithRoutingMapArgs{
		PermutedTokens: s.in(l, d, rows, m.h), SortedIndices: s.integers(tensor.I32, s.below(rows, m.tokens), rows),
		Output: s.out(l, d, m.tokens, m.h), Saved: new(opregistry.Saved),
	}
}

func unpermuteMapCases(d tensor.DType) []testCase[moe.MoEUnpermuteWithRoutingMapArgs] {
	var cases []testCase[moe.MoEUnpermuteWithRoutingMapArgs]
	add := func(name string, make func(*stage) moe.MoEUnpermuteWithRoutingMapArgs) {
		cases = append(cases, testCase[moe.MoEUnpermuteWithRoutingMapArgs]{name, make})
	}
	for _, m := range append(moeShapes(), moeShape{tokens: 2, h: 5, rows: 90}) {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", m, l), func(s *stage) moe.MoEUnpermuteWithRoutingMapArgs { return unpermuteMapArgs(s, l, d, m) })
		}
	}
	add("nan_in_one_row", func(s *stage) moe.MoEUnpermuteWithRoutingMapArgs {
		a := unpermuteMapArgs(s, dense, d, moeShape{tokens: 4, h: 3, rows: 9})
		a.PermutedTokens.Set(math.NaN(), 5, 2)
		return a
	})
	return cases
}

// unpermuteMapRefresh replaces sorted indices by those that a forward impl computes for experts
// with one row each.
func unpermuteMapRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoEUnpermuteWithRoutingMapArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &stage{t: t}, a.Output.DType()
	tokens, rows := a.Output.Shape()[0], a.SortedIndices.NumElements()
	chosen := make([]int, tokens*rows)
	for r, token := range a.SortedIndices.Float64s() {
		chosen[int(token)*rows+r] = 1
	}
	return save(t, x, moe.MoEPermuteWithRoutingMap, forward, moe.MoEPermuteWithRoutingMapArgs{
		Tokens: s.in(dense, d, tokens, 1), RoutingMap: s.integers(tensor.Bool, chosen, tokens, rows),
		Output: s.out(dense, d, rows, 1), SortedIndices: a.SortedIndices, Saved: a.Saved,
	})
}

func routingMapGradCases() []gradCase {
	return []gradCase{gradient("tokens", moe.MoEPermuteWithRoutingMap, moe.MoEUnpermuteWithRoutingMap,
		func(s *stage) derivation[moe.MoEPermuteWithRoutingMapArgs, moe.MoEUnpermuteWithRoutingMapArgs] {
			const tokens, h, experts = 4, 3, 5
			f := routingMapArgs(s, dense, tensor.F64, moeShape{tokens: tokens, h: h, experts: experts}, true)
			var index []int
			for e := range experts {
				for t := range tokens {
					if f.RoutingMap.At(t, e) != 0 {
						index = append(index, t)
					}
				}
			}
			b := moe.MoEUnpermuteWithRoutingMapArgs{
				PermutedTokens: s.f64(len(index), h), SortedIndices: s.integers(tensor.I32, index, len(index)),
				Output: s.blank(tokens, h), Saved: f.Saved,
			}
			return derivation[moe.MoEPermuteWithRoutingMapArgs, moe.MoEUnpermuteWithRoutingMapArgs]{
				forward: []moe.MoEPermuteWithRoutingMapArgs{f}, backward: []moe.MoEUnpermuteWithRoutingMapArgs{b},
				y: f.Output, dy: b.PermutedTokens, wrt: []derivative{{"tokens", f.Tokens, b.Output}}, refresh: unpermuteMapRefresh,
			}
		})}
}

// sortChunksArgs makes a call that reorders chunks of these sizes at random.
func sortChunksArgs(s *stage, l layout, d, index tensor.DType, h int, weighted bool, sizes ...int) moe.MoESortChunksFwdArgs {
	rows := total(sizes)
	a := moe.MoESortChunksFwdArgs{
		Input: s.in(l, d, rows, h), SplitSizes: s.integers(index, sizes, len(sizes)),
		SortedIdxs: s.integers(index, s.permutation(len(sizes)), len(sizes)), Output: s.out(l, d, rows, h),
		InverseRowMap: s.out(dense, index, rows), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Probs, a.OutputProbs = s.in(dense, tensor.F32, rows), s.out(dense, tensor.F32, rows)
	}
	return a
}

func sortChunksCases(d tensor.DType) []testCase[moe.MoESortChunksFwdArgs] {
	var cases []testCase[moe.MoESortChunksFwdArgs]
	for _, sizes := range [][]int{{}, {0}, {3}, {2, 0, 5, 1}, {1, 1, 1, 1, 1, 1}, {0, 40, 0, 27}} {
		for _, l := range []layout{dense, padded, turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				name := fmt.Sprintf("%v/%v/%v", sizes, l, index)
				cases = append(cases, testCase[moe.MoESortChunksFwdArgs]{name, func(s *stage) moe.MoESortChunksFwdArgs {
					return sortChunksArgs(s, l, d, index, 5, l == dense, sizes...)
				}})
			}
		}
	}
	return append(cases, testCase[moe.MoESortChunksFwdArgs]{"nan", func(s *stage) moe.MoESortChunksFwdArgs {
		a := sortChunksArgs(s, dense, d, tensor.I64, 3, true, 2, 3)
		a.Input.Set(math.NaN(), 1, 1)
		a.Probs.Set(math.Inf(1), 4)
		return a
	}})
}

func sortChunksBwdArgs(s *stage, l layout, d, index tensor.DType, rows, h int, weighted bool) moe.MoESortChunksBwdArgs {
	a := moe.MoESortChunksBwdArgs{
		GradOutput: s.in(l, d, rows, h), InverseRowMap: s.integers(index, s.permutation(rows), rows),
		GradInput: s.out(l, d, rows, h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.GradProbs, a.GradInProbs = s.in(dense, tensor.F32, rows), s.out(dense, tensor.F32, rows)
	}
	return a
}

func sortChunksBwdCases(d tensor.DType) []testCase[moe.MoESortChunksBwdArgs] {
	var cases []testCase[moe.MoESortChunksBwdArgs]
	for _, rows := range []int{0, 1, 9, 67} {
		for _, l := range []layout{dense, padded, turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				cases = append(cases, testCase[moe.MoESortChunksBwdArgs]{fmt.Sprintf("%d/%v/%v", rows, l, index), func(s *stage) moe.MoESortChunksBwdArgs {
					return sortChunksBwdArgs(s, l, d, index, rows, 5, l == dense)
				}})
			}
		}
	}
	return cases
}

// sortChunksRefresh replaces a map by the one that a forward impl computes for chunks of one row.
func sortChunksRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoESortChunksBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &stage{t: t}, a.GradInput.DType()
	rows := a.InverseRowMap.NumElements()
	ones, order := make([]int, rows), make([]int, rows)
	for j, i := range a.InverseRowMap.Float64s() {
		ones[j], order[int(i)] = 1, j
	}
	return save(t, x, moe.MoESortChunksFwd, forward, moe.MoESortChunksFwdArgs{
		Input: s.in(dense, d, rows, 1), SplitSizes: s.integers(tensor.I64, ones, rows), SortedIdxs: s.integers(tensor.I64, order, rows),
		Output: s.out(dense, d, rows, 1), InverseRowMap: a.InverseRowMap, Saved: a.Saved,
	})
}

func sortChunksGradCases() []gradCase {
	return []gradCase{gradient("input", moe.MoESortChunksFwd, moe.MoESortChunksBwd,
		func(s *stage) derivation[moe.MoESortChunksFwdArgs, moe.MoESortChunksBwdArgs] {
			f := sortChunksArgs(s, dense, tensor.F64, tensor.I64, 2, false, 2, 3, 1)
			s.fill(f.SortedIdxs, []float64{2, 0, 1})
			b := sortChunksBwdArgs(s, dense, tensor.F64, tensor.I64, 6, 2, false)
			s.fill(b.InverseRowMap, []float64{1, 2, 3, 4, 5, 0})
			return derivation[moe.MoESortChunksFwdArgs, moe.MoESortChunksBwdArgs]{
				forward: []moe.MoESortChunksFwdArgs{f}, backward: []moe.MoESortChunksBwdArgs{b},
				y: f.Output, dy: b.GradOutput, wrt: []derivative{{"input", f.Input, b.GradInput}}, refresh: sortChunksRefresh,
			}
		})}
}

func multiRowCases(shorter bool) func(d tensor.DType) []testCase[moe.MultiRowPaddingArgs] {
	return func(d tensor.DType) []testCase[moe.MultiRowPaddingArgs] {
		var cases []testCase[moe.MultiRowPaddingArgs]
		for _, g := range []struct{ rows, padded []int }{
			{[]int{}, []int{}}, {[]int{0}, []int{0}}, {[]int{1}, []int{1}}, {[]int{0}, []int{4}},
			{[]int{5, 0, 17, 3}, []int{16, 0, 32, 16}}, {[]int{3, 0}, []int{3, 2}},
		} {
			for _, l := range []layout{dense, padded, turned} {
				cases = append(cases, testCase[moe.MultiRowPaddingArgs]{fmt.Sprintf("%v/%v/%v", g.rows, g.padded, l), func(s *stage) moe.MultiRowPaddingArgs {
					a := moe.MultiRowPaddingArgs{InputRows: g.rows, OutputRows: g.padded}
					if shorter {
						a.InputRows, a.OutputRows = g.padded, g.rows
					}
					a.Input, a.Output = s.in(l, d, total(a.InputRows), 7), s.out(l, d, total(a.OutputRows), 7)
					if a.Input.NumElements() > 0 {
						a.Input.Set(math.NaN(), 0, 3)
					}
					return a
				}})
			}
		}
		return cases
	}
}
