package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

func routingMapArgs(s *stage, l layout, d tensor.DType, m moeShape, weighted bool) ops.MoEPermuteWithRoutingMapArgs {
	chosen, rows := make([]float64, m.tokens*m.experts), 0
	for i, v := range s.below(len(chosen), 5) {
		if v < 2 {
			chosen[i] = 1
			rows++
		}
	}
	a := ops.MoEPermuteWithRoutingMapArgs{
		Tokens: s.in(l, d, m.tokens, m.h), RoutingMap: s.out(l, tensor.Bool, m.tokens, m.experts), Output: s.out(l, d, rows, m.h),
		SortedIndices: s.out(dense, tensor.I32, rows), Saved: new(opregistry.Saved),
	}
	s.fill(a.RoutingMap, chosen)
	if weighted {
		a.Probs, a.OutputProbs = s.in(l, tensor.F32, m.tokens, m.experts), s.out(dense, tensor.F32, rows)
	}
	return a
}

func routingMapCases(d tensor.DType) []testCase[ops.MoEPermuteWithRoutingMapArgs] {
	var cases []testCase[ops.MoEPermuteWithRoutingMapArgs]
	for _, m := range moeShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, weighted := range []bool{false, true} {
				cases = append(cases, testCase[ops.MoEPermuteWithRoutingMapArgs]{fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), func(s *stage) ops.MoEPermuteWithRoutingMapArgs {
					return routingMapArgs(s, l, d, m, weighted)
				}})
			}
		}
	}
	return append(cases, testCase[ops.MoEPermuteWithRoutingMapArgs]{"nan_and_inf", func(s *stage) ops.MoEPermuteWithRoutingMapArgs {
		a := routingMapArgs(s, dense, d, moeShape{tokens: 6, h: 3, experts: 4}, true)
		a.Tokens.Set(math.NaN(), 1, 1)
		a.Tokens.Set(math.Inf(1), 2, 0)
		a.Probs.Set(math.NaN(), 3, 2)
		return a
	}})
}

func unpermuteMapArgs(s *stage, l layout, d tensor.DType, m moeShape) ops.MoEUnpermuteWithRoutingMapArgs {
	rows := m.rows
	if m.tokens == 0 {
		rows = 0
	}
	return ops.MoEUnpermuteWithRoutingMapArgs{
		PermutedTokens: s.in(l, d, rows, m.h), SortedIndices: s.integers(tensor.I32, s.below(rows, m.tokens), rows),
		Output: s.out(l, d, m.tokens, m.h), Saved: new(opregistry.Saved),
	}
}

func unpermuteMapCases(d tensor.DType) []testCase[ops.MoEUnpermuteWithRoutingMapArgs] {
	var cases []testCase[ops.MoEUnpermuteWithRoutingMapArgs]
	add := func(name string, make func(*stage) ops.MoEUnpermuteWithRoutingMapArgs) {
		cases = append(cases, testCase[ops.MoEUnpermuteWithRoutingMapArgs]{name, make})
	}
	for _, m := range append(moeShapes(), moeShape{tokens: 2, h: 5, rows: 90}) {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", m, l), func(s *stage) ops.MoEUnpermuteWithRoutingMapArgs { return unpermuteMapArgs(s, l, d, m) })
		}
	}
	add("nan_in_one_row", func(s *stage) ops.MoEUnpermuteWithRoutingMapArgs {
		a := unpermuteMapArgs(s, dense, d, moeShape{tokens: 4, h: 3, rows: 9})
		a.PermutedTokens.Set(math.NaN(), 5, 2)
		return a
	})
	return cases
}

