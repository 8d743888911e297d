package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// qkvShape are the sizes of a fused projection.
type qkvShape struct {
	s, b, groups int
	split        []int // q, k, v
	q, k         int   // rotated elements of a head
}

func (n qkvShape) axes(f attention.QKVFormat, heads, d int) []int {
	if f == attention.BSHD {
		return []int{n.b, n.s, heads, d}
	}
	return []int{n.s, n.b, heads, d}
}

func qkvRopeForwardCases(d tensor.DType) []opstest.Case[rope.FusedQKVRopeArgs] {
	return qkvRopeCases(d, false)
}

func qkvRopeBackwardCases(d tensor.DType) []opstest.Case[rope.FusedQKVRopeArgs] {
	return qkvRopeCases(d, true)
}

// qkvRopeArgs makes the operands of either direction.
func qkvRopeArgs(s *opstest.Stage, backward bool, l opstest.Layout, d tensor.DType, f attention.QKVFormat, n qkvShape) rope.FusedQKVRopeArgs {
	whole, part := s.In, s.Out
	if backward {
		whole, part = s.Out, s.In
	}
	total := n.split[0] + n.split[1] + n.split[2]
	return rope.FusedQKVRopeArgs{
		QKV:    whole(l, d, n.axes(f, n.groups, total)...),
		QFreqs: ropeAngles(s, 10, n.s+4, n.q), KFreqs: ropeAngles(s, 10, n.s+4, n.k),
		Q:               part(l, d, n.axes(f, n.groups*n.split[0]/n.split[1], n.split[1])...),
		K:               part(l, d, n.axes(f, n.groups, n.split[1])...),
		V:               part(l, d, n.axes(f, n.groups, n.split[2])...),
		QKVSplitArgList: n.split, QKVFormat: f,
	}
}

func qkvRopeCases(d tensor.DType, backward bool) []opstest.Case[rope.FusedQKVRopeArgs] {
	type args = rope.FusedQKVRopeArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	shapes := []qkvShape{
		{1, 1, 1, []int{2, 2, 2}, 2, 2},
		{5, 2, 2, []int{24, 8, 8}, 8, 8},
		{6, 1, 3, []int{20, 10, 6}, 4, 10}, // values of another size, part of each head rotated
		{4, 3, 1, []int{0, 4, 0}, 4, 2},
		{9, 2, 1, []int{64, 32, 32}, 32, 32},
		{0, 2, 2, []int{8, 4, 4}, 4, 4}, {3, 0, 2, []int{8, 4, 4}, 4, 4}, {3, 2, 0, []int{8, 4, 4}, 4, 4},
	}
	for _, n := range shapes {
		for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
			for _, interleaved := range []bool{false, true} {
				l := opstest.Dense
				if interleaved == (f == attention.SBHD) {
					l = opstest.Padded
				}
				add(fmt.Sprintf("s%d,b%d,g%d,%v/%v/interleaved=%v/%v", n.s, n.b, n.groups, tensor.Shape(n.split), f, interleaved, l), func(s *opstest.Stage) args {
					a := qkvRopeArgs(s, backward, l, d, f, n)
					a.Interleaved = interleaved
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := qkvRopeArgs(s, backward, opstest.Dense, d, attention.SBHD, qkvShape{6, 2, 2, []int{16, 8, 8}, 8, 8})
			change(s, &a)
			return a
		})
	}
	edit("start_positions", func(s *opstest.Stage, a *args) { a.StartPositions = s.Values(tensor.I32, 4, 1) })
	edit("large_angles", func(s *opstest.Stage, a *args) { a.QFreqs = ropeAngles(s, 4096, 10, 8) })
	for rank := range 3 {
		edit(fmt.Sprintf("context_parallel/rank%d_of_3", rank), func(s *opstest.Stage, a *args) {
			a.QFreqs, a.KFreqs = ropeAngles(s, 10, 18, 8), ropeAngles(s, 10, 18, 8)
			a.CPSize, a.CPRank = 3, rank
		})
	}
	edit("context_parallel/start_positions", func(s *opstest.Stage, a *args) {
		a.QFreqs, a.KFreqs = ropeAngles(s, 10, 12, 8), ropeAngles(s, 10, 12, 8)
		a.CPSize, a.CPRank, a.StartPositions = 2, 1, s.Values(tensor.I32, 4, 1000)
	})
	edit("turned", func(s *opstest.Stage, a *args) {
		*a = qkvRopeArgs(s, backward, opstest.Turned, d, attention.BSHD, qkvShape{3, 2, 2, []int{16, 8, 8}, 8, 8})
	})
	edit("nan_and_inf", func(_ *opstest.Stage, a *args) {
		x, y := a.QKV, a.QKV
		if backward {
			x, y = a.Q, a.V
		}
		x.Set(math.NaN(), 1, 0, 1, 2)
		y.Set(math.Inf(1), 2, 0, 1, 7)
	})
	return cases
}
