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

const normEps = 1e-5

func normShapes() [][]int {
	return [][]int{{1, 1}, {3, 5}, {4, 64}, {7, 129}, {67, 33}, {2, 1024}, {0, 8}, {2, 3, 16}, {9}, {2, 0, 4}}
}

func rmsnormFwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.RMSNormFwdArgs {
	return norm.RMSNormFwdArgs{
		Input:  s.In(l, d, shape...),
		Weight: s.In(opstest.Dense, d, tensor.Shape(shape).Cols()),
		Output: s.Out(l, d, shape...),
		RSigma: s.Out(opstest.Dense, tensor.F32, tensor.Shape(shape).Rows()),
		Eps:    normEps,
		Saved:  new(opregistry.Saved),
	}
}

func rmsnormFwdCases(d tensor.DType) []opstest.Case[norm.RMSNormFwdArgs] {
	var cases []opstest.Case[norm.RMSNormFwdArgs]
	add := func(name string, make func(*opstest.Stage) norm.RMSNormFwdArgs) {
		cases = append(cases, opstest.Case[norm.RMSNormFwdArgs]{Name: name, Make: make})
	}
	for _, shape := range normShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, zero := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/zero_centered=%v", tensor.Shape(shape), l, zero), func(s *opstest.Stage) norm.RMSNormFwdArgs {
					a := rmsnormFwdArgs(s, l, d, shape...)
					a.ZeroCenteredGamma = zero
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *norm.RMSNormFwdArgs)) {
		add(name, func(s *opstest.Stage) norm.RMSNormFwdArgs {
			a := rmsnormFwdArgs(s, opstest.Dense, d, 4, 24)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Output = a.Input })
	edit("in_place/padded", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) {
		a.Input = s.In(opstest.Padded, d, 4, 24)
		a.Output = a.Input
	})
	edit("some_heads", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) {
		*a = rmsnormFwdArgs(s, opstest.Dense, d, 2, 3, 4, 24)
		a.Input, a.Output = someHeads(s, d), s.Parts(false, d, []int{2, 3, 0, 24}, 2, 4, 1)[0]
	})
	edit("strided_weight", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Weight = s.In(opstest.Padded, d, 24) })
	edit("weight_of_f32", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Weight = s.In(opstest.Dense, tensor.F32, 24) })
	edit("output_of_f32", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Output = s.Out(opstest.Dense, tensor.F32, 4, 24) })
	edit("large_eps", func(_ *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Eps = 0.5 })
	edit("small_values", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Input = s.Scaled(1e-3, opstest.Dense, d, 4, 24) })
	edit("large_values", func(s *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Input = s.Scaled(1e4, opstest.Dense, d, 4, 24) })
	edit("row_of_zeros", func(_ *opstest.Stage, a *norm.RMSNormFwdArgs) {
		for i := range 24 {
			a.Input.Set(0, 2, i)
		}
	})
	edit("nan", func(_ *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Input.Set(math.NaN(), 1, 7) })
	edit("inf", func(_ *opstest.Stage, a *norm.RMSNormFwdArgs) { a.Input.Set(math.Inf(-1), 1, 7) })
	return cases
}

// someHeads returns four of six heads of every token, whose rows do not have one pitch.
func someHeads(s *opstest.Stage, d tensor.DType) *tensor.Tensor {
	return s.Parts(true, d, []int{2, 3, 0, 24}, 2, 4, 2)[0]
}

// rmsnormBwdArgs makes the operands of a backward call with the rsigma that the
// op's documentation defines.
func rmsnormBwdArgs(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape ...int) norm.RMSNormBwdArgs {
	rows, cols := tensor.Shape(shape).Rows(), tensor.Shape(shape).Cols()
	a := norm.RMSNormBwdArgs{
		DZ:     s.In(l, d, shape...),
		X:      s.In(l, d, shape...),
		RSigma: s.Out(opstest.Dense, tensor.F32, rows),
		Gamma:  s.In(opstest.Dense, d, cols),
		DX:     s.Out(l, d, shape...),
		DGamma: s.Out(opstest.Dense, d, cols),
		Saved:  new(opregistry.Saved),
	}
	saveRSigma(s, a)
	return a
}

func saveRSigma(s *opstest.Stage, a norm.RMSNormBwdArgs) {
	x, cols := a.X.Float64s(), a.X.Shape().Cols()
	rsigma := make([]float64, a.X.Shape().Rows())
	for r := range rsigma {
		sum := 0.0
		for _, v := range x[r*cols : (r+1)*cols] {
			sum += v * v
		}
		rsigma[r] = 1 / math.Sqrt(sum/float64(cols)+float64(float32(normEps)))
	}
	s.Fill(a.RSigma, rsigma)
}

// rmsnormRefresh replaces rsigma by what a forward impl saves.
func rmsnormRefresh(t tensortest.TB, x *opregistry.Exec, a norm.RMSNormBwdArgs, forward opregistry.Impl) error {
	t.Helper()
	s := &opstest.Stage{T: t}
	return opstest.RunForward(t, x, norm.RMSNormFwd, forward, norm.RMSNormFwdArgs{
		Input: a.X, Weight: a.Gamma, Output: s.Out(opstest.Dense, a.X.DType(), a.X.Shape()...), RSigma: a.RSigma,
		Eps: normEps, ZeroCenteredGamma: a.ZeroCenteredGamma, Saved: a.Saved,
	})
}

func rmsnormBwdCases(d tensor.DType) []opstest.Case[norm.RMSNormBwdArgs] {
	var cases []opstest.Case[norm.RMSNormBwdArgs]
	add := func(name string, make func(*opstest.Stage) norm.RMSNormBwdArgs) {
		cases = append(cases, opstest.Case[norm.RMSNormBwdArgs]{Name: name, Make: make})
	}
	for _, shape := range normShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, zero := range []bool{false, true} {
				add(fmt.Sprintf("%v/%v/zero_centered=%v", tensor.Shape(shape), l, zero), func(s *opstest.Stage) norm.RMSNormBwdArgs {
					a := rmsnormBwdArgs(s, l, d, shape...)
					a.ZeroCenteredGamma = zero
					return a
				})
			}
		}
	}
	edit := func(name string, change func(*opstest.Stage, *norm.RMSNormBwdArgs)) {
		add(name, func(s *opstest.Stage) norm.RMSNormBwdArgs {
			a := rmsnormBwdArgs(s, opstest.Dense, d, 5, 24)
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *opstest.Stage, a *norm.RMSNormBwdArgs) { a.DX = a.DZ })
	edit("some_heads/in_place", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) {
		*a = rmsnormBwdArgs(s, opstest.Dense, d, 2, 3, 4, 24)
		a.X, a.DZ = someHeads(s, d), someHeads(s, d)
		a.DX = a.DZ
		saveRSigma(s, *a)
	})
	edit("strided_vectors", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) {
		a.Gamma, a.DGamma = s.In(opstest.Padded, d, 24), s.Out(opstest.Padded, d, 24)
	})
	edit("weights_of_f32", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) {
		a.Gamma, a.DGamma = s.In(opstest.Dense, tensor.F32, 24), s.Out(opstest.Dense, tensor.F32, 24)
	})
	edit("dx_of_f32", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) { a.DX = s.Out(opstest.Dense, tensor.F32, 5, 24) })
	edit("row_of_zeros", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) {
		for i := range 24 {
			a.X.Set(0, 2, i)
		}
		saveRSigma(s, *a)
	})
	edit("nan", func(s *opstest.Stage, a *norm.RMSNormBwdArgs) { a.DZ.Set(math.NaN(), 1, 7) })
	return cases
}