// unpermuteMapRefresh replaces sorted indices by those that a forward impl computes for experts
// with one row each.
func unpermuteMapRefresh(t tensortest.TB, x *opregistry.Exec, a ops.MoEUnpermuteWithRoutingMapArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &stage{t: t}, a.Output.DType()
	tokens, rows := a.Output.Shape()[0], a.SortedIndices.NumElements()
	chosen := make([]int, tokens*rows)
	for r, token := range a.SortedIndices.Float64s() {
		chosen[int(token)*rows+r] = 1
	}
	return save(t, x, ops.MoEPermuteWithRoutingMap, forward, ops.MoEPermuteWithRoutingMapArgs{
		Tokens: s.in(dense, d, tokens, 1), RoutingMap: s.integers(tensor.Bool, chosen, tokens, rows),
		Output: s.out(dense, d, rows, 1), SortedIndices: a.SortedIndices, Saved: a.Saved,
	})
}

func routingMapGradCases() []gradCase {
	return []gradCase{gradient("tokens", ops.MoEPermuteWithRoutingMap, ops.MoEUnpermuteWithRoutingMap,
		func(s *stage) derivation[ops.MoEPermuteWithRoutingMapArgs, ops.MoEUnpermuteWithRoutingMapArgs] {
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
			b := ops.MoEUnpermuteWithRoutingMapArgs{
				PermutedTokens: s.f64(len(index), h), SortedIndices: s.integers(tensor.I32, index, len(index)),
				Output: s.blank(tokens, h), Saved: f.Saved,
			}
			return derivation[ops.MoEPermuteWithRoutingMapArgs, ops.MoEUnpermuteWithRoutingMapArgs]{
				forward: []ops.MoEPermuteWithRoutingMapArgs{f}, backward: []ops.MoEUnpermuteWithRoutingMapArgs{b},
				y: f.Output, dy: b.PermutedTokens, wrt: []derivative{{"tokens", f.Tokens, b.Output}}, refresh: unpermuteMapRefresh,
			}
		})}
}

// sortChunksArgs makes a call that reorders chunks of these sizes at random.
func sortChunksArgs(s *stage, l layout, d, index tensor.DType, h int, weighted bool, sizes ...int) ops.MoESortChunksFwdArgs {
	rows := total(sizes)
	a := ops.MoESortChunksFwdArgs{
		Input: s.in(l, d, rows, h), SplitSizes: s.integers(index, sizes, len(sizes)),
		SortedIdxs: s.integers(index, s.permutation(len(sizes)), len(sizes)), Output: s.out(l, d, rows, h),
		InverseRowMap: s.out(dense, index, rows), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Probs, a.OutputProbs = s.in(dense, tensor.F32, rows), s.out(dense, tensor.F32, rows)
	}
	return a
}

func sortChunksCases(d tensor.DType) []testCase[ops.MoESortChunksFwdArgs] {
	var cases []testCase[ops.MoESortChunksFwdArgs]
	for _, sizes := range [][]int{{}, {0}, {3}, {2, 0, 5, 1}, {1, 1, 1, 1, 1, 1}, {0, 40, 0, 27}} {
		for _, l := range []layout{dense, padded, turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				name := fmt.Sprintf("%v/%v/%v", sizes, l, index)
				cases = append(cases, testCase[ops.MoESortChunksFwdArgs]{name, func(s *stage) ops.MoESortChunksFwdArgs {
					return sortChunksArgs(s, l, d, index, 5, l == dense, sizes...)
				}})
			}
		}
	}
	return append(cases, testCase[ops.MoESortChunksFwdArgs]{"nan", func(s *stage) ops.MoESortChunksFwdArgs {
		a := sortChunksArgs(s, dense, d, tensor.I64, 3, true, 2, 3)
		a.Input.Set(math.NaN(), 1, 1)
		a.Probs.Set(math.Inf(1), 4)
		return a
	}})
}

