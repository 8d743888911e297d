package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// layernormShapes are fewer than normShapes: each comes in every layout, with and without bias.
func layernormShapes() [][]int {
	return [][]int{{1, 1}, {3, 5}, {7, 129}, {2, 1024}, {0, 8}, {2, 3, 16}, {9}}
}

func layernormFwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.LayerNormFwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	return norm.LayerNormFwdArgs{
		Input:  s.In(l, d, shape...),
		Weight: s.In(opstest.Dense, d, cols),
		Bias:   s.In(opstest.Dense, d, cols),
		Output: s.Out(l, d, shape...),
		Mu:     s.Out(opstest.Dense, tensor.F32, rows),
		RSigma: s.Out(opstest.Dense, tensor.F32, rows),
		Eps:    normEps,
		Saved:  new(opregistry.Saved),
	}
}

func layernormFwdCases(d tensor.DType) []opstest.Case[norm.LayerNormFwdArgs] {
	type args = norm.LayerNormFwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, shape := range layernormShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *opstest.Stage) args { return layernormFwdArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := layernormFwdArgs(s, opstest.Dense, d, 4, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *opstest.Stage, a *args) { a.ZeroCenteredGamma = true })
	edit("no_bias", func(_ *opstest.Stage, a *args) { a.Bias = nil })
	edit("in_place", func(_ *opstest.Stage, a *args) { a.Output = a.Input })
	edit("some_heads", func(s *opstest.Stage, a *args) {
		*a = layernormFwdArgs(s, opstest.Dense, d, 2, 3, 4, 24)
		a.Input = someHeads(s, d)
		a.Output = a.Input
	})
	edit("strided_vectors", func(s *opstest.Stage, a *args) {
		a.Weight, a.Bias = s.In(opstest.Padded, d, 24), s.In(opstest.Padded, d, 24)
	})
	edit("weights_of_f32", func(s *opstest.Stage, a *args) {
		a.Weight, a.Bias = s.In(opstest.Dense, tensor.F32, 24), s.In(opstest.Dense, tensor.F32, 24)
	})
	edit("output_of_f32", func(s *opstest.Stage, a *args) { a.Output = s.Out(opstest.Dense, tensor.F32, 4, 24) })
	edit("large_eps", func(_ *opstest.Stage, a *args) { a.Eps = 0.5 })
	edit("small_values", func(s *opstest.Stage, a *args) { a.Input = s.Scaled(1e-3, opstest.Dense, d, 4, 24) })
	edit("mean_of_8", func(s *opstest.Stage, a *args) { s.Shift(a.Input, 8) })
	edit("row_of_equal_values", func(_ *opstest.Stage, a *args) {
		for i := range 24 {
			a.Input.Set(3, 2, i)
		}
	})
	edit("nan", func(_ *opstest.Stage, a *args) { a.Input.Set(math.NaN(), 1, 7) })
	edit("inf", func(_ *opstest.Stage, a *args) { a.Input.Set(math.Inf(-1), 1, 7) })
	return cases
}

// layernormBwdArgs makes the operands of a backward call with the mu and rsigma
// that the op's documentation defines.
func layernormBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.LayerNormBwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	a := norm.LayerNormBwdArgs{
		DZ:     s.In(l, d, shape...),
		X:      s.In(l, d, shape...),
		Mu:     s.Out(opstest.Dense, tensor.F32, rows),
		RSigma: s.Out(opstest.Dense, tensor.F32, rows),
		Gamma:  s.In(opstest.Dense, d, cols),
		DX:     s.Out(l, d, shape...),
		DGamma: s.Out(opstest.Dense, d, cols),
		DBeta:  s.Out(opstest.Dense, d, cols),
		Saved:  new(opregistry.Saved),
	}
	saveMoments(s, a)
	return a
}

func saveMoments(s *opstest.Stage, a norm.LayerNormBwdArgs) {
	s.T.Helper()
	x, cols := a.X.Float64s(), a.X.Shape().Cols()
	mu := make([]float64, a.X.Shape().Rows())
	rsigma := make([]float64, len(mu))
	for r := range mu {
		row := x[r*cols : (r+1)*cols]
		for _, v := range row {
			mu[r] += v / float64(cols)
		}
		for _, v := range row {
			rsigma[r] += (v - mu[r]) * (v - mu[r])
		}
		rsigma[r] = 1 / math.Sqrt(rsigma[r]/float64(cols)+float64(float32(normEps)))
	}
	s.Fill(a.Mu, mu)
	s.Fill(a.RSigma, rsigma)
}

