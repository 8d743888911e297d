package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// ropeAngles returns a table of angles in which every element is different, up to most. In training
// the two halves of a row are equal; an op must be right for any table.
func ropeAngles(s *stage, most float64, positions, d2 int) *tensor.Tensor {
	return s.scaled(most, dense, tensor.F32, positions, 1, 1, d2)
}

// ropeCases returns the cases of both directions.
func ropeCases(d tensor.DType) []testCase[rope.FusedRopeArgs] {
	var cases []testCase[rope.FusedRopeArgs]
	add := func(name string, make func(*stage) rope.FusedRopeArgs) {
		cases = append(cases, testCase[rope.FusedRopeArgs]{name, make})
	}
	shapes := []struct{ s, b, h, d, d2 int }{
		{1, 1, 1, 2, 2}, {5, 2, 3, 8, 8}, {7, 2, 3, 10, 4}, {33, 1, 2, 64, 64}, {6, 3, 1, 6, 6}, {4, 2, 2, 34, 34},
		{0, 2, 3, 8, 8}, {3, 0, 2, 8, 4}, {3, 2, 0, 8, 4},
	}
	for _, n := range shapes {
		for _, f := range []attention.QKVFormat{attention.SBHD, attention.BSHD} {
			for _, interleaved := range []bool{false, true} {
				for _, l := range []layout{dense, padded} {
					axes := []int{n.s, n.b, n.h, n.d}
					if f == attention.BSHD {
						axes[0], axes[1] = n.b, n.s
					}
					name := fmt.Sprintf("%v,d2=%d/%v/interleaved=%v/%v", tensor.Shape(axes), n.d2, f, interleaved, l)
					call := func(s *stage) rope.FusedRopeArgs {
						return rope.FusedRopeArgs{
							Input: s.in(l, d, axes...), Freqs: ropeAngles(s, 10, n.s+4, n.d2), Output: s.out(l, d, axes...),
							QKVFormat: f, Interleaved: interleaved,
						}
					}
					add(name, call)
					add(name+"/in_place", func(s *stage) rope.FusedRopeArgs {
						a := call(s)
						a.Output = a.Input
						return a
					})
					add(name+"/start_positions", func(s *stage) rope.FusedRopeArgs {
						a := call(s)
						starts := make([]float64, n.b)
						for i := range starts {
							starts[i] = float64((4 + 3*i) % 5)
						}
						a.StartPositions = s.values(tensor.I32, starts...)
						return a
					})
				}
			}
		}
	}
	for _, c := range ropePlaces(d) {
		add(c.name, c.make)
	}
	return cases
}

// ropePlaces returns the cases of packed sequences, context parallelism, large angles, odd layouts
// and NaN.
func ropePlaces(d tensor.DType) []testCase[rope.FusedRopeArgs] {
	var cases []testCase[rope.FusedRopeArgs]
	add := func(name string, make func(*stage) rope.FusedRopeArgs) {
		cases = append(cases, testCase[rope.FusedRopeArgs]{name, make})
	}
	packed := func(s *stage, l layout, ends ...float64) rope.FusedRopeArgs {
		t := int(ends[len(ends)-1])
		return rope.FusedRopeArgs{
			Input: s.in(l, d, t, 2, 8), Freqs: ropeAngles(s, 10, 32, 6), Output: s.out(l, d, t, 2, 8),
			QKVFormat: attention.THD, CuSeqlens: s.values(tensor.I32, ends...),
		}
	}
	for _, interleaved := range []bool{false, true} {
		add(fmt.Sprintf("thd/interleaved=%v", interleaved), func(s *stage) rope.FusedRopeArgs {
			a := packed(s, padded, 0, 3, 3, 8, 12)
			a.Interleaved = interleaved
			return a
		})
	}
	add("thd/empty", func(s *stage) rope.FusedRopeArgs { return packed(s, dense, 0, 0) })
	add("thd/start_positions", func(s *stage) rope.FusedRopeArgs {
		a := packed(s, dense, 0, 3, 8)
		a.StartPositions = s.values(tensor.I32, 4, 1)
		return a
	})
	for rank := range 3 {
		add(fmt.Sprintf("context_parallel/rank%d_of_3", rank), func(s *stage) rope.FusedRopeArgs {
			return rope.FusedRopeArgs{
				Input: s.in(dense, d, 6, 2, 2, 8), Freqs: ropeAngles(s, 10, 18, 8), Output: s.out(dense, d, 6, 2, 2, 8),
				QKVFormat: attention.SBHD, CPSize: 3, CPRank: rank,
			}
		})
		add(fmt.Sprintf("thd/context_parallel/rank%d_of_3", rank), func(s *stage) rope.FusedRopeArgs {
			a := packed(s, dense, 0, 4, 10)
			a.CuSeqlens, a.CPSize, a.CPRank = s.values(tensor.I32, 0, 12, 30), 3, rank
			return a
		})
	}
	add("large_angles", func(s *stage) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{
			Input: s.in(dense, d, 9, 1, 2, 32), Freqs: ropeAngles(s, 4096, 9, 32), Output: s.out(dense, d, 9, 1, 2, 32), QKVFormat: attention.SBHD,
		}
	})
	add("turned", func(s *stage) rope.FusedRopeArgs {
		return rope.FusedRopeArgs{
			Input: s.in(turned, d, 4, 2, 3, 8), Freqs: ropeAngles(s, 10, 4, 8), Output: s.out(turned, d, 4, 2, 3, 8), QKVFormat: attention.SBHD,
		}
	})
	add("fused_projection", func(s *stage) rope.FusedRopeArgs {
		p := s.parts(true, d, []int{5, 2, 0, 8}, 2, 4, 2, 2)
		return rope.FusedRopeArgs{Input: p[1], Output: p[1], Freqs: ropeAngles(s, 10, 5, 8), QKVFormat: attention.SBHD}
	})
	add("nan_and_inf", func(s *stage) rope.FusedRopeArgs {
		a := rope.FusedRopeArgs{
			Input: s.in(dense, d, 4, 1, 2, 8), Freqs: ropeAngles(s, 10, 4, 6), Output: s.out(dense, d, 4, 1, 2, 8), QKVFormat: attention.SBHD,
		}
		a.Input.Set(math.NaN(), 1, 0, 1, 2)
		a.Input.Set(math.Inf(1), 2, 0, 1, 7)
		return a
	})
	return cases
}