func sortChunksBwdArgs(s *stage, l layout, d, index tensor.DType, rows, h int, weighted bool) ops.MoESortChunksBwdArgs {
	a := ops.MoESortChunksBwdArgs{
		GradOutput: s.in(l, d, rows, h), InverseRowMap: s.integers(index, s.permutation(rows), rows),
		GradInput: s.out(l, d, rows, h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.GradProbs, a.GradInProbs = s.in(dense, tensor.F32, rows), s.out(dense, tensor.F32, rows)
	}
	return a
}

func sortChunksBwdCases(d tensor.DType) []testCase[ops.MoESortChunksBwdArgs] {
	var cases []testCase[ops.MoESortChunksBwdArgs]
	for _, rows := range []int{0, 1, 9, 67} {
		for _, l := range []layout{dense, padded, turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				cases = append(cases, testCase[ops.MoESortChunksBwdArgs]{fmt.Sprintf("%d/%v/%v", rows, l, index), func(s *stage) ops.MoESortChunksBwdArgs {
					return sortChunksBwdArgs(s, l, d, index, rows, 5, l == dense)
				}})
			}
		}
	}
	return cases
}

// sortChunksRefresh replaces a map by the one that a forward impl computes for chunks of one row.
func sortChunksRefresh(t tensortest.TB, x *opregistry.Exec, a ops.MoESortChunksBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &stage{t: t}, a.GradInput.DType()
	rows := a.InverseRowMap.NumElements()
	ones, order := make([]int, rows), make([]int, rows)
	for j, i := range a.InverseRowMap.Float64s() {
		ones[j], order[int(i)] = 1, j
	}
	return save(t, x, ops.MoESortChunksFwd, forward, ops.MoESortChunksFwdArgs{
		Input: s.in(dense, d, rows, 1), SplitSizes: s.integers(tensor.I64, ones, rows), SortedIdxs: s.integers(tensor.I64, order, rows),
		Output: s.out(dense, d, rows, 1), InverseRowMap: a.InverseRowMap, Saved: a.Saved,
	})
}

func sortChunksGradCases() []gradCase {
	return []gradCase{gradient("input", ops.MoESortChunksFwd, ops.MoESortChunksBwd,
		func(s *stage) derivation[ops.MoESortChunksFwdArgs, ops.MoESortChunksBwdArgs] {
			f := sortChunksArgs(s, dense, tensor.F64, tensor.I64, 2, false, 2, 3, 1)
			s.fill(f.SortedIdxs, []float64{2, 0, 1})
			b := sortChunksBwdArgs(s, dense, tensor.F64, tensor.I64, 6, 2, false)
			s.fill(b.InverseRowMap, []float64{1, 2, 3, 4, 5, 0})
			return derivation[ops.MoESortChunksFwdArgs, ops.MoESortChunksBwdArgs]{
				forward: []ops.MoESortChunksFwdArgs{f}, backward: []ops.MoESortChunksBwdArgs{b},
				y: f.Output, dy: b.GradOutput, wrt: []derivative{{"input", f.Input, b.GradInput}}, refresh: sortChunksRefresh,
			}
		})}
}

func multiRowCases(shorter bool) func(d tensor.DType) []testCase[ops.MultiRowPaddingArgs] {
	return func(d tensor.DType) []testCase[ops.MultiRowPaddingArgs] {
		var cases []testCase[ops.MultiRowPaddingArgs]
		for _, g := range []struct{ rows, padded []int }{
			{[]int{}, []int{}}, {[]int{0}, []int{0}}, {[]int{1}, []int{1}}, {[]int{0}, []int{4}},
			{[]int{5, 0, 17, 3}, []int{16, 0, 32, 16}}, {[]int{3, 0}, []int{3, 2}},
		} {
			for _, l := range []layout{dense, padded, turned} {
				cases = append(cases, testCase[ops.MultiRowPaddingArgs]{fmt.Sprintf("%v/%v/%v", g.rows, g.padded, l), func(s *stage) ops.MultiRowPaddingArgs {
					a := ops.MultiRowPaddingArgs{InputRows: g.rows, OutputRows: g.padded}
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