// layernormRefresh replaces mu and rsigma by what a forward impl saves.
func layernormRefresh(t tensortest.TB, x *opregistry.Exec, a norm.LayerNormBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &opstest.Stage{T: t}
	return opstest.RunForward(t, x, norm.LayerNormFwd, forward, norm.LayerNormFwdArgs{
		Input: a.X, Weight: a.Gamma, Output: s.Out(opstest.Dense, a.X.DType(), a.X.Shape()...), Mu: a.Mu, RSigma: a.RSigma,
		Eps: normEps, ZeroCenteredGamma: a.ZeroCenteredGamma, Saved: a.Saved,
	})
}

func layernormBwdCases(d tensor.DType) []opstest.Case[norm.LayerNormBwdArgs] {
	type args = norm.LayerNormBwdArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, shape := range layernormShapes() {
		if len(shape) == 2 && shape[1] == 1 {
			continue // one value always equals its mean: rsigma is 1/√eps and magnifies every rounding
		}
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *opstest.Stage) args { return layernormBwdArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := layernormBwdArgs(s, opstest.Dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *opstest.Stage, a *args) { a.ZeroCenteredGamma = true })
	edit("no_bias", func(_ *opstest.Stage, a *args) { a.DBeta = nil })
	edit("in_place", func(_ *opstest.Stage, a *args) { a.DX = a.DZ })
	edit("some_heads", func(s *opstest.Stage, a *args) {
		*a = layernormBwdArgs(s, opstest.Dense, d, 2, 3, 4, 24)
		a.X, a.DZ, a.DX = someHeads(s, d), someHeads(s, d), someHeads(s, d)
		saveMoments(s, *a)
	})
	edit("strided_vectors", func(s *opstest.Stage, a *args) {
		a.Gamma, a.DGamma, a.DBeta = s.In(opstest.Padded, d, 24), s.Out(opstest.Padded, d, 24), s.Out(opstest.Padded, d, 24)
	})
	edit("weights_of_f32", func(s *opstest.Stage, a *args) {
		a.Gamma, a.DGamma, a.DBeta = s.In(opstest.Dense, tensor.F32, 24), s.Out(opstest.Dense, tensor.F32, 24), s.Out(opstest.Dense, tensor.F32, 24)
	})
	edit("dx_of_f32", func(s *opstest.Stage, a *args) { a.DX = s.Out(opstest.Dense, tensor.F32, 5, 24) })
	edit("many_rows", func(s *opstest.Stage, a *args) { *a = layernormBwdArgs(s, opstest.Dense, d, 67, 33) })
	edit("mean_of_8", func(s *opstest.Stage, a *args) {
		s.Shift(a.X, 8)
		saveMoments(s, *a)
	})
	edit("nan", func(_ *opstest.Stage, a *args) { a.DZ.Set(math.NaN(), 1, 7) })
	return cases
}

func rmsnormBwdAddArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.RMSNormBwdAddArgs {
	b := rmsnormBwdArgs(s, l, d, shape...)
	return norm.RMSNormBwdAddArgs{
		DZ: b.DZ, X: b.X, Add: s.In(l, d, shape...), RSigma: b.RSigma, Gamma: b.Gamma, DX: b.DX, DGamma: b.DGamma,
	}
}

func rmsnormBwdAddCases(d tensor.DType) []opstest.Case[norm.RMSNormBwdAddArgs] {
	type args = norm.RMSNormBwdAddArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, shape := range layernormShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *opstest.Stage) args { return rmsnormBwdAddArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := rmsnormBwdAddArgs(s, opstest.Dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *opstest.Stage, a *args) { a.ZeroCenteredGamma = true })
	edit("into_dz", func(_ *opstest.Stage, a *args) { a.DX = a.DZ })
	edit("into_add", func(_ *opstest.Stage, a *args) { a.DX = a.Add })
	edit("add_of_f32", func(s *opstest.Stage, a *args) { a.Add = s.In(opstest.Dense, tensor.F32, 5, 24) })
	edit("cancelled", func(s *opstest.Stage, a *args) {
		a.Add, a.DZ = s.Scaled(100, opstest.Dense, d, 5, 24), s.Scaled(0.01, opstest.Dense, d, 5, 24)
	})
	edit("nan", func(_ *opstest.Stage, a *args) { a.Add.Set(math.NaN(), 1, 7) })
	return cases
}
