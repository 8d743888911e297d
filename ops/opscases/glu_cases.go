package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// functionShapes returns the shapes of an elementwise function, or of one half of a gated one, each
// with a layout. There are few, because the many such ops do not differ in how they go through
// memory.
func functionShapes() []struct {
	shape  []int
	layout opstest.Layout
} {
	return []struct {
		shape  []int
		layout opstest.Layout
	}{
		{[]int{1}, opstest.Dense}, {[]int{3, 7}, opstest.Padded}, {[]int{5, 64}, opstest.Dense}, {[]int{33, 65}, opstest.Dense}, {[]int{6, 9}, opstest.Turned},
		{[]int{2, 3, 8}, opstest.Padded}, {[]int{11}, opstest.Padded}, {[]int{0, 4}, opstest.Dense}, {[]int{3, 0}, opstest.Dense},
	}
}

// functionScale is the magnitude of x: beyond it every function is a constant or a power, within
// the precision of f32.
const functionScale = 8

// specials returns values of x for which every function is defined.
func specials() []float64 { return []float64{math.NaN(), math.Inf(1), 100, -100, 0} }

func activationCases(d tensor.DType) []opstest.Case[activation.ActivationArgs] {
	type args = activation.ActivationArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args {
			return args{Input: s.Scaled(functionScale, f.layout, d, f.shape...), Output: s.Out(f.layout, d, f.shape...)}
		})
	}
	add("scalar", func(s *opstest.Stage) args {
		return args{Input: s.In(opstest.Dense, d), Output: s.Out(opstest.Dense, d)}
	})
	add("small_values", func(s *opstest.Stage) args {
		return args{Input: s.Scaled(1e-2, opstest.Dense, d, 4, 9), Output: s.Out(opstest.Dense, d, 4, 9)}
	})
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		add("in_place/"+l.String(), func(s *opstest.Stage) args {
			x := s.Scaled(functionScale, l, d, 5, 17)
			return args{Input: x, Output: x}
		})
	}
	add("mixed_layouts", func(s *opstest.Stage) args {
		return args{Input: s.Scaled(functionScale, opstest.Turned, d, 6, 9), Output: s.Out(opstest.Padded, d, 6, 9)}
	})
	add("special_values", func(s *opstest.Stage) args {
		return args{Input: s.Values(d, append(specials(), math.Inf(-1))...), Output: s.Out(opstest.Dense, d, 6)}
	})
	return cases
}

func dactivationCases(d tensor.DType) []opstest.Case[activation.DActivationArgs] {
	type args = activation.DActivationArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	call := func(s *opstest.Stage, l opstest.Layout, shape ...int) args {
		return args{Grad: s.In(l, d, shape...), FwdInput: s.Scaled(functionScale, l, d, shape...), Output: s.Out(l, d, shape...)}
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args { return call(s, f.layout, f.shape...) })
	}
	add("into_grad", func(s *opstest.Stage) args {
		a := call(s, opstest.Dense, 5, 17)
		a.Output = a.Grad
		return a
	})
	add("into_fwd_input", func(s *opstest.Stage) args {
		a := call(s, opstest.Padded, 5, 17)
		a.Output = a.FwdInput
		return a
	})
	add("special_values", func(s *opstest.Stage) args {
		a := call(s, opstest.Dense, 2, 9)
		special(s, a.Grad, a.FwdInput)
		return a
	})
	return cases
}

// special puts special values into the first two rows of a gradient and of x, but never into both
// at the same place. An infinite x is left out: derivatives are products that come near ∞·0 there.
func special(s *opstest.Stage, dy, x *tensor.Tensor) {
	s.T.Helper()
	for i, v := range []float64{math.NaN(), 100, -100, 0} {
		x.Set(v, 0, i)
	}
	dy.Set(math.NaN(), 1, 0)
	x.Set(-2, 1, 0)
	dy.Set(math.Inf(1), 1, 1)
	x.Set(2, 1, 1)
}

func dbiasCases(d tensor.DType) []opstest.Case[activation.DBiasDActivationArgs] {
	type args = activation.DBiasDActivationArgs
	var cases []opstest.Case[args]
	for _, c := range dactivationCases(d) {
		cases = append(cases, opstest.Case[args]{Name: c.Name, Make: func(s *opstest.Stage) args {
			a := c.Make(s)
			return args{Grad: a.Grad, FwdInput: a.FwdInput, DBias: s.Out(opstest.Dense, d, a.Grad.Shape().Cols()), Output: a.Output}
		}})
	}
	add := func(name string, dbias func(*opstest.Stage) *tensor.Tensor) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: func(s *opstest.Stage) args {
			return args{
				Grad: s.In(opstest.Dense, d, 70, 6), FwdInput: s.Scaled(functionScale, opstest.Dense, d, 70, 6), DBias: dbias(s), Output: s.Out(opstest.Dense, d, 70, 6),
			}
		}})
	}
	add("many_rows", func(s *opstest.Stage) *tensor.Tensor { return s.Out(opstest.Dense, d, 6) })
	add("strided_dbias", func(s *opstest.Stage) *tensor.Tensor { return s.Out(opstest.Padded, d, 6) })
	add("dbias_of_f32", func(s *opstest.Stage) *tensor.Tensor { return s.Out(opstest.Dense, tensor.F32, 6) })
	return cases
}

