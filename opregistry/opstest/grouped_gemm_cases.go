package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

// The size of the layer of the cases of grouped products: each group, an expert, maps rows of
// groupIn features to groupOut features.
const (
	groupIn  = 12
	groupOut = 9
)

// groupSizes returns the rows of each group: no group, one group, and several of which some are
// empty.
func groupSizes() [][]int {
	return [][]int{{}, {0}, {1}, {5, 0, 17, 3}, {33, 1}, {0, 70, 0}}
}

// each makes one tensor per group.
func each(rows []int, make func(m int) *tensor.Tensor) []*tensor.Tensor {
	list := []*tensor.Tensor{}
	for _, m := range rows {
		list = append(list, make(m))
	}
	return list
}

func total(rows []int) int {
	sum := 0
	for _, m := range rows {
		sum += m
	}
	return sum
}

// groupedForward makes y_i = x_i·W_iᵀ.
func groupedForward(s *stage, l layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(int) *tensor.Tensor { return s.in(l, d, groupOut, groupIn) }), TransA: true,
		B: each(rows, func(m int) *tensor.Tensor { return s.in(l, d, m, groupIn) }),
		D: each(rows, func(m int) *tensor.Tensor { return s.out(l, d, m, groupOut) }),
	}
}

// groupedDgrad makes dx_i = dy_i·W_i.
func groupedDgrad(s *stage, l layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(int) *tensor.Tensor { return s.in(l, d, groupOut, groupIn) }),
		B: each(rows, func(m int) *tensor.Tensor { return s.in(l, d, m, groupOut) }),
		D: each(rows, func(m int) *tensor.Tensor { return s.out(l, d, m, groupIn) }), Grad: true,
	}
}

// groupedWgrad makes dW_i = dy_iᵀ·x_i.
func groupedWgrad(s *stage, l layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(m int) *tensor.Tensor { return s.in(l, d, m, groupIn) }),
		B: each(rows, func(m int) *tensor.Tensor { return s.in(l, d, m, groupOut) }), TransB: true,
		D: each(rows, func(int) *tensor.Tensor { return s.out(l, d, groupOut, groupIn) }), Grad: true,
	}
}

func groupedGemmCases(d tensor.DType) []testCase[gemm.TEGeneralGroupedGemmArgs] {
	type args = gemm.TEGeneralGroupedGemmArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, rows := range groupSizes() {
		for _, l := range []layout{dense, padded, turned} {
			add(fmt.Sprintf("forward/%v/%v", rows, l), func(s *stage) args { return groupedForward(s, l, d, rows) })
			add(fmt.Sprintf("dgrad/%v/%v", rows, l), func(s *stage) args { return groupedDgrad(s, l, d, rows) })
			add(fmt.Sprintf("wgrad/%v/%v", rows, l), func(s *stage) args { return groupedWgrad(s, l, d, rows) })
		}
		add(fmt.Sprintf("single_output/%v", rows), func(s *stage) args {
			a := groupedForward(s, dense, d, rows)
			a.SingleOutput, a.D = true, []*tensor.Tensor{s.out(padded, d, total(rows), groupOut)}
			return a
		})
	}
	other := tensor.F32
	if d == tensor.F32 {
		other = tensor.BF16
	}
	rows := []int{5, 0, 17, 3}
	bias := func(s *stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.in(dense, d, groupOut) })
	}
	gelu := func(s *stage, a *args) {
		a.PreGeluOut = each(rows, func(m int) *tensor.Tensor { return s.out(dense, d, m, groupOut) })
	}
	edit := func(name string, make func(*stage, layout, tensor.DType, []int) args, edits ...func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := make(s, dense, d, rows)
			for _, e := range edits {
				e(s, &a)
			}
			return a
		})
	}
	edit("bias", groupedForward, bias)
	edit("gelu", groupedForward, gelu)
	edit("bias,gelu", groupedForward, bias, gelu)
	edit("single_output,bias,gelu,accumulate", groupedForward, bias, gelu, func(s *stage, a *args) {
		a.SingleOutput, a.Accumulate, a.D = true, true, []*tensor.Tensor{s.in(dense, d, total(rows), groupOut)}
	})
	edit("dgrad,gelu", groupedDgrad, func(s *stage, a *args) {
		a.PreGeluOut = each(rows, func(m int) *tensor.Tensor { return s.scaled(4, dense, d, m, groupIn) })
	})
	edit("dgrad,bias", groupedDgrad, func(s *stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.out(dense, d, groupOut) })
	})
	edit("wgrad,bias,accumulate_into_"+other.String(), groupedWgrad, func(s *stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.out(dense, other, groupOut) })
		a.Accumulate, a.D = true, each(rows, func(int) *tensor.Tensor { return s.in(dense, other, groupOut, groupIn) })
	})
	edit("nan_in_one_group", groupedForward, func(_ *stage, a *args) { a.B[2].Set(math.NaN(), 1, 1) })
	return cases
}

