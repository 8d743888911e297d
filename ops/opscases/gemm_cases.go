package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// gemmShape is an m×n product with inner size k.
type gemmShape struct{ m, n, k int }

func (g gemmShape) String() string { return fmt.Sprintf("%dx%dx%d", g.m, g.n, g.k) }

// gemmOperands makes A and B for op(B) m×k and op(A) k×n.
func gemmOperands(s *opstest.Stage, l opstest.Layout, d tensor.DType, g gemmShape, transA, transB bool) gemm.GenericGemmArgs {
	a := gemm.GenericGemmArgs{TransA: transA, TransB: transB}
	if transA {
		a.A = s.In(l, d, g.n, g.k)
	} else {
		a.A = s.In(l, d, g.k, g.n)
	}
	if transB {
		a.B = s.In(l, d, g.k, g.m)
	} else {
		a.B = s.In(l, d, g.m, g.k)
	}
	return a
}

func gemmCases(d tensor.DType) []opstest.Case[gemm.GenericGemmArgs] {
	var cases []opstest.Case[gemm.GenericGemmArgs]
	add := func(name string, make func(*opstest.Stage) gemm.GenericGemmArgs) {
		cases = append(cases, opstest.Case[gemm.GenericGemmArgs]{Name: name, Make: make})
	}
	shapes := []gemmShape{
		{1, 1, 1}, {1, 17, 5}, {3, 1, 7}, {7, 5, 1}, {16, 16, 16}, {33, 65, 31}, {64, 48, 128},
		{0, 4, 3}, {4, 0, 3}, {5, 7, 0}, {0, 0, 0},
	}
	for _, g := range shapes {
		for _, trans := range []string{"NN", "NT", "TN", "TT"} {
			for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
				add(fmt.Sprintf("%v/%s/%v", g, trans, l), func(s *opstest.Stage) gemm.GenericGemmArgs {
					a := gemmOperands(s, l, d, g, trans[0] == 'T', trans[1] == 'T')
					a.D = s.Out(l, d, g.m, g.n)
					return a
				})
			}
		}
	}
	// One shape is larger than the blocks of any cache level, in the layouts that training uses.
	large, ways := gemmShape{129, 257, 515}, []string{"TN", "NN", "NT"}
	if d != tensor.F32 {
		ways = ways[:1]
	}
	for _, trans := range ways {
		add(fmt.Sprintf("%v/%s", large, trans), func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := gemmOperands(s, opstest.Dense, d, large, trans[0] == 'T', trans[1] == 'T')
			a.D = s.Out(opstest.Dense, d, large.m, large.n)
			return a
		})
	}
	for _, c := range gemmEpilogues(d) {
		add("epilogue/"+c.Name, c.Make)
	}
	for _, c := range gemmSpecial(d) {
		add(c.Name, c.Make)
	}
	return cases
}

