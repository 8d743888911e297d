// Package collectivetest has the conformance cases of package collective: those of a job of one
// rank, which any impl can run in one process.
package collectivetest

import (
	"fmt"

	"github.com/primus-fl/primus/ops/collective"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// Kit returns the cases of the ops of package collective.
func Kit() opstest.Kit {
	return opstest.Kit{
		Suites: []*opstest.Suite{
			opstest.Spec[collective.AllReduceArgs]{Op: collective.AllReduce, Cases: allReduceCases}.Suite(),
			opstest.Spec[collective.ReduceArgs]{Op: collective.Reduce, Cases: reduceCases}.Suite(),
			opstest.Spec[collective.ReduceScatterArgs]{Op: collective.ReduceScatter, Cases: reduceScatterCases}.Suite(),
			opstest.Spec[collective.AllGatherArgs]{Op: collective.AllGather, Cases: allGatherCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.BroadcastArgs]{Op: collective.Broadcast, Cases: broadcastCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.AllToAllArgs]{Op: collective.AllToAll, Cases: allToAllCases, Bitwise: true}.Suite(),
			opstest.Spec[collective.BarrierArgs]{Op: collective.Barrier, Cases: barrierCases}.Suite(),
		},
	}
}

var (
	alone   = collective.Group{Ranks: 1}
	shapes  = [][]int{{}, {1}, {7}, {3, 5}, {2, 0, 3}, {1025}}
	reduced = []collective.Reduction{collective.Sum, collective.Max, collective.Min, collective.Avg}
)

// reductions makes a case for each shape and reduction, and one in place.
func reductions[A any](d tensor.DType, make func(in, out *tensor.Tensor, r collective.Reduction) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, shape := range shapes {
		for _, r := range reduced {
			cases = append(cases, opstest.Case[A]{Name: fmt.Sprintf("%v/%v", tensor.Shape(shape), r), Make: func(s *opstest.Stage) A {
				return make(s.In(opstest.Dense, d, shape...), s.Out(opstest.Dense, d, shape...), r)
			}})
		}
	}
	return cases
}

func allReduceCases(d tensor.DType) []opstest.Case[collective.AllReduceArgs] {
	of := func(in, out *tensor.Tensor, r collective.Reduction) collective.AllReduceArgs {
		return collective.AllReduceArgs{Input: in, Output: out, Reduction: r, Group: alone}
	}
	return append(reductions(d, of), opstest.Case[collective.AllReduceArgs]{Name: "in_place", Make: func(s *opstest.Stage) collective.AllReduceArgs {
		x := s.In(opstest.Dense, d, 4, 9)
		return of(x, x, collective.Sum)
	}})
}

func reduceCases(d tensor.DType) []opstest.Case[collective.ReduceArgs] {
	return reductions(d, func(in, out *tensor.Tensor, r collective.Reduction) collective.ReduceArgs {
		return collective.ReduceArgs{Input: in, Output: out, Reduction: r, Group: alone}
	})
}

func reduceScatterCases(d tensor.DType) []opstest.Case[collective.ReduceScatterArgs] {
	return reductions(d, func(in, out *tensor.Tensor, r collective.Reduction) collective.ReduceScatterArgs {
		return collective.ReduceScatterArgs{Input: in, Output: out, Reduction: r, Group: alone}
	})
}

// moves makes a case for each shape.
func moves[A any](d tensor.DType, make func(in, out *tensor.Tensor) A) []opstest.Case[A] {
	var cases []opstest.Case[A]
	for _, shape := range shapes {
		cases = append(cases, opstest.Case[A]{Name: tensor.Shape(shape).String(), Make: func(s *opstest.Stage) A {
			return make(s.In(opstest.Dense, d, shape...), s.Out(opstest.Dense, d, shape...))
		}})
	}
	return cases
}

func allGatherCases(d tensor.DType) []opstest.Case[collective.AllGatherArgs] {
	return moves(d, func(in, out *tensor.Tensor) collective.AllGatherArgs {
		return collective.AllGatherArgs{Input: in, Output: out, Group: alone}
	})
}

func broadcastCases(d tensor.DType) []opstest.Case[collective.BroadcastArgs] {
	return moves(d, func(in, _ *tensor.Tensor) collective.BroadcastArgs {
		return collective.BroadcastArgs{Buffer: in, Group: alone}
	})
}

func allToAllCases(d tensor.DType) []opstest.Case[collective.AllToAllArgs] {
	return moves(d, func(in, out *tensor.Tensor) collective.AllToAllArgs {
		return collective.AllToAllArgs{Input: in, Output: out, Group: alone}
	})
}

func barrierCases(tensor.DType) []opstest.Case[collective.BarrierArgs] {
	return []opstest.Case[collective.BarrierArgs]{{Name: "alone", Make: func(*opstest.Stage) collective.BarrierArgs {
		return collective.BarrierArgs{Group: alone}
	}}}
}
