package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

const normEps = 1e-5

func normShapes() [][]int {
	return [][]int{{1, 1}, {3, 5}, {4, 64}, {7, 129}, {67, 33}, {2, 1024}, {0, 8}, {2, 3, 16}, {9}, {2, 0, 4}}
}

func rmsnormFwdArgs(s *stage, l layout, d tensor.DType, shape ...int) norm.RMSNormFwdArgs {
	return norm.RMSNormFwdArgs{
		Input:  s.in(l, d, shape...),
		Weight: s.in(dense, d, tensor.Shape(shape).Cols()),
		Output: s.out(l, d, shape...),
		RSigma: s.out(dense, tensor.F32, tensor.Shape(shape).Rows()),
		Eps:    normEps,
		Saved:  new(opregistry.Saved),
	}
}

func rmsnormFwdCases(d tensor.DType) []testCase[norm.RMSNormFwdArgs] {
	var cases []testCase[norm.RMSNormFwdArgs]
	add := func(name string, make func(*stage) norm.RMSNormFwdArgs) {
		cases = append(cases, testCase[norm.RMSNormFwdArgs]{name, make})
	}
	for _, shape := range normShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, zero := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/zero_centered=%v", tensor.Shape(shape), l, zero), func(s *stage) norm.RMSNormFwdArgs {
					a := rmsnormFwdArgs(s, l, d, shape...)
					a.ZeroCenteredGamma = zero
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*stage, *norm.RMSNormFwdArgs)) {
		add(name, func(s *stage) norm.RMSNormFwdArgs {
			a := rmsnormFwdArgs(s, dense, d, 4, 24)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *stage, a *norm.RMSNormFwdArgs) { a.Output = a.Input })
	edit("in_place/padded", func(s *stage, a *norm.RMSNormFwdArgs) {
		a.Input = s.in(padded, d, 4, 24)
		a.Output = a.Input
	})
	edit("strided_weight", func(s *stage, a *norm.RMSNormFwdArgs) { a.Weight = s.in(padded, d, 24) })
	edit("weight_of_f32", func(s *stage, a *norm.RMSNormFwdArgs) { a.Weight = s.in(dense, tensor.F32, 24) })
	edit("output_of_f32", func(s *stage, a *norm.RMSNormFwdArgs) { a.Output = s.out(dense, tensor.F32, 4, 24) })
	edit("large_eps", func(_ *stage, a *norm.RMSNormFwdArgs) { a.Eps = 0.5 })
	edit("small_values", func(s *stage, a *norm.RMSNormFwdArgs) { a.Input = s.scaled(1e-3, dense, d, 4, 24) })
	edit("large_values", func(s *stage, a *norm.RMSNormFwdArgs) { a.Input = s.scaled(1e4, dense, d, 4, 24) })
	edit("row_of_zeros", func(_ *stage, a *norm.RMSNormFwdArgs) {
		for i := range 24 {
			a.Input.Set(0, 2, i)
		}
	})
	edit("nan", func(_ *stage, a *norm.RMSNormFwdArgs) { a.Input.Set(math.NaN(), 1, 7) })
	edit("inf", func(_ *stage, a *norm.RMSNormFwdArgs) { a.Input.Set(math.Inf(-1), 1, 7) })
	return cases
}

// rmsnormBwdArgs makes the operands of a backward call with the rsigma that the
// op's documentation defines.
func rmsnormBwdArgs(s *stage, l layout, d tensor.DType, shape ...int) norm.RMSNormBwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	a := norm.RMSNormBwdArgs{
		DZ:     s.in(l, d, shape...),
		X:      s.in(l, d, shape...),
		RSigma: s.out(dense, tensor.F32, rows),
		Gamma:  s.in(dense, d, cols),
		DX:     s.out(l, d, shape...),
		DGamma: s.out(dense, d, cols),
		Saved:  new(opregistry.Saved),
	}
	s.saveRSigma(a)
	return a
}

func (s *stage) saveRSigma(a norm.RMSNormBwdArgs) {
	x, cols := a.X.Float64s(), a.X.Shape().Cols()
	rsigma := make([]float64, a.X.Shape().Rows())
	for r := range rsigma {
		sum := 0.0
		for _, v := range x[r*cols : (r+1)*cols] {
			sum += v * v
		}
		rsigma[r] = 1 / math.Sqrt(sum/float64(cols)+float64(float32(normEps)))
	}
	s.fill(a.RSigma, rsigma)
}

// rmsnormRefresh replaces rsigma by what a forward impl saves.
func rmsnormRefresh(t tensortest.TB, x *opregistry.Exec, a norm.RMSNormBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &stage{t: t}
	return save(t, x, norm.RMSNormFwd, forward, norm.RMSNormFwdArgs{
		Input: a.X, Weight: a.Gamma, Output: s.out(dense, a.X.DType(), a.X.Shape()...), RSigma: a.RSigma,
		Eps: normEps, ZeroCenteredGamma: a.ZeroCenteredGamma, Saved: a.Saved,
	})
}

func rmsnormBwdCases(d tensor.DType) []testCase[norm.RMSNormBwdArgs] {
	var cases []testCase[norm.RMSNormBwdArgs]
	add := func(name string, make func(*stage) norm.RMSNormBwdArgs) {
		cases = append(cases, testCase[norm.RMSNormBwdArgs]{name, make})
	}
	for _, shape := range normShapes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, zero := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/zero_centered=%v", tensor.Shape(shape), l, zero), func(s *stage) norm.RMSNormBwdArgs {
					a := rmsnormBwdArgs(s, l, d, shape...)
					a.ZeroCenteredGamma = zero
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*stage, *norm.RMSNormBwdArgs)) {
		add(name, func(s *stage) norm.RMSNormBwdArgs {
			a := rmsnormBwdArgs(s, dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *stage, a *norm.RMSNormBwdArgs) { a.DX = a.DZ })
	edit("strided_vectors", func(s *stage, a *norm.RMSNormBwdArgs) {
		a.Gamma, a.DGamma = s.in(padded, d, 24), s.out(padded, d, 24)
	})
	edit("weights_of_f32", func(s *stage, a *norm.RMSNormBwdArgs) {
		a.Gamma, a.DGamma = s.in(dense, tensor.F32, 24), s.out(dense, tensor.F32, 24)
	})
	edit("dx_of_f32", func(s *stage, a *norm.RMSNormBwdArgs) { a.DX = s.out(dense, tensor.F32, 5, 24) })
	edit("row_of_zeros", func(s *stage, a *norm.RMSNormBwdArgs) {
		for i := range 24 {
			a.X.Set(0, 2, i)
		}
		s.saveRSigma(*a)
	})
	edit("nan", func(s *stage, a *norm.RMSNormBwdArgs) { a.DZ.Set(math.NaN(), 1, 7) })
	return cases
}
