package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// gemmShape is an m×n product with inner size k.
type gemmShape struct{ m, n, k int }

func (g gemmShape) String() string { return fmt.Sprintf("%dx%dx%d", g.m, g.n, g.k) }

// gemmOperands makes A and B for op(B) m×k and op(A) k×n.
func gemmOperands(s *stage, l layout, d tensor.DType, g gemmShape, transA, transB bool) gemm.GenericGemmArgs {
	a := gemm.GenericGemmArgs{TransA: transA, TransB: transB}
	if transA {
		a.A = s.in(l, d, g.n, g.k)
	} else {
		a.A = s.in(l, d, g.k, g.n)
	}
	if transB {
		a.B = s.in(l, d, g.k, g.m)
	} else {
		a.B = s.in(l, d, g.m, g.k)
	}
	return a
}

func gemmCases(d tensor.DType) []testCase[gemm.GenericGemmArgs] {
	var cases []testCase[gemm.GenericGemmArgs]
	add := func(name string, make func(*stage) gemm.GenericGemmArgs) {
		cases = append(cases, testCase[gemm.GenericGemmArgs]{name, make})
	}
	shapes := []gemmShape{
		{1, 1, 1}, {1, 17, 5}, {3, 1, 7}, {7, 5, 1}, {16, 16, 16}, {33, 65, 31}, {64, 48, 128},
		{0, 4, 3}, {4, 0, 3}, {5, 7, 0}, {0, 0, 0},
	}
	for _, g := range shapes {
		for _, trans := range []string{"NN", "NT", "TN", "TT"} {
			for _, l := range []layout{dense, padded} {
				add(fmt.Sprintf("%v/%s/%v", g, trans, l), func(s *stage) gemm.GenericGemmArgs {
					a := gemmOperands(s, l, d, g, trans[0] == 'T', trans[1] == 'T')
					a.D = s.out(l, d, g.m, g.n)
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
		add(fmt.Sprintf("%v/%s", large, trans), func(s *stage) gemm.GenericGemmArgs {
			a := gemmOperands(s, dense, d, large, trans[0] == 'T', trans[1] == 'T')
			a.D = s.out(dense, d, large.m, large.n)
			return a
		})
	}
	for _, c := range gemmEpilogues(d) {
		add("epilogue/"+c.name, c.make)
	}
	for _, c := range gemmSpecial(d) {
		add(c.name, c.make)
	}
	return cases
}

// gemmEpilogues returns the cases of bias, GELU, alpha, beta and accumulation.
func gemmEpilogues(d tensor.DType) []testCase[gemm.GenericGemmArgs] {
	var cases []testCase[gemm.GenericGemmArgs]
	g := gemmShape{9, 21, 34}
	add := func(name string, edit func(s *stage, a *gemm.GenericGemmArgs)) {
		for _, l := range []layout{dense, padded} {
			cases = append(cases, testCase[gemm.GenericGemmArgs]{name + "/" + l.String(), func(s *stage) gemm.GenericGemmArgs {
				a := gemmOperands(s, l, d, g, true, false)
				a.D = s.out(l, d, g.m, g.n)
				edit(s, &a)
				return a
			}})
		}
	}
	bias := func(s *stage, a *gemm.GenericGemmArgs) { a.Bias = s.in(dense, d, g.n) }
	gelu := func(s *stage, a *gemm.GenericGemmArgs) { a.Gelu, a.GeluIn = true, s.out(dense, d, g.m, g.n) }
	sum := func(s *stage, a *gemm.GenericGemmArgs) { a.Accumulate, a.D = true, s.in(dense, d, g.m, g.n) }
	both := func(edits ...func(*stage, *gemm.GenericGemmArgs)) func(*stage, *gemm.GenericGemmArgs) {
		return func(s *stage, a *gemm.GenericGemmArgs) {
			for _, e := range edits {
				e(s, a)
			}
		}
	}
	scale := func(alpha float32) func(*stage, *gemm.GenericGemmArgs) {
		return func(_ *stage, a *gemm.GenericGemmArgs) { a.Alpha = opregistry.Float(alpha) }
	}
	beta := func(beta float32) func(*stage, *gemm.GenericGemmArgs) {
		return func(_ *stage, a *gemm.GenericGemmArgs) { a.Beta = opregistry.Float(beta) }
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
	add("grad,bias", func(s *stage, a *gemm.GenericGemmArgs) { // dgrad
		a.Grad, a.Bias = true, s.out(dense, d, g.k)
	})
	add("grad,gelu", func(s *stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Gelu, a.GeluIn = true, true, s.scaled(4, dense, d, g.m, g.n)
	})
	add("grad,bias,gelu,alpha", func(s *stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Bias = true, s.out(dense, d, g.k)
		a.Gelu, a.GeluIn = true, s.scaled(4, dense, d, g.m, g.n)
		a.Alpha = opregistry.Float(0.5)
	})
	add("grad,gelu,accumulate", func(s *stage, a *gemm.GenericGemmArgs) {
		a.Grad, a.Gelu, a.GeluIn = true, true, s.scaled(4, dense, d, g.m, g.n)
		a.Accumulate, a.D = true, s.in(dense, d, g.m, g.n)
	})
	add("grad,bias,transB,accumulate", func(s *stage, a *gemm.GenericGemmArgs) { // wgrad
		*a = gemmOperands(s, dense, d, g, false, true)
		a.Grad, a.Bias = true, s.out(dense, d, g.m)
		a.Accumulate, a.D = true, s.in(dense, d, g.m, g.n)
	})
	add("grad,bias,no_rows", func(s *stage, a *gemm.GenericGemmArgs) {
		*a = gemmOperands(s, dense, d, gemmShape{g.m, g.n, 0}, false, true)
		a.Grad, a.Bias = true, s.out(dense, d, g.m)
		a.D = s.out(dense, d, g.m, g.n)
	})
	return cases
}

// gemmSpecial returns the cases of more axes, mixed dtypes, odd strides, NaN and Inf.
func gemmSpecial(d tensor.DType) []testCase[gemm.GenericGemmArgs] {
	g := gemmShape{12, 10, 8}
	plain := func(s *stage) gemm.GenericGemmArgs {
		a := gemmOperands(s, dense, d, g, true, false)
		a.D = s.out(dense, d, g.m, g.n)
		return a
	}
	other := tensor.F32
	if d == tensor.F32 {
		other = tensor.BF16
	}
	return []testCase[gemm.GenericGemmArgs]{
		{"axes", func(s *stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.in(dense, d, 10, 8), TransA: true, B: s.in(dense, d, 2, 6, 8), D: s.out(dense, d, 2, 6, 10)}
		}},
		{"axes/transposed", func(s *stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.in(dense, d, 2, 4, 10), B: s.in(dense, d, 4, 2, 12), TransB: true, D: s.out(dense, d, 12, 10)}
		}},
		{"turned", func(s *stage) gemm.GenericGemmArgs {
			return gemm.GenericGemmArgs{A: s.in(turned, d, 10, 8), TransA: true, B: s.in(turned, d, 12, 8), D: s.out(turned, d, 12, 10)}
		}},
		{"accumulate_into_" + other.String(), func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Accumulate, a.D = true, s.in(dense, other, g.m, g.n)
			return a
		}},
		{"into_" + other.String(), func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.D = s.out(dense, other, g.m, g.n)
			return a
		}},
		{"wgrad_into_" + other.String(), func(s *stage) gemm.GenericGemmArgs {
			a := gemmOperands(s, dense, d, g, false, true)
			a.Grad, a.Bias, a.D = true, s.out(dense, other, g.m), s.out(dense, other, g.m, g.n)
			return a
		}},
		{"bias_and_gelu_in_of_" + other.String(), func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Bias, a.Gelu, a.GeluIn = s.in(dense, other, g.n), true, s.out(dense, other, g.m, g.n)
			return a
		}},
		{"nan", func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.NaN(), 3, 2)
			a.B.Set(math.NaN(), 5, 7)
			return a
		}},
		{"inf", func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.Inf(1), 3, 2)
			return a
		}},
		{"inf_times_zero", func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.A.Set(math.Inf(-1), 3, 2)
			for j := range g.k {
				a.B.Set(0, 4, j)
			}
			return a
		}},
		{"gelu/saturated", func(s *stage) gemm.GenericGemmArgs {
			a := plain(s)
			a.Bias, a.Gelu, a.GeluIn = s.scaled(100, dense, d, g.n), true, s.out(dense, d, g.m, g.n)
			return a
		}},
	}
}