// groupedTensor makes one tensor, an input or an output, whose rows belong to groups.
func groupedTensor(s *stage, in bool, l layout, d, index tensor.DType, cols int, rows []int) gemm.GroupedTensor {
	g := gemm.GroupedTensor{FirstDims: s.out(dense, index, len(rows))}
	if in {
		g.Data = s.in(l, d, total(rows), cols)
	} else {
		g.Data = s.out(l, d, total(rows), cols)
	}
	sizes := make([]float64, len(rows))
	for i, m := range rows {
		sizes[i] = float64(m)
	}
	s.fill(g.FirstDims, sizes)
	return g
}

// alike makes n matrices of equal size in one tensor.
func alike(s *stage, in bool, l layout, d tensor.DType, n, rows, cols int) gemm.GroupedTensor {
	if in {
		return gemm.GroupedTensor{Data: s.in(l, d, n*rows, cols), NumTensors: n}
	}
	return gemm.GroupedTensor{Data: s.out(l, d, n*rows, cols), NumTensors: n}
}

// grouped returns the cases that the products of grouped tensors share. make makes a call without
// bias and factors.
func grouped(d tensor.DType, withBias bool, make func(s *stage, l layout, index tensor.DType, rows []int) gemm.GroupedGemmArgs) []testCase[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	var cases []testCase[args]
	add := func(name string, make func(*stage) args) { cases = append(cases, testCase[args]{name, make}) }
	for _, rows := range groupSizes() {
		for _, l := range []layout{dense, padded, turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				add(fmt.Sprintf("%v/%v/%v", rows, l, index), func(s *stage) args { return make(s, l, index, rows) })
			}
		}
	}
	rows := []int{5, 0, 17, 3}
	edit := func(name string, edits ...func(*stage, *args)) {
		add(name, func(s *stage) args {
			a := make(s, dense, tensor.I64, rows)
			for _, e := range edits {
				e(s, &a)
			}
			return a
		})
	}
	update := func(s *stage, a *args) {
		if a.D.Data != nil {
			s.fill(a.D.Data, s.in(dense, d, a.D.Data.Shape()...).Float64s())
		}
		for _, t := range a.D.List {
			s.fill(t, s.in(dense, d, t.Shape()...).Float64s())
		}
	}
	edit("alpha", func(s *stage, a *args) { a.Alpha = s.values(tensor.F32, 0.5, 2, -1, 0) })
	edit("beta", update, func(s *stage, a *args) { a.Beta = s.values(tensor.F32, 1, 2, 0.5, -1) })
	edit("alpha,beta", update, func(s *stage, a *args) {
		a.Alpha, a.Beta = s.values(tensor.F32, 1, 1, 0.5, 2), s.values(tensor.F32, 0.5, 1, 1, 2)
	})
	// With a factor of 0, D is not read: it holds NaN.
	edit("beta=0", func(s *stage, a *args) { a.Beta = s.values(tensor.F32, 0, 0, 0, 0) })
	if withBias {
		bias := func(s *stage, a *args) { a.Bias = s.in(padded, d, len(rows), a.D.Data.Shape()[1]) }
		edit("bias", bias)
		edit("bias,alpha,beta", bias, update, func(s *stage, a *args) {
			a.Alpha, a.Beta = s.values(tensor.F32, 1, 1, 0.5, 2), s.values(tensor.F32, 0.5, 1, 1, 2)
		})
	}
	return cases
}

