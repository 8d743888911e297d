package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

func residualAddCases(d tensor.DType) []opstest.Case[norm.ResidualAddArgs] {
	var cases []opstest.Case[norm.ResidualAddArgs]
	add := func(name string, make func(*opstest.Stage) norm.ResidualAddArgs) {
		cases = append(cases, opstest.Case[norm.ResidualAddArgs]{Name: name, Make: make})
	}
	for _, shape := range [][]int{{}, {1}, {7}, {0}, {3, 5}, {2, 3, 17}, {9, 33}, {2, 0, 3}} {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			make := func(s *opstest.Stage) norm.ResidualAddArgs {
				return norm.ResidualAddArgs{A: s.In(l, d, shape...), B: s.In(l, d, shape...), Output: s.Out(l, d, shape...)}
			}
			name := fmt.Sprintf("%v/%v", tensor.Shape(shape), l)
			add(name, make)
			add(name+"/into_a", func(s *opstest.Stage) norm.ResidualAddArgs {
				a := make(s)
				a.Output = a.A
				return a
			})
			add(name+"/into_b", func(s *opstest.Stage) norm.ResidualAddArgs {
				a := make(s)
				a.Output = a.B
				return a
			})
		}
	}
	add("large", func(s *opstest.Stage) norm.ResidualAddArgs {
		return norm.ResidualAddArgs{A: s.In(opstest.Dense, d, 65, 129), B: s.In(opstest.Dense, d, 65, 129), Output: s.Out(opstest.Dense, d, 65, 129)}
	})
	add("one_tensor_thrice", func(s *opstest.Stage) norm.ResidualAddArgs {
		x := s.In(opstest.Dense, d, 9)
		return norm.ResidualAddArgs{A: x, B: x, Output: x}
	})
	add("mixed_layouts", func(s *opstest.Stage) norm.ResidualAddArgs {
		return norm.ResidualAddArgs{A: s.In(opstest.Dense, d, 6, 9), B: s.In(opstest.Turned, d, 6, 9), Output: s.Out(opstest.Padded, d, 6, 9)}
	})
	add("special_values", func(s *opstest.Stage) norm.ResidualAddArgs {
		inf, nan := math.Inf(1), math.NaN()
		return norm.ResidualAddArgs{
			A: s.Values(d, inf, inf, -inf, nan, 1, 0), B: s.Values(d, 1, -inf, -inf, 1, nan, 0), Output: s.Out(opstest.Dense, d, 6),
		}
	})
	return cases
}

func rmsnormGradCases() []opstest.GradCase {
	var cases []opstest.GradCase
	for _, zero := range []bool{false, true} {
		cases = append(cases, opstest.NewGradCase(fmt.Sprintf("zero_centered=%v", zero), norm.RMSNormFwd, norm.RMSNormBwd,
			func(s *opstest.Stage) opstest.Derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdArgs] {
				b := rmsnormBwdArgs(s, opstest.Dense, tensor.F64, 4, 6)
				f := rmsnormFwdArgs(s, opstest.Dense, tensor.F64, 4, 6)
				f.Input, f.Weight = b.X, b.Gamma
				b.ZeroCenteredGamma, f.ZeroCenteredGamma = zero, zero
				return opstest.Derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdArgs]{
					Forward: []norm.RMSNormFwdArgs{f}, Backward: []norm.RMSNormBwdArgs{b},
					Y: f.Output, DY: b.DZ, Wrt: []opstest.Derivative{{Name: "x", X: b.X, DX: b.DX}, {Name: "gamma", X: b.Gamma, DX: b.DGamma}}, Refresh: rmsnormRefresh,
				}
			}))
	}
	return cases
}

// residualAddGradCases adds up the gradients of the two uses of x in y = (x+a)+(x+b).
func residualAddGradCases() []opstest.GradCase {
	type args = norm.ResidualAddArgs
	return []opstest.GradCase{opstest.NewGradCase("two_uses", norm.ResidualAdd, norm.ResidualAdd, func(s *opstest.Stage) opstest.Derivation[args, args] {
		x, a, b, l, r, y, dy, dx := s.F64In(7), s.F64In(7), s.F64In(7), s.F64Out(7), s.F64Out(7), s.F64Out(7), s.F64In(7), s.F64Out(7)
		return opstest.Derivation[args, args]{
			Forward:  []args{{A: x, B: a, Output: l}, {A: x, B: b, Output: r}, {A: l, B: r, Output: y}},
			Backward: []args{{A: dy, B: dy, Output: dx}},
			Y:        y, DY: dy, Wrt: []opstest.Derivative{{Name: "x", X: x, DX: dx}},
		}
	})}
}

func rmsnormAddGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[norm.RMSNormFwdArgs, norm.RMSNormBwdAddArgs]
	return []opstest.GradCase{opstest.NewGradCase("nothing_added", norm.RMSNormFwd, norm.RMSNormBwdAdd, func(s *opstest.Stage) derived {
		b := rmsnormBwdAddArgs(s, opstest.Dense, tensor.F64, 4, 6)
		s.Fill(b.Add, make([]float64, 24))
		f := rmsnormFwdArgs(s, opstest.Dense, tensor.F64, 4, 6)
		f.Input, f.Weight = b.X, b.Gamma
		return derived{
			Forward: []norm.RMSNormFwdArgs{f}, Backward: []norm.RMSNormBwdAddArgs{b},
			Y: f.Output, DY: b.DZ, Wrt: []opstest.Derivative{{Name: "x", X: b.X, DX: b.DX}, {Name: "gamma", X: b.Gamma, DX: b.DGamma}},
		}
	})}
}

func layernormGradCases() []opstest.GradCase {
	type derived = opstest.Derivation[norm.LayerNormFwdArgs, norm.LayerNormBwdArgs]
	var cases []opstest.GradCase
	for _, zero := range []bool{false, true} {
		cases = append(cases, opstest.NewGradCase(fmt.Sprintf("zero_centered=%v", zero), norm.LayerNormFwd, norm.LayerNormBwd, func(s *opstest.Stage) derived {
			b := layernormBwdArgs(s, opstest.Dense, tensor.F64, 4, 6)
			f := layernormFwdArgs(s, opstest.Dense, tensor.F64, 4, 6)
			f.Input, f.Weight = b.X, b.Gamma
			b.ZeroCenteredGamma, f.ZeroCenteredGamma = zero, zero
			return derived{
				Forward: []norm.LayerNormFwdArgs{f}, Backward: []norm.LayerNormBwdArgs{b}, Y: f.Output, DY: b.DZ, Refresh: layernormRefresh,
				Wrt: []opstest.Derivative{{Name: "x", X: b.X, DX: b.DX}, {Name: "gamma", X: b.Gamma, DX: b.DGamma}, {Name: "beta", X: f.Bias, DX: b.DBeta}},
			}
		}))
	}
	return cases
}
