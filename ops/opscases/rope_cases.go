package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// ropeAngles returns a table of angles in which every element is different, up to most. In training
// the two halves of a row are equal; an op must be right for any table.
func ropeAngles(s *opstest.Stage, most float64, positions, d2 int) *tensor.Tensor {
	return s.Scaled(most, opstest.Dense, tensor.F32, positions, 1, 1, d2)
}

// ropeCases returns the cases of both directions.
func ropeCases(d tensor.DType) []opstest.Case[rope.FusedRopeArgs] {
	var cases []opstest.Case[rope.FusedRopeArgs]
	add := func(name string, make func(*opstest.Stage) rope.FusedRopeArgs) {
		cases = append(cases, opstest.Case[rope.FusedRopeArgs]{Name: name, Make: make})
	}
	shapes := []struct{ s, b, h, d, d2 int }{
		{1, 1, 1, 2, 2}, {5, 2, 3, 8, 8}, {7, 2, 3, 10, 4}, {33, 1, 2, 64, 64}, {6, 3, 1, 6, 6}, {4, 2, 2, 34, 34},
		{0, 2, 3, 8, 8}, {3, 0, 2, 8, 4}, {3, 2, 0, 8, 4},
	}
	for _, n := range shapes {
		for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
			for _, interleaved := range []bool{false, true} {
				for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
					axes := []int{n.s, n.b, n.h, n.d}
					if f == attention.BSHD {
						axes[0], axes[1] = n.b, n.s
					}
					name := fmt.Sprintf("%v,d2=%d/%v/interleaved=%v/%v", tensor.Shape(axes), n.d2, f, interleaved, l)
					call := func(s *opstest.Stage) rope.FusedRopeArgs {
						return rope.FusedRopeArgs{
							Input: s.In(l, d, axes...), Freqs: ropeAngles(s, 10, n.s+4, n.d2), Output: s.Out(l, d, axes...),
							QKVFormat: f, Interleaved: interleaved,
						}
					}
					add(name, call)
					add(name+"/in_place", func(s *opstest.Stage) rope.FusedRopeArgs {
						a := call(s)
						a.Output = a.Input
						return a
					})
					add(name+"/start_positions", func(s *opstest.Stage) rope.FusedRopeArgs {
						a := call(s)
						starts := make([]float64, n.b)
						for i := range starts {
							starts[i] = float64((4 + 3*i) % 5)
						}
						a.StartPositions = s.Values(tensor.I32, starts...)
						return a
					})
				}
			}
		}
	}
	for _, c := range ropePlaces(d) {
		add(c.Name, c.Make)
	}
	return cases
}

// ropePlaces returns the cases of packed sequences, context parallelism, large angles, odd layouts
// and NaN.
func ropePlaces(d tensor.DType) []opstest.Case[rope.FusedRopeArgs] {
	var cases []opstest.Case[rope.FusedRopeArgs]
	add := func(name string, make func(*opstest.Stage) rope.FusedRopeArgs) {
		cases = append(cases, opstest.Case[rope.FusedRopeArgs]{Name: name, Make: make})
	}
	packed := func(s *opstest.Stage, l opstest.Layout, ends ...float64) rope.FusedRopeArgs {
		t := int(ends[len(ends)-1])
		return rope.FusedRopeArgs{
			Input: s.In(l, d, t, 2, 8), Freqs: ropeAngles(s, 10, 32, 6), Output: s.Out(l, d, t, 2, 8),
			QKVFormat: attention.THD, CuSeqlens: s.Values(tensor.I32, ends...),
		}
	}
	for _, interleaved := range []bool{false, true} {
		add(fmt.Sprintf("thd/interleaved=%v", interleaved), func(s *opstest.Stage) rope.FusedRopeArgs {
			a := packed(s, opstest.Padded, 0, 3, 3, 8, 12)
			a.Interleaved = interleaved
			return a
		})
	}
	add("thd/empty", func(s *opstest.Stage) rope.FusedRopeArgs { return packed(s, opstest.Dense, 0, 0) })
	add("thd/start_positions", func(s *opstest.Stage) rope.FusedRopeArgs {
		a := packed(s, opstest.Dense, 0, 3, 8)
		a.StartPositions = s.Values(tensor.I32, 4, 1)
		return a
	})
	for rank := range 3 {
		add(fmt.Sprintf("context_parallel/rank%d_of_3", rank), func(s *opstest.Stage) rope.FusedRopeArgs {
			return rope.FusedRopeArgs{
				Input: s.In(opstest.Dense, d, 6, 2, 2, 8), Freqs: ropeAngles(s, 10, 18, 8), Output: s.Out(opstest.Dense, d, 6, 2, 2, 8),
				QKVFormat: attention.SBHD, CPSize: 3, CPRank: rank,
			}
		})
		add(fmt.Sprintf("thd/context_parallel/rank%d_of_3", rank), func(s *opstest.Stage) rope.FusedRopeArgs {
			a := packed(s, opstest.Dense, 0, 4, 10)
			a.CuSeqlens, a.CPSize, a.CPRank = s.Values(tensor.I32, 0, 12, 30), 3, rank
			return a
		})
	}
	add("large_angles", func(s *opstest.Stage) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{
			Input: s.In(opstest.Dense, d, 9, 1, 2, 32), Freqs: ropeAngles(s, 4096, 9, 32), Output: s.Out(opstest.Dense, d, 9, 1, 2, 32), QKVFormat: attention.SBHD,
		}
	})
	add("turned", func(s *opstest.Stage) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{
			Input: s.In(opstest.Turned, d, 4, 2, 3, 8), Freqs: ropeAngles(s, 10, 4, 8), Output: s.Out(opstest.Turned, d, 4, 2, 3, 8), QKVFormat: attention.SBHD,
		}
	})
	add("fused_projection", func(s *opstest.Stage) rope.FusedRopeArgs {
		p := s.Parts(true, d, []int{5, 2, 0, 8}, 2, 4, 2, 2)
		return rope.FusedRopeArgs{Input: p[1], Output: p[1], Freqs: ropeAngles(s, 10, 5, 8), QKVFormat: attention.SBHD}
	})
	add("nan_and_inf", func(s *opstest.Stage) rope.FusedRopeArgs {
		a := rope.FusedRopeArgs{
			Input: s.In(opstest.Dense, d, 4, 1, 2, 8), Freqs: ropeAngles(s, 10, 4, 6), Output: s.Out(opstest.Dense, d, 4, 1, 2, 8), QKVFormat: attention.SBHD,
		}
		a.Input.Set(math.NaN(), 1, 0, 1, 2)
		a.Input.Set(math.Inf(1), 2, 0, 1, 7)
		return a
	})
	return cases
}