// gemmEpilogues returns the cases of bias, GELU, alpha, beta and accumulation.
func gemmEpilogues(d tensor.DType) []opstest.Case[gemm.GenericGemmArgs] {
	var cases []opstest.Case[gemm.GenericGemmArgs]
	g := gemmShape{9, 21, 34}
	add := func(name string, edit func(s *opstest.Stage, a *gemm.GenericGemmArgs)) {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			cases = append(cases, opstest.Case[gemm.GenericGemmArgs]{Name: name + "/" + l.String(), Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
				a := gemmOperands(s, l, d, g, true, false)
				a.D = s.Out(l, d, g.m, g.n)
				edit(s, &a)
				return a
			}})
		}
	}
	bias := func(s *opstest.Stage, a *gemm.GenericGemmArgs) { a.Bias = s.In(opstest.Dense, d, g.n) }
	gelu := func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		a.Gelu, a.GeluIn = true, s.Out(opstest.Dense, d, g.m, g.n)
	}
	sum := func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		a.Accumulate, a.D = true, s.In(opstest.Dense, d, g.m, g.n)
	}
	both := func(edits ...func(*opstest.Stage, *gemm.GenericGemmArgs)) func(*opstest.Stage, *gemm.GenericGemmArgs) {
		return func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
			for _, e := range edits {
				e(s, a)
			}
		}
	}
	scale := func(alpha float32) func(*opstest.Stage, *gemm.GenericGemmArgs) {
		return func(_ *opstest.Stage, a *gemm.GenericGemmArgs) { a.Alpha = opregistry.Float(alpha) }
	}
	beta := func(beta float32) func(*opstest.Stage, *gemm.GenericGemmArgs) {
		return func(_ *opstest.Stage, a *gemm.GenericGemmArgs) { a.Beta = opregistry.Float(beta) }
	}
	add("bias", bias)
	add("gelu", gelu)
	add("bias,gelu", both(bias, gelu))
	add("alpha", scale(-0.5))
	add("alpha,bias", both(scale(0.25), bias))
	add("alpha,bias,gelu", both(scale(2), bias, gelu))
	add("accumulate", sum)
	add("accumulate,beta=0.5", both(sum, beta(0.5)))
	add("accumulate,beta=0", both(sum, beta(0)))
	add("accumulate,alpha,beta", both(sum, scale(1.5), beta(-2)))
	add("accumulate,bias", both(sum, bias))
	add("accumulate,bias,gelu,beta", both(sum, bias, gelu, beta(0.5)))
	add("beta=0", beta(0))
	add("grad,bias", func(s *opstest.Stage, a *gemm.GenericGemmArgs) { // dgrad
		a.Grad, a.Bias = true, s.Out(opstest.Dense, d, g.k)
	})
	add("grad,gelu", func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Gelu, a.GeluIn = true, true, s.Scaled(4, opstest.Dense, d, g.m, g.n)
	})
	add("grad,bias,gelu,alpha", func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Bias = true, s.Out(opstest.Dense, d, g.k)
		a.Gelu, a.GeluIn = true, s.Scaled(4, opstest.Dense, d, g.m, g.n)
		a.Alpha = opregistry.Float(0.5)
	})
	add("grad,gelu,accumulate", func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Gelu, a.GeluIn = true, true, s.Scaled(4, opstest.Dense, d, g.m, g.n)
		a.Accumulate, a.D = true, s.In(opstest.Dense, d, g.m, g.n)
	})
	add("grad,bias,transB,accumulate", func(s *opstest.Stage, a *gemm.GenericGemmArgs) { // wgrad
		*a = gemmOperands(s, opstest.Dense, d, g, false, true)
		a.Grad, a.Bias = true, s.Out(opstest.Dense, d, g.m)
		a.Accumulate, a.D = true, s.In(opstest.Dense, d, g.m, g.n)
	})
	add("grad,bias,no_rows", func(s *opstest.Stage, a *gemm.GenericGemmArgs) {
		*a = gemmOperands(s, opstest.Dense, d, gemmShape{g.m, g.n, 0}, false, true)
		a.Grad, a.Bias = true, s.Out(opstest.Dense, d, g.m)
		a.D = s.Out(opstest.Dense, d, g.m, g.n)
	})
	return cases
}

// gemmSpecial returns the cases of more axes, mixed dtypes, odd strides, NaN and Inf.
func gemmSpecial(d tensor.DType) []opstest.Case[gemm.GenericGemmArgs] {
	g := gemmShape{12, 10, 8}
	plain := func(s *opstest.Stage) gemm.GenericGemmArgs {
		a := gemmOperands(s, opstest.Dense, d, g, true, false)
		a.D = s.Out(opstest.Dense, d, g.m, g.n)
		return a
	}
	other := tensor.F32
	if d == tensor.F32 {
		other = tensor.BF16
	}
	return []opstest.Case[gemm.GenericGemmArgs]{
		{Name: "axes", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.In(opstest.Dense, d, 10, 8), TransA: true, B: s.In(opstest.Dense, d, 2, 6, 8), D: s.Out(opstest.Dense, d, 2, 6, 10)}
		}},
		{Name: "axes/transposed", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.In(opstest.Dense, d, 2, 4, 10), B: s.In(opstest.Dense, d, 4, 2, 12), TransB: true, D: s.Out(opstest.Dense, d, 12, 10)}
		}},
		{Name: "turned", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.In(opstest.Turned, d, 10, 8), TransA: true, B: s.In(opstest.Turned, d, 12, 8), D: s.Out(opstest.Turned, d, 12, 10)}
		}},
		{Name: "accumulate_into_" + other.String(), Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Accumulate, a.D = true, s.In(opstest.Dense, other, g.m, g.n)
			return a
		}},
		{Name: "into_" + other.String(), Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.D = s.Out(opstest.Dense, other, g.m, g.n)
			return a
		}},
		{Name: "wgrad_into_" + other.String(), Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := gemmOperands(s, opstest.Dense, d, g, false, true)
			a.Grad, a.Bias, a.D = true, s.Out(opstest.Dense, other, g.m), s.Out(opstest.Dense, other, g.m, g.n)
			return a
		}},
		{Name: "bias_and_gelu_in_of_" + other.String(), Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Bias, a.Gelu, a.GeluIn = s.In(opstest.Dense, other, g.n), true, s.Out(opstest.Dense, other, g.m, g.n)
			return a
		}},
		{Name: "nan", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.NaN(), 3, 2)
			a.B.Set(math.NaN(), 5, 7)
			return a
		}},
		{Name: "inf", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.Inf(1), 3, 2)
			return a
		}},
		{Name: "inf_times_zero", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.Inf(-1), 3, 2)
			for j := range g.k {
				a.B.Set(0, 4, j)
			}
			return a
		}},
		{Name: "gelu/saturated", Make: func(s *opstest.Stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Bias, a.Gelu, a.GeluIn = s.Scaled(100, opstest.Dense, d, g.n), true, s.Out(opstest.Dense, d, g.m, g.n)
			return a
		}},
	}
}
