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

func routingMapArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, m moeShape, weighted bool) moe.MoEPermuteWithRoutingMapArgs {
	chosen, rows := make([]float64, m.tokens*m.experts), 0
	for i, v := range below(s, len(chosen), 5) {
		if v < 2 {
			chosen[i] = 1
			rows++
		}
	}
	a := moe.MoEPermuteWithRoutingMapArgs{
		Tokens: s.In(l, d, m.tokens, m.h), RoutingMap: s.Out(l, tensor.Bool, m.tokens, m.experts), Output: s.Out(l, d, rows, m.h),
		SortedIndices: s.Out(opstest.Dense, tensor.I32, rows), Saved: new(opregistry.Saved),
	}
	s.Fill(a.RoutingMap, chosen)
	if weighted {
		a.Probs, a.OutputProbs = s.In(l, tensor.F32, m.tokens, m.experts), s.Out(opstest.Dense, tensor.F32, rows)
	}
	return a
}

func routingMapCases(d tensor.DType) []opstest.Case[moe.MoEPermuteWithRoutingMapArgs] {
	var cases []opstest.Case[moe.MoEPermuteWithRoutingMapArgs]
	for _, m := range moeShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, weighted := range []bool{false, true} {
				cases = append(cases, opstest.Case[moe.MoEPermuteWithRoutingMapArgs]{Name: fmt.Sprintf("%v/%v/weighted=%v", m, l, weighted), Make: func(s *opstest.Stage) moe.MoEPermuteWithRoutingMapArgs {
					return routingMapArgs(s, l, d, m, weighted)
				}})
			}
		}
	}
	return append(cases, opstest.Case[moe.MoEPermuteWithRoutingMapArgs]{Name: "nan_and_inf", Make: func(s *opstest.Stage) moe.MoEPermuteWithRoutingMapArgs {
		a := routingMapArgs(s, opstest.Dense, d, moeShape{tokens: 6, h: 3, experts: 4}, true)
		a.Tokens.Set(math.NaN(), 1, 1)
		a.Tokens.Set(math.Inf(1), 2, 0)
		a.Probs.Set(math.NaN(), 3, 2)
		return a
	}})
}

func unpermuteMapArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, m moeShape) moe.MoEUnpermuteWithRoutingMapArgs {
	rows := m.rows
	if m.tokens == 0 {
		rows = 0
	}
	return moe.MoEUnpermuteWithRoutingMapArgs{
		PermutedTokens: s.In(l, d, rows, m.h), SortedIndices: s.Integers(tensor.I32, below(s, rows, m.tokens), rows),
		Output: s.Out(l, d, m.tokens, m.h), Saved: new(opregistry.Saved),
	}
}

func unpermuteMapCases(d tensor.DType) []opstest.Case[moe.MoEUnpermuteWithRoutingMapArgs] {
	var cases []opstest.Case[moe.MoEUnpermuteWithRoutingMapArgs]
	add := func(name string, make func(*opstest.Stage) moe.MoEUnpermuteWithRoutingMapArgs) {
		cases = append(cases, opstest.Case[moe.MoEUnpermuteWithRoutingMapArgs]{Name: name, Make: make})
	}
	for _, m := range append(moeShapes(), moeShape{tokens: 2, h: 5, rows: 90}) {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", m, l), func(s *opstest.Stage) moe.MoEUnpermuteWithRoutingMapArgs { return unpermuteMapArgs(s, l, d, m) })
		}
	}
	add("nan_in_one_row", func(s *opstest.Stage) moe.MoEUnpermuteWithRoutingMapArgs {
		a := unpermuteMapArgs(s, opstest.Dense, d, moeShape{tokens: 4, h: 3, rows: 9})
		a.PermutedTokens.Set(math.NaN(), 5, 2)
		return a
	})
	return cases
}

// unpermuteMapRefresh replaces sorted indices by those that a forward impl computes for experts
// with one row each.
func unpermuteMapRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoEUnpermuteWithRoutingMapArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &opstest.Stage{T: t}, a.Output.DType()
	tokens, rows := a.Output.Shape()[0], a.SortedIndices.NumElements()
	chosen := make([]int, tokens*rows)
	for r, token := range a.SortedIndices.Float64s() {
		chosen[int(token)*rows+r] = 1
	}
	return opstest.RunForward(t, x, moe.MoEPermuteWithRoutingMap, forward, moe.MoEPermuteWithRoutingMapArgs{
		Tokens: s.In(opstest.Dense, d, tokens, 1), RoutingMap: s.Integers(tensor.Bool, chosen, tokens, rows),
		Output: s.Out(opstest.Dense, d, rows, 1), SortedIndices: a.SortedIndices, Saved: a.Saved,
	})
}

func routingMapGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("tokens", moe.MoEPermuteWithRoutingMap, moe.MoEUnpermuteWithRoutingMap,
		func(s *opstest.Stage) opstest.Derivation[moe.MoEPermuteWithRoutingMapArgs, moe.MoEUnpermuteWithRoutingMapArgs] {
			const tokens, h, experts = 4, 3, 5
			f := routingMapArgs(s, opstest.Dense, tensor.F64, moeShape{tokens: tokens, h: h, experts: experts}, true)
			var index []int
			for e := range experts {
				for t := range tokens {
					if f.RoutingMap.At(t, e) != 0 {
						index = append(index, t)
					}
				}
			}
			b := moe.MoEUnpermuteWithRoutingMapArgs{
				PermutedTokens: s.F64In(len(index), h), SortedIndices: s.Integers(tensor.I32, index, len(index)),
				Output: s.F64Out(tokens, h), Saved: f.Saved,
			}
			return opstest.Derivation[moe.MoEPermuteWithRoutingMapArgs, moe.MoEUnpermuteWithRoutingMapArgs]{
				Forward: []moe.MoEPermuteWithRoutingMapArgs{f}, Backward: []moe.MoEUnpermuteWithRoutingMapArgs{b},
				Y: f.Output, DY: b.PermutedTokens, Wrt: []opstest.Derivative{{Name: "tokens", X: f.Tokens, DX: b.Output}}, Refresh: unpermuteMapRefresh,
			}
		})}
}

// sortChunksArgs makes a call that reorders chunks of these sizes at random.
func sortChunksArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, h int, weighted bool, sizes ...int) moe.MoESortChunksFwdArgs {
	rows := opstest.Total(sizes)
	a := moe.MoESortChunksFwdArgs{
		Input: s.In(l, d, rows, h), SplitSizes: s.Integers(index, sizes, len(sizes)),
		SortedIdxs: s.Integers(index, s.Permutation(len(sizes)), len(sizes)), Output: s.Out(l, d, rows, h),
		InverseRowMap: s.Out(opstest.Dense, index, rows), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.Probs, a.OutputProbs = s.In(opstest.Dense, tensor.F32, rows), s.Out(opstest.Dense, tensor.F32, rows)
	}
	return a
}

func sortChunksCases(d tensor.DType) []opstest.Case[moe.MoESortChunksFwdArgs] {
	var cases []opstest.Case[moe.MoESortChunksFwdArgs]
	for _, sizes := range [][]int{{}, {0}, {3}, {2, 0, 5, 1}, {1, 1, 1, 1, 1, 1}, {0, 40, 0, 27}} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				name := fmt.Sprintf("%v/%v/%v", sizes, l, index)
				cases = append(cases, opstest.Case[moe.MoESortChunksFwdArgs]{Name: name, Make: func(s *opstest.Stage) moe.MoESortChunksFwdArgs {
					return sortChunksArgs(s, l, d, index, 5, l == opstest.Dense, sizes...)
				}})
			}
		}
	}
	return append(cases, opstest.Case[moe.MoESortChunksFwdArgs]{Name: "nan", Make: func(s *opstest.Stage) moe.MoESortChunksFwdArgs {
		a := sortChunksArgs(s, opstest.Dense, d, tensor.I64, 3, true, 2, 3)
		a.Input.Set(math.NaN(), 1, 1)
		a.Probs.Set(math.Inf(1), 4)
		return a
	}})
}

func sortChunksBwdArgs(s *opstest.Stage, l opstest.Layout, d, index tensor.DType, rows, h int, weighted bool) moe.MoESortChunksBwdArgs {
	a := moe.MoESortChunksBwdArgs{
		GradOutput: s.In(l, d, rows, h), InverseRowMap: s.Integers(index, s.Permutation(rows), rows),
		GradInput: s.Out(l, d, rows, h), Saved: new(opregistry.Saved),
	}
	if weighted {
		a.GradProbs, a.GradInProbs = s.In(opstest.Dense, tensor.F32, rows), s.Out(opstest.Dense, tensor.F32, rows)
	}
	return a
}

