package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// layernormShapes are fewer than normShapes: each comes in every layout, with and without bias.
func layernormShapes() [][]int {
	return [][]int{{1, 1}, {3, 5}, {7, 129}, {2, 1024}, {0, 8}, {2, 3, 16}, {9}}
}

func layernormFwdArgs(s *stage, l layout, d tensor.DType, shape ...int) norm.LayerNormFwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	return norm.LayerNormFwdArgs{
		Input:  s.in(l, d, shape...),
		Weight: s.in(dense, d, cols),
		Bias:   s.in(dense, d, cols),
		Output: s.out(l, d, shape...),
		Mu:     s.out(dense, tensor.F32, rows),
		RSigma: s.out(dense, tensor.F32, rows),
		Eps:    normEps,
		Saved:  new(opregistry.Saved),
	}
}

func layernormFwdCases(d tensor.DType) []testCase[norm.LayerNormFwdArgs] {
	type args = norm.LayerNormFwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, shape := range layernormShapes() {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *stage) args { return layernormFwdArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := layernormFwdArgs(s, dense, d, 4, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *stage, a *args) { a.ZeroCenteredGamma = true })
	edit("no_bias", func(_ *stage, a *args) { a.Bias = nil })
	edit("in_place", func(_ *stage, a *args) { a.Output = a.Input })
	edit("strided_vectors", func(s *stage, a *args) { a.Weight, a.Bias = s.in(padded, d, 24), s.in(padded, d, 24) })
	edit("weights_of_f32", func(s *stage, a *args) { a.Weight, a.Bias = s.in(dense, tensor.F32, 24), s.in(dense, tensor.F32, 24) })
	edit("output_of_f32", func(s *stage, a *args) { a.Output = s.out(dense, tensor.F32, 4, 24) })
	edit("large_eps", func(_ *stage, a *args) { a.Eps = 0.5 })
	edit("small_values", func(s *stage, a *args) { a.Input = s.scaled(1e-3, dense, d, 4, 24) })
	edit("mean_of_8", func(s *stage, a *args) { s.shift(a.Input, 8) })
	edit("row_of_equal_values", func(_ *stage, a *args) {
		for i := range 24 {
			a.Input.Set(3, 2, i)
		}
	})
	edit("nan", func(_ *stage, a *args) { a.Input.Set(math.NaN(), 1, 7) })
	edit("inf", func(_ *stage, a *args) { a.Input.Set(math.Inf(-1), 1, 7) })
	return cases
}

// shift adds v to every element.
func (s *stage) shift(x *tensor.Tensor, v float64) {
	s.t.Helper()
	values := x.Float64s()
	for i := range values {
		values[i] += v
	}
	s.fill(x, values)
}

// layernormBwdArgs makes the operands of a backward call with the mu and rsigma
// that the op's documentation defines.
func layernormBwdArgs(s *stage, l layout, d tensor.DType, shape ...int) norm.LayerNormBwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	a := norm.LayerNormBwdArgs{
		DZ:     s.in(l, d, shape...),
		X:      s.in(l, d, shape...),
		Mu:     s.out(dense, tensor.F32, rows),
		RSigma: s.out(dense, tensor.F32, rows),
		Gamma:  s.in(dense, d, cols),
		DX:     s.out(l, d, shape...),
		DGamma: s.out(dense, d, cols),
		DBeta:  s.out(dense, d, cols),
		Saved:  new(opregistry.Saved),
	}
	s.saveMoments(a)
	return a
}

func (s *stage) saveMoments(a norm.LayerNormBwdArgs) {
	s.t.Helper()
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
	s.fill(a.Mu, mu)
	s.fill(a.RSigma, rsigma)
}

// layernormRefresh replaces mu and rsigma by what a forward impl saves.
func layernormRefresh(t tensortest.TB, x *opregistry.Exec, a norm.LayerNormBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &stage{t: t}
	return save(t, x, norm.LayerNormFwd, forward, norm.LayerNormFwdArgs{
		Input: a.X, Weight: a.Gamma, Output: s.out(dense, a.X.DType(), a.X.Shape()...), Mu: a.Mu, RSigma: a.RSigma,
		Eps: normEps, ZeroCenteredGamma: a.ZeroCenteredGamma, Saved: a.Saved,
	})
}

func layernormBwdCases(d tensor.DType) []testCase[norm.LayerNormBwdArgs] {
	type args = norm.LayerNormBwdArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, shape := range layernormShapes() {
		if len(shape) == 2 && shape[1] == 1 {
			continue // one value always equals its mean: rsigma is 1/√eps and magnifies every rounding
		}
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *stage) args { return layernormBwdArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := layernormBwdArgs(s, dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *stage, a *args) { a.ZeroCenteredGamma = true })
	edit("no_bias", func(_ *stage, a *args) { a.DBeta = nil })
	edit("in_place", func(_ *stage, a *args) { a.DX = a.DZ })
	edit("strided_vectors", func(s *stage, a *args) {
		a.Gamma, a.DGamma, a.DBeta = s.in(padded, d, 24), s.out(padded, d, 24), s.out(padded, d, 24)
	})
	edit("weights_of_f32", func(s *stage, a *args) {
		a.Gamma, a.DGamma, a.DBeta = s.in(dense, tensor.F32, 24), s.out(dense, tensor.F32, 24), s.out(dense, tensor.F32, 24)
	})
	edit("dx_of_f32", func(s *stage, a *args) { a.DX = s.out(dense, tensor.F32, 5, 24) })
	edit("many_rows", func(s *stage, a *args) { *a = layernormBwdArgs(s, dense, d, 67, 33) })
	edit("mean_of_8", func(s *stage, a *args) {
		s.shift(a.X, 8)
		s.saveMoments(*a)
	})
	edit("nan", func(_ *stage, a *args) { a.DZ.Set(math.NaN(), 1, 7) })
	return cases
}

func rmsnormBwdAddArgs(s *stage, l layout, d tensor.DType, shape ...int) norm.RMSNormBwdAddArgs {
	b := rmsnormBwdArgs(s, l, d, shape...)
	return norm.RMSNormBwdAddArgs{
		DZ: b.DZ, X: b.X, Add: s.in(l, d, shape...), RSigma: b.RSigma, Gamma: b.Gamma, DX: b.DX, DGamma: b.DGamma,
	}
}

func rmsnormBwdAddCases(d tensor.DType) []testCase[norm.RMSNormBwdAddArgs] {
	type args = norm.RMSNormBwdAddArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, shape := range layernormShapes() {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *stage) args { return rmsnormBwdAddArgs(s, l, d, shape...) })
		}
	}
	edit := func(name string, change func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := rmsnormBwdAddArgs(s, dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("zero_centered", func(_ *stage, a *args) { a.ZeroCenteredGamma = true })
	edit("into_dz", func(_ *stage, a *args) { a.DX = a.DZ })
	edit("into_add", func(_ *stage, a *args) { a.DX = a.Add })
	edit("add_of_f32", func(s *stage, a *args) { a.Add = s.in(dense, tensor.F32, 5, 24) })
	edit("cancelled", func(s *stage, a *args) { a.Add, a.DZ = s.scaled(100, dense, d, 5, 24), s.scaled(0.01, dense, d, 5, 24) })
	edit("nan", func(_ *stage, a *args) { a.Add.Set(math.NaN(), 1, 7) })
	return cases
}
