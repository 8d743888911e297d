package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/tensor"
)

// functionShapes returns the shapes of an elementwise function, or of one half of a gated one, each
// with a layout. There are few, because the many such ops do not differ in how they go through
// memory.
func functionShapes() []struct {
	shape  []int
	layout layout
} {
	return []struct {
		shape  []int
		layout layout
	}{
		{[]int{1}, dense}, {[]int{3, 7}, padded}, {[]int{5, 64}, dense}, {[]int{33, 65}, dense}, {[]int{6, 9}, turned},
		{[]int{2, 3, 8}, padded}, {[]int{11}, padded}, {[]int{0, 4}, dense}, {[]int{3, 0}, dense},
	}
}

// functionScale is the magnitude of x: beyond it every function is a constant or a power, within
// the precision of f32.
const functionScale = 8

// specials returns values of x for which every function is defined.
func specials() []float64 { return []float64{math.NaN(), math.Inf(1), 100, -100, 0} }

func activationCases(d tensor.DType) []testCase[activation.ActivationArgs] {
	type args = activation.ActivationArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args {
			return args{Input: s.scaled(functionScale, f.layout, d, f.shape...), Output: s.out(f.layout, d, f.shape...)}
		})
	}
	add("scalar", func(s *stage) args { return args{Input: s.in(dense, d), Output: s.out(dense, d)} })
	add("small_values", func(s *stage) args { return args{Input: s.scaled(1e-2, dense, d, 4, 9), Output: s.out(dense, d, 4, 9)} })
	for _, l := range []layout{dense, padded} {
		add("in_place/"+l.String(), func(s *stage) args {
			x := s.scaled(functionScale, l, d, 5, 17)
			return args{Input: x, Output: x}
		})
	}
	add("mixed_layouts", func(s *stage) args {
		return args{Input: s.scaled(functionScale, turned, d, 6, 9), Output: s.out(padded, d, 6, 9)}
	})
	add("special_values", func(s *stage) args {
		return args{Input: s.values(d, append(specials(), math.Inf(-1))...), Output: s.out(dense, d, 6)}
	})
	return cases
}

func dactivationCases(d tensor.DType) []testCase[activation.DActivationArgs] {
	type args = activation.DActivationArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	call := func(s *stage, l layout, shape ...int) args {
		return args{Grad: s.in(l, d, shape...), FwdInput: s.scaled(functionScale, l, d, shape...), Output: s.out(l, d, shape...)}
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args { return call(s, f.layout, f.shape...) })
	}
	add("into_grad", func(s *stage) args {
		a := call(s, dense, 5, 17)
		a.Output = a.Grad
		return a
	})
	add("into_fwd_input", func(s *stage) args {
		a := call(s, padded, 5, 17)
		a.Output = a.FwdInput
		return a
	})
	add("special_values", func(s *stage) args {
		a := call(s, dense, 2, 9)
		s.special(a.Grad, a.FwdInput)
		return a
	})
	return cases
}

// special puts special values into the first two rows of a gradient and of x, but never into both
// at the same place. An infinite x is left out: derivatives are products that come near ∞·0 there.
func (s *stage) special(dy, x *tensor.Tensor) {
	s.t.Helper()
	for i, v := range []float64{math.NaN(), 100, -100, 0} {
		x.Set(v, 0, i)
	}
	dy.Set(math.NaN(), 1, 0)
	x.Set(-2, 1, 0)
	dy.Set(math.Inf(1), 1, 1)
	x.Set(2, 1, 1)
}

func dbiasCases(d tensor.DType) []testCase[activation.DBiasDActivationArgs] {
	type args = activation.DBiasDActivationArgs
	var cases []testCase[args]
	for _, c := range dactivationCases(d) {
		cases = append(cases, testCase[args]{c.name, func(s *stage) args {
			a := c.make(s)
			return args{Grad: a.Grad, FwdInput: a.FwdInput, DBias: s.out(dense, d, a.Grad.Shape().Cols()), Output: a.Output}
		}})
	}
	add := func(name string, dbias func(*stage) *tensor.Tensor) {
		cases = append(cases, testCase[args]{name, func(s *stage) args {
			return args{
				Grad: s.in(dense, d, 70, 6), FwdInput: s.scaled(functionScale, dense, d, 70, 6), DBias: dbias(s), Output: s.out(dense, d, 70, 6),
			}
		}})
	}
	add("many_rows", func(s *stage) *tensor.Tensor { return s.out(dense, d, 6) })
	add("strided_dbias", func(s *stage) *tensor.Tensor { return s.out(padded, d, 6) })
	add("dbias_of_f32", func(s *stage) *tensor.Tensor { return s.out(dense, tensor.F32, 6) })
	return cases
}

