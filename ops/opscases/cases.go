package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/opstest"
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

func swigluCases(d tensor.DType) []opstest.Case[activation.SwiGLUArgs] {
	var cases []opstest.Case[activation.SwiGLUArgs]
	add := func(name string, make func(*opstest.Stage) activation.SwiGLUArgs) {
		cases = append(cases, opstest.Case[activation.SwiGLUArgs]{Name: name, Make: make})
	}
	for _, shape := range gluShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, scale := range []float64{1, 20} {
				add(fmt.Sprintf("%v/%v/scale=%v", tensor.Shape(shape), l, scale), func(s *opstest.Stage) activation.SwiGLUArgs {
					return activation.SwiGLUArgs{Input: s.Scaled(scale, l, d, wide(shape)...), Output: s.Out(l, d, shape...)}
				})
			}
		}
	}
	add("special_values", func(s *opstest.Stage) activation.SwiGLUArgs {
		x := s.In(opstest.Dense, d, 3, 16)
		for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 100, -100, 0} {
			x.Set(v, 1, i)
		}
		x.Set(math.Inf(1), 2, 8)
		x.Set(math.NaN(), 2, 9)
		return activation.SwiGLUArgs{Input: x, Output: s.Out(opstest.Dense, d, 3, 8)}
	})
	return cases
}

func dswigluCases(d tensor.DType) []opstest.Case[activation.DSwiGLUArgs] {
	var cases []opstest.Case[activation.DSwiGLUArgs]
	add := func(name string, make func(*opstest.Stage) activation.DSwiGLUArgs) {
		cases = append(cases, opstest.Case[activation.DSwiGLUArgs]{Name: name, Make: make})
	}
	for _, shape := range gluShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, scale := range []float64{1, 20} {
				add(fmt.Sprintf("%v/%v/scale=%v", tensor.Shape(shape), l, scale), func(s *opstest.Stage) activation.DSwiGLUArgs {
					return activation.DSwiGLUArgs{
						Grad: s.In(l, d, shape...), FwdInput: s.Scaled(scale, l, d, wide(shape)...), Output: s.Out(l, d, wide(shape)...),
					}
				})
			}
		}
	}
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		add("in_place/"+l.String(), func(s *opstest.Stage) activation.DSwiGLUArgs {
			x := s.In(l, d, 5, 34)
			return activation.DSwiGLUArgs{Grad: s.In(l, d, 5, 17), FwdInput: x, Output: x}
		})
	}
	add("special_values", func(s *opstest.Stage) activation.DSwiGLUArgs {
		x, dy := s.In(opstest.Dense, d, 3, 16), s.In(opstest.Dense, d, 3, 8)
		for i, v := range []float64{math.NaN(), 100, -100, 0} {
			x.Set(v, 1, i)
		}
		x.Set(math.NaN(), 2, 9)
		dy.Set(math.NaN(), 0, 3)
		dy.Set(math.Inf(1), 0, 4)
		return activation.DSwiGLUArgs{Grad: dy, FwdInput: x, Output: s.Out(opstest.Dense, d, 3, 16)}
	})
	return cases
}
