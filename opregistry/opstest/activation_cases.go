package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// gluShapes returns shapes of one half: the input's last axis is twice as long.
func gluShapes() [][]int {
	return [][]int{{1, 1}, {3, 7}, {5, 64}, {2, 1000}, {33, 65}, {0, 4}, {3, 0}, {2, 3, 8}, {11}}
}

func wide(half []int) []int {
	out := append([]int(nil), half...)
	out[len(out)-1] *= 2
	return out
}

func swigluCases(d tensor.DType) []testCase[activation.SwiGLUArgs] {
	var cases []testCase[activation.SwiGLUArgs]
	add := func(name string, make func(*stage) activation.SwiGLUArgs) {
		cases = append(cases, testCase[activation.SwiGLUArgs]{name, make})
	}
	for _, shape := range gluShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, scale := range []float64{1, 20} {
				add(fmt.Sprintf("%v/%v/scale=%v", tensor.Shape(shape), l, scale), func(s *stage) activation.SwiGLUArgs {
					return activation.SwiGLUArgs{Input: s.scaled(scale, l, d, wide(shape)...), Output: s.out(l, d, shape...)}
				})
			}
		}
	}
	add("special_values", func(s *stage) activation.SwiGLUArgs {
		x := s.in(dense, d, 3, 16)
		for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 100, -100, 0} {
			x.Set(v, 1, i)
		}
		x.Set(math.Inf(1), 2, 8)
		x.Set(math.NaN(), 2, 9)
		return activation.SwiGLUArgs{Input: x, Output: s.out(dense, d, 3, 8)}
	})
	return cases
}

func dswigluCases(d tensor.DType) []testCase[activation.DSwiGLUArgs] {
	var cases []testCase[activation.DSwiGLUArgs]
	add := func(name string, make func(*stage) activation.DSwiGLUArgs) {
		cases = append(cases, testCase[activation.DSwiGLUArgs]{name, make})
	}
	for _, shape := range gluShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, scale := range []float64{1, 20} {
				add(fmt.Sprintf("%v/%v/scale=%v", tensor.Shape(shape), l, scale), func(s *stage) activation.DSwiGLUArgs {
					return activation.DSwiGLUArgs{
						Grad: s.in(l, d, shape...), FwdInput: s.scaled(scale, l, d, wide(shape)...), Output: s.out(l, d, wide(shape)...),
					}
				})
			}
		}
	}
	for _, l := range []layout{dense, padded} {
		add("in_place/"+l.String(), func(s *stage) activation.DSwiGLUArgs {
			x := s.in(l, d, 5, 34)
			return activation.DSwiGLUArgs{Grad: s.in(l, d, 5, 17), FwdInput: x, Output: x}
		})
	}
	add("special_values", func(s *stage) activation.DSwiGLUArgs {
		x, dy := s.in(dense, d, 3, 16), s.in(dense, d, 3, 8)
		for i, v := range []float64{math.NaN(), 100, -100, 0} {
			x.Set(v, 1, i)
		}
		x.Set(math.NaN(), 2, 9)
		dy.Set(math.NaN(), 0, 3)
		dy.Set(math.Inf(1), 0, 4)
		return activation.DSwiGLUArgs{Grad: dy, FwdInput: x, Output: s.out(dense, d, 3, 16)}
	})
	return cases
}

func residualAddCases(d tensor.DType) []testCase[norm.ResidualAddArgs] {
	var cases []testCase[norm.ResidualAddArgs]
	add := func(name string, make func(*stage) norm.ResidualAddArgs) {
		cases = append(cases, testCase[norm.ResidualAddArgs]{name, make})
	}
	for _, shape := range [][]int{{}, {1}, {7}, {0}, {3, 5}, {2, 3, 17}, {9, 33}, {2, 0, 3}} {
		for _, l := range []layout{dense, padded, turned} {
			make := func(s *stage) norm.ResidualAddArgs {
				return norm.ResidualAddArgs{A: s.in(l, d, shape...), B: s.in(l, d, shape...), Output: s.out(l, d, shape...)}
			}
			name := fmt.Sprintf("%v/%v", tensor.Shape(shape), l)
			add(name, make)
			add(name+"/into_a", func(s *stage) norm.ResidualAddArgs {
				a := make(s)
				a.Output = a.A
				return a
			})
			add(name+"/into_b", func(s *stage) norm.ResidualAddArgs {
				a := make(s)
				a.Output = a.B
				return a
			})
		}
	}
	add("large", func(s *stage) norm.ResidualAddArgs {
		return norm.ResidualAddArgs{A: s.in(dense, d, 65, 129), B: s.in(dense, d, 65, 129), Output: s.out(dense, d, 65, 129)}
	})
	add("one_tensor_thrice", func(s *stage) norm.ResidualAddArgs {
		x := s.in(dense, d, 9)
		return norm.ResidualAddArgs{A: x, B: x, Output: x}
	})
	add("mixed_layouts", func(s *stage) norm.ResidualAddArgs {
		return norm.ResidualAddArgs{A: s.in(dense, d, 6, 9), B: s.in(turned, d, 6, 9), Output: s.out(padded, d, 6, 9)}
	})
	add("special_values", func(s *stage) norm.ResidualAddArgs {
		inf, nan := math.Inf(1), math.NaN()
		return norm.ResidualAddArgs{
			A: s.values(d, inf, inf, -inf, nan, 1, 0), B: s.values(d, 1, -inf, -inf, 1, nan, 0), Output: s.out(dense, d, 6),
		}
	})
	return cases
}