func sortChunksBwdCases(d tensor.DType) []opstest.Case[moe.MoESortChunksBwdArgs] {
	var cases []opstest.Case[moe.MoESortChunksBwdArgs]
	for _, rows := range []int{0, 1, 9, 67} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				cases = append(cases, opstest.Case[moe.MoESortChunksBwdArgs]{Name: fmt.Sprintf("%d/%v/%v", rows, l, index), Make: func(s *opstest.Stage) moe.MoESortChunksBwdArgs {
					return sortChunksBwdArgs(s, l, d, index, rows, 5, l == opstest.Dense)
				}})
			}
		}
	}
	return cases
}

// sortChunksRefresh replaces a map by the one that a forward impl computes for chunks of one row.
func sortChunksRefresh(t tensortest.TB, x *opregistry.Exec, a moe.MoESortChunksBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s, d := &opstest.Stage{T: t}, a.GradInput.DType()
	rows := a.InverseRowMap.NumElements()
	ones, order := make([]int, rows), make([]int, rows)
	for j, i := range a.InverseRowMap.Float64s() {
		ones[j], order[int(i)] = 1, j
	}
	return opstest.RunForward(t, x, moe.MoESortChunksFwd, forward, moe.MoESortChunksFwdArgs{
		Input: s.In(opstest.Dense, d, rows, 1), SplitSizes: s.Integers(tensor.I64, ones, rows), SortedIdxs: s.Integers(tensor.I64, order, rows),
		Output: s.Out(opstest.Dense, d, rows, 1), InverseRowMap: a.InverseRowMap, Saved: a.Saved,
	})
}

func sortChunksGradCases() []opstest.GradCase {
	return []opstest.GradCase{opstest.NewGradCase("input", moe.MoESortChunksFwd, moe.MoESortChunksBwd,
		func(s *opstest.Stage) opstest.Derivation[moe.MoESortChunksFwdArgs, moe.MoESortChunksBwdArgs] {
			f := sortChunksArgs(s, opstest.Dense, tensor.F64, tensor.I64, 2, false, 2, 3, 1)
			s.Fill(f.SortedIdxs, []float64{2, 0, 1})
			b := sortChunksBwdArgs(s, opstest.Dense, tensor.F64, tensor.I64, 6, 2, false)
			s.Fill(b.InverseRowMap, []float64{1, 2, 3, 4, 5, 0})
			return opstest.Derivation[moe.MoESortChunksFwdArgs, moe.MoESortChunksBwdArgs]{
				Forward: []moe.MoESortChunksFwdArgs{f}, Backward: []moe.MoESortChunksBwdArgs{b},
				Y: f.Output, DY: b.GradOutput, Wrt: []opstest.Derivative{{Name: "input", X: f.Input, DX: b.GradInput}}, Refresh: sortChunksRefresh,
			}
		})}
}

func multiRowCases(shorter bool) func(d tensor.DType) []opstest.Case[moe.MultiRowPaddingArgs] {
	return func(d tensor.DType) []opstest.Case[moe.MultiRowPaddingArgs] {
		var cases []opstest.Case[moe.MultiRowPaddingArgs]
		for _, g := range []struct{ rows, padded []int }{
			{[]int{}, []int{}}, {[]int{0}, []int{0}}, {[]int{1}, []int{1}}, {[]int{0}, []int{4}},
			{[]int{5, 0, 17, 3}, []int{16, 0, 32, 16}}, {[]int{3, 0}, []int{3, 2}}, {[]int{2000, 9, 2100}, []int{2016, 16, 2112}},
		} {
			for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
				cases = append(cases, opstest.Case[moe.MultiRowPaddingArgs]{Name: fmt.Sprintf("%v/%v/%v", g.rows, g.padded, l), Make: func(s *opstest.Stage) moe.MultiRowPaddingArgs {
					a := moe.MultiRowPaddingArgs{InputRows: g.rows, OutputRows: g.padded}
					if shorter {
						a.InputRows, a.OutputRows = g.padded, g.rows
					}
					a.Input, a.Output = s.In(l, d, opstest.Total(a.InputRows), 7), s.Out(l, d, opstest.Total(a.OutputRows), 7)
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