func gluCases(d tensor.DType) []opstest.Case[activation.ActivationArgs] {
	type args = activation.ActivationArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args {
			return args{Input: s.Scaled(functionScale, f.layout, d, wide(f.shape)...), Output: s.Out(f.layout, d, f.shape...)}
		})
	}
	add("special_values", func(s *opstest.Stage) args {
		x := s.In(opstest.Dense, d, 3, 16)
		for i, v := range append(specials(), math.Inf(-1)) {
			x.Set(v, 1, i)
		}
		x.Set(math.Inf(1), 2, 8)
		x.Set(math.NaN(), 2, 9)
		return args{Input: x, Output: s.Out(opstest.Dense, d, 3, 8)}
	})
	return cases
}

func dgluCases(d tensor.DType) []opstest.Case[activation.DActivationArgs] {
	type args = activation.DActivationArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	call := func(s *opstest.Stage, l opstest.Layout, half ...int) args {
		return args{Grad: s.In(l, d, half...), FwdInput: s.Scaled(functionScale, l, d, wide(half)...), Output: s.Out(l, d, wide(half)...)}
	}
	for _, f := range functionShapes() {
		add(fmt.Sprintf("%v/%v", tensor.Shape(f.shape), f.layout), func(s *opstest.Stage) args { return call(s, f.layout, f.shape...) })
	}
	for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
		add("in_place/"+l.String(), func(s *opstest.Stage) args {
			a := call(s, l, 5, 17)
			a.Output = a.FwdInput
			return a
		})
	}
	add("special_values", func(s *opstest.Stage) args {
		a := call(s, opstest.Dense, 3, 8)
		special(s, a.Grad, a.FwdInput)
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
func bounds(s *opstest.Stage, x *tensor.Tensor) {
	s.T.Helper()
	half := x.Shape().Cols() / 2
	for i, v := range []float64{7, 7.0625, -7, -7.0625} {
		x.Set(v, 0, i)
		x.Set(v, 0, half+i)
	}
}

func clampedSwiGLUCases(d tensor.DType) []opstest.Case[activation.ClampedSwiGLUArgs] {
	type args = activation.ClampedSwiGLUArgs
	var cases []opstest.Case[args]
	for _, c := range gluCases(d) {
		cases = append(cases, opstest.Case[args]{Name: c.Name, Make: func(s *opstest.Stage) args {
			a := c.Make(s)
			return args{Input: a.Input, Output: a.Output}
		}})
	}
	for _, c := range clampConstants() {
		cases = append(cases, opstest.Case[args]{Name: c.name, Make: func(s *opstest.Stage) args {
			x := s.Scaled(functionScale, opstest.Dense, d, 4, 22)
			bounds(s, x)
			return args{Input: x, Output: s.Out(opstest.Dense, d, 4, 11), Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset}
		}})
	}
	return cases
}

func clampedDSwiGLUCases(d tensor.DType) []opstest.Case[activation.ClampedDSwiGLUArgs] {
	type args = activation.ClampedDSwiGLUArgs
	var cases []opstest.Case[args]
	for _, c := range dgluCases(d) {
		cases = append(cases, opstest.Case[args]{Name: c.Name, Make: func(s *opstest.Stage) args {
			a := c.Make(s)
			return args{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output}
		}})
	}
	for _, c := range clampConstants() {
		cases = append(cases, opstest.Case[args]{Name: c.name, Make: func(s *opstest.Stage) args {
			x := s.Scaled(functionScale, opstest.Dense, d, 4, 22)
			bounds(s, x)
			return args{
				Grad: s.In(opstest.Dense, d, 4, 11), FwdInput: x, Output: s.Out(opstest.Dense, d, 4, 22),
				Limit: c.limit, Alpha: c.alpha, GLULinearOffset: c.offset,
			}
		}})
	}
	return cases
}

// softcapLimits are limits below and above the values of the cases.
func softcapLimits() []float32 { return []float32{0.25, 2, 30} }

func softcapCases(d tensor.DType) []opstest.Case[activation.SoftcapArgs] {
	type args = activation.SoftcapArgs
	var cases []opstest.Case[args]
	for _, c := range activationCases(d) {
		for _, limit := range softcapLimits() {
			cases = append(cases, opstest.Case[args]{Name: fmt.Sprintf("%s/limit=%v", c.Name, limit), Make: func(s *opstest.Stage) args {
				a := c.Make(s)
				return args{Input: a.Input, Output: a.Output, Limit: limit}
			}})
		}
	}
	return cases
}

func dsoftcapCases(d tensor.DType) []opstest.Case[activation.DSoftcapArgs] {
	type args = activation.DSoftcapArgs
	var cases []opstest.Case[args]
	for _, c := range dactivationCases(d) {
		for _, limit := range softcapLimits() {
			cases = append(cases, opstest.Case[args]{Name: fmt.Sprintf("%s/limit=%v", c.Name, limit), Make: func(s *opstest.Stage) args {
				a := c.Make(s)
				return args{Grad: a.Grad, FwdInput: a.FwdInput, Output: a.Output, Limit: limit}
			}})
		}
	}
	return cases
}