func groupedTensorCases(d tensor.DType) []testCase[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	cases := grouped(d, true, func(s *stage, l layout, index tensor.DType, rows []int) args {
		return args{
			A: alike(s, true, l, d, len(rows), groupOut, groupIn), TransA: true,
			B: groupedTensor(s, true, l, d, index, groupIn, rows), D: groupedTensor(s, false, l, d, index, groupOut, rows),
		}
	})
	for _, rows := range groupSizes() {
		cases = append(cases, testCase[args]{fmt.Sprintf("wgrad/%v", rows), func(s *stage) args {
			return args{
				A: groupedTensor(s, true, dense, d, tensor.I64, groupIn, rows),
				B: groupedTensor(s, true, dense, d, tensor.I64, groupOut, rows), TransB: true,
				D: alike(s, false, dense, d, len(rows), groupOut, groupIn),
			}
		}})
	}
	return cases
}

func discreteInCases(d tensor.DType) []testCase[gemm.GroupedGemmArgs] {
	return grouped(d, true, func(s *stage, l layout, index tensor.DType, rows []int) gemm.GroupedGemmArgs {
		return gemm.GroupedGemmArgs{
			A: gemm.GroupedTensor{List: each(rows, func(int) *tensor.Tensor { return s.in(l, d, groupOut, groupIn) })}, TransA: true,
			B: groupedTensor(s, true, l, d, index, groupIn, rows), D: groupedTensor(s, false, l, d, index, groupOut, rows),
		}
	})
}

func discreteOutCases(d tensor.DType) []testCase[gemm.GroupedGemmArgs] {
	return grouped(d, false, func(s *stage, l layout, index tensor.DType, rows []int) gemm.GroupedGemmArgs {
		return gemm.GroupedGemmArgs{
			A: groupedTensor(s, true, l, d, index, groupIn, rows),
			B: groupedTensor(s, true, l, d, index, groupOut, rows), TransB: true,
			D: gemm.GroupedTensor{List: each(rows, func(int) *tensor.Tensor { return s.out(l, d, groupOut, groupIn) })},
		}
	})
}

// groupedGemmGradCases are the calls of two experts with bias.
func groupedGemmGradCases() []gradCase {
	type args = gemm.TEGeneralGroupedGemmArgs
	rows := []int{3, 2}
	return []gradCase{
		gradient("dgrad", gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemm, func(s *stage) derivation[args, args] {
			f, b := groupedForward(s, dense, tensor.F64, rows), groupedDgrad(s, dense, tensor.F64, rows)
			y, dy := s.blank(5, groupOut), s.f64(5, groupOut)
			f.SingleOutput, f.D, b.A = true, []*tensor.Tensor{y}, f.A
			b.B = rowBlocks(s, dy, rows)
			return derivation[args, args]{
				forward: []args{f}, backward: []args{b}, y: y, dy: dy,
				wrt: []derivative{{"x_0", f.B[0], b.D[0]}, {"x_1", f.B[1], b.D[1]}},
			}
		}),
		gradient("wgrad,bias", gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemm, func(s *stage) derivation[args, args] {
			f, b := groupedForward(s, dense, tensor.F64, rows), groupedWgrad(s, dense, tensor.F64, rows)
			y, dy := s.blank(5, groupOut), s.f64(5, groupOut)
			f.SingleOutput, f.D, b.A = true, []*tensor.Tensor{y}, f.B
			b.B = rowBlocks(s, dy, rows)
			f.Bias = each(rows, func(int) *tensor.Tensor { return s.f64(groupOut) })
			b.Bias = each(rows, func(int) *tensor.Tensor { return s.blank(groupOut) })
			return derivation[args, args]{
				forward: []args{f}, backward: []args{b}, y: y, dy: dy,
				wrt: []derivative{{"W_0", f.A[0], b.D[0]}, {"W_1", f.A[1], b.D[1]}, {"bias_1", f.Bias[1], b.Bias[1]}},
			}
		}),
	}
}

// rowBlocks cuts a matrix into blocks of rows.
func rowBlocks(s *stage, x *tensor.Tensor, rows []int) []*tensor.Tensor {
	s.t.Helper()
	first := 0
	return each(rows, func(m int) *tensor.Tensor {
		block, err := x.Slice(0, first, first+m)
		if err != nil {
			s.t.Fatalf("opstest: %v", err)
		}
		first += m
		return block
	})
}