func gluCases(d tensor.DType) []testCase[activation.ActivationArgs] {
	type args = activation.ActivationArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args {
			return args{Input: s.scaled(functionScale, f.layout, d, wide(f.shape)...), Output: s.out(f.layout, d, f.shape...)}
		})
	}
	add("special_values", func(s *stage) args {
		x := s.in(dense, d, 3, 16)
		for i, v := range append(specials(), math.Inf(-1)) {
			x.Set(v, 1, i)
		}
		x.Set(math.Inf(1), 2, 8)
		x.Set(math.NaN(), 2, 9)
		return args{Input: x, Output: s.out(dense, d, 3, 8)}
	})
	return cases
}

func dgluCases(d tensor.DType) []testCase[activation.DActivationArgs] {
	type args = activation.DActivationArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	call := func(s *stage, l layout, half ...int) args {
		return args{Grad: s.in(l, d, half...), FwdInput: s.scaled(functionScale, l, d, wide(half)...), Output: s.out(l, d, wide(half)...)}
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *stage) args { return call(s, f.layout, f.shape...) })
	}
	for _, l := range []layout{dense, padded} {
		add("in_place/"+l.String(), func(s *stage) args {
			a := call(s, l, 5, 17)
			a.Output = a.FwdInput
			return a
		})
	}
	add("special_values", func(s *stage) args {
		a := call(s, dense, 3, 8)
		s.special(a.Grad, a.FwdInput)
		a.FwdInput.Set(math.NaN(), 2, 9)
		return a
	})
	return cases
}

// clampConstants are settings of the clamped ops.
func clampConstants() []struct {
	name                 string
	limit, alpha, offset opregistry.OptionalFloat
} {
	var left opregistry.OptionalFloat
	return []struct {
		name                 string
		limit, alpha, offset opregistry.OptionalFloat
	}{
		{"defaults", left, left, left},
		{"limit=1", opregistry.Float(1), left, left},
		{"limit=0", opregistry.Float(0), left, left},
		{"limit=inf", opregistry.Float(float32(math.Inf(1))), left, left},
		{"alpha=1,offset=0", left, opregistry.Float(1), opregistry.Float(0)},
		{"alpha=-0.5,offset=-2", left, opregistry.Float(-0.5), opregistry.Float(-2)},
	}
}

// bounds puts the bounds of the clamped ops, and their neighbours, into the first row of x.
func (s *stage) bounds(x *tensor.Tensor) {
	s.t.Helper()
	half := x.Shape().Cols() / 2
	for i, v := range []float64{7, 7.0625, -7, -7.0625} {
		x.Set(v, 0, i)
		x.Set(v, 0, half+i)
	}
}

func clampedSwiGLUCases(d tensor.DType) []testCase[activation.ClampedSwiGLUArgs] {
	type args = activation.ClampedSwiGLUArgs
	var cases []testCase[args]
	for _, c := range gluCases(d) {
		cases = append(cases, testCase[args]{c.name, func(s *stage) args {
			a := c.make(s)
			return args{Input: a.Input, Output: a.Output}
		}})
	}
	for _, c := range clampConstants() {
		cases = append(cases, testCase[args]{c.name, func(s *stage) args {
			x := s.scaled(functionScale, dense, d, 4, 22)
			s.bounds(x)
			return args{Input: x, Output: s.out(dense, d, 4, 11), Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}
		}})
	}
	return cases
}

func clampedDSwiGLUCases(d tensor.DType) []testCase[activation.ClampedDSwiGLUArgs] {
	type args = activation.ClampedDSwiGLUArgs
	var cases []testCase[args]
	for _, c := range dgluCases(d) {
		cases = append(cases, testCase[args]{c.name, func(s *stage) args {
			a := c.make(s)
			return args{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output}
		}})
	}
	for _, c := range clampConstants() {
		cases = append(cases, testCase[args]{c.name, func(s *stage) args {
			x := s.scaled(functionScale, dense, d, 4, 22)
			s.bounds(x)
			return args{
				Grad: s.in(dense, d, 4, 11), FwdInput: x, Output: s.out(dense, d, 4, 22),
				Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset,
			}
		}})
	}
	return cases
}
