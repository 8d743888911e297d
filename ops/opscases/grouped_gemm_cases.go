package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/opstest"
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

// groupedForward makes y_i = x_i·W_iᵀ.
func groupedForward(s *opstest.Stage, l opstest.Layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(int) *tensor.Tensor { return s.In(l, d, groupOut, groupIn) }), TransA: true,
		B: each(rows, func(m int) *tensor.Tensor { return s.In(l, d, m, groupIn) }),
		D: each(rows, func(m int) *tensor.Tensor { return s.Out(l, d, m, groupOut) }),
	}
}

// groupedDgrad makes dx_i = dy_i·W_i.
func groupedDgrad(s *opstest.Stage, l opstest.Layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(int) *tensor.Tensor { return s.In(l, d, groupOut, groupIn) }),
		B: each(rows, func(m int) *tensor.Tensor { return s.In(l, d, m, groupOut) }),
		D: each(rows, func(m int) *tensor.Tensor { return s.Out(l, d, m, groupIn) }), Grad: true,
	}
}

// groupedWgrad makes dW_i = dy_iᵀ·x_i.
func groupedWgrad(s *opstest.Stage, l opstest.Layout, d tensor.DType, rows []int) gemm.TEGeneralGroupedGemmArgs {
	return gemm.TEGeneralGroupedGemmArgs{
		A: each(rows, func(m int) *tensor.Tensor { return s.In(l, d, m, groupIn) }),
		B: each(rows, func(m int) *tensor.Tensor { return s.In(l, d, m, groupOut) }), TransB: true,
		D: each(rows, func(int) *tensor.Tensor { return s.Out(l, d, groupOut, groupIn) }), Grad: true,
	}
}

func groupedGemmCases(d tensor.DType) []opstest.Case[gemm.TEGeneralGroupedGemmArgs] {
	type args = gemm.TEGeneralGroupedGemmArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, rows := range groupSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("forward/%v/%v", rows, l), func(s *opstest.Stage) args { return groupedForward(s, l, d, rows) })
			add(fmt.Sprintf("dgrad/%v/%v", rows, l), func(s *opstest.Stage) args { return groupedDgrad(s, l, d, rows) })
			add(fmt.Sprintf("wgrad/%v/%v", rows, l), func(s *opstest.Stage) args { return groupedWgrad(s, l, d, rows) })
		}
		add(fmt.Sprintf("single_output/%v", rows), func(s *opstest.Stage) args {
			a := groupedForward(s, opstest.Dense, d, rows)
			a.SingleOutput, a.D = true, []*tensor.Tensor{s.Out(opstest.Padded, d, opstest.Total(rows), groupOut)}
			return a
		})
	}
	other := tensor.F32
	if d == tensor.F32 {
		other = tensor.BF16
	}
	rows := []int{5, 0, 17, 3}
	bias := func(s *opstest.Stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.In(opstest.Dense, d, groupOut) })
	}
	gelu := func(s *opstest.Stage, a *args) {
		a.PreGeluOut = each(rows, func(m int) *tensor.Tensor { return s.Out(opstest.Dense, d, m, groupOut) })
	}
	edit := func(name string, make func(*opstest.Stage, opstest.Layout, tensor.DType, []int) args, edits ...func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := make(s, opstest.Dense, d, rows)
			for _, e := range edits {
				e(s, &a)
			}
			return a
		})
	}
	edit("bias", groupedForward, bias)
	edit("gelu", groupedForward, gelu)
	edit("bias,gelu", groupedForward, bias, gelu)
	edit("single_output,bias,gelu,accumulate", groupedForward, bias, gelu, func(s *opstest.Stage, a *args) {
		a.SingleOutput, a.Accumulate, a.D = true, true, []*tensor.Tensor{s.In(opstest.Dense, d, opstest.Total(rows), groupOut)}
	})
	edit("dgrad,gelu", groupedDgrad, func(s *opstest.Stage, a *args) {
		a.PreGeluOut = each(rows, func(m int) *tensor.Tensor { return s.Scaled(4, opstest.Dense, d, m, groupIn) })
	})
	edit("dgrad,bias", groupedDgrad, func(s *opstest.Stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.Out(opstest.Dense, d, groupOut) })
	})
	edit("wgrad,bias,accumulate_into_"+other.String(), groupedWgrad, func(s *opstest.Stage, a *args) {
		a.Bias = each(rows, func(int) *tensor.Tensor { return s.Out(opstest.Dense, other, groupOut) })
		a.Accumulate, a.D = true, each(rows, func(int) *tensor.Tensor { return s.In(opstest.Dense, other, groupOut, groupIn) })
	})
	edit("nan_in_one_group", groupedForward, func(_ *opstest.Stage, a *args) { a.B[2].Set(math.NaN(), 1, 1) })
	return cases
}

// groupedTensor makes one tensor, an input or an output, whose rows belong to groups.
func groupedTensor(s *opstest.Stage, in bool, l opstest.Layout, d, index tensor.DType, cols int, rows []int) gemm.GroupedTensor {
	g := gemm.GroupedTensor{FirstDims: s.Out(opstest.Dense, index, len(rows))}
	if in {
		g.Data = s.In(l, d, opstest.Total(rows), cols)
	} else {
		g.Data = s.Out(l, d, opstest.Total(rows), cols)
	}
	sizes := make([]float64, len(rows))
	for i, m := range rows {
		sizes[i] = float64(m)
	}
	s.Fill(g.FirstDims, sizes)
	return g
}

// alike makes n matrices of equal size in one tensor.
func alike(s *opstest.Stage, in bool, l opstest.Layout, d tensor.DType, n, rows, cols int) gemm.GroupedTensor {
	if in {
		return gemm.GroupedTensor{Data: s.In(l, d, n*rows, cols), NumTensors: n}
	}
	return gemm.GroupedTensor{Data: s.Out(l, d, n*rows, cols), NumTensors: n}
}

// grouped returns the cases that the products of grouped tensors share. make makes a call without
// bias and factors.
func grouped(d tensor.DType, withBias bool, make func(s *opstest.Stage, l opstest.Layout, index tensor.DType, rows []int) gemm.GroupedGemmArgs) []opstest.Case[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, rows := range groupSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			for _, index := range []tensor.DType{tensor.I32, tensor.I64} {
				add(fmt.Sprintf("%v/%v/%v", rows, l, index), func(s *opstest.Stage) args { return make(s, l, index, rows) })
			}
		}
	}
	if d == tensor.F32 {
		rows := []int{3, manyRows}
		cases = append(cases, opstest.Case[args]{Name: fmt.Sprint(rows), Work: rarely, Terms: manyRows, Make: func(s *opstest.Stage) args { return make(s, opstest.Dense, tensor.I64, rows) }})
	}
	rows := []int{5, 0, 17, 3}
	edit := func(name string, edits ...func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := make(s, opstest.Dense, tensor.I64, rows)
			for _, e := range edits {
				e(s, &a)
			}
			return a
		})
	}
	update := func(s *opstest.Stage, a *args) {
		if a.D.Data != nil {
			s.Fill(a.D.Data, s.In(opstest.Dense, d, a.D.Data.Shape()...).Float64s())
		}
		for _, t := range a.D.List {
			s.Fill(t, s.In(opstest.Dense, d, t.Shape()...).Float64s())
		}
	}
	edit("alpha", func(s *opstest.Stage, a *args) { a.Alpha = s.Values(tensor.F32, 0.5, 2, -1, 0) })
	edit("beta", update, func(s *opstest.Stage, a *args) { a.Beta = s.Values(tensor.F32, 1, 2, 0.5, -1) })
	edit("alpha,beta", update, func(s *opstest.Stage, a *args) {
		a.Alpha, a.Beta = s.Values(tensor.F32, 1, 1, 0.5, 2), s.Values(tensor.F32, 0.5, 1, 1, 2)
	})
	// With a factor of 0, D is not read: it holds NaN.
	edit("beta=0", func(s *opstest.Stage, a *args) { a.Beta = s.Values(tensor.F32, 0, 0, 0, 0) })
	if withBias {
		bias := func(s *opstest.Stage, a *args) { a.Bias = s.In(opstest.Padded, d, len(rows), a.D.Data.Shape()[1]) }
		edit("bias", bias)
		edit("bias,alpha,beta", bias, update, func(s *opstest.Stage, a *args) {
			a.Alpha, a.Beta = s.Values(tensor.F32, 1, 1, 0.5, 2), s.Values(tensor.F32, 0.5, 1, 1, 2)
		})
	}
	return cases
}

func groupedTensorCases(d tensor.DType) []opstest.Case[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	cases := grouped(d, true, func(s *opstest.Stage, l opstest.Layout, index tensor.DType, rows []int) args {
		return args{
			A: alike(s, true, l, d, len(rows), groupOut, groupIn), TransA: true,
			B: groupedTensor(s, true, l, d, index, groupIn, rows), D: groupedTensor(s, false, l, d, index, groupOut, rows),
		}
	})
	for _, rows := range groupSizes() {
		cases = append(cases, opstest.Case[args]{Name: fmt.Sprintf("wgrad/%v", rows), Make: func(s *opstest.Stage) args {
			return args{
				A: groupedTensor(s, true, opstest.Dense, d, tensor.I64, groupIn, rows),
				B: groupedTensor(s, true, opstest.Dense, d, tensor.I64, groupOut, rows), TransB: true,
				D: alike(s, false, opstest.Dense, d, len(rows), groupOut, groupIn),
			}
		}})
	}
	return append(cases, squareCases(func(s *opstest.Stage, n int) args {
		return args{
			A: alike(s, true, opstest.Dense, d, n, groupIn, groupIn), B: alike(s, true, opstest.Padded, d, n, groupIn, groupIn),
			D: alike(s, false, opstest.Dense, d, n, groupIn, groupIn),
		}
	})...)
}

func discreteInCases(d tensor.DType) []opstest.Case[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	weights := func(s *opstest.Stage, l opstest.Layout, rows []int, out, in int) gemm.GroupedTensor {
		return gemm.GroupedTensor{List: each(rows, func(int) *tensor.Tensor { return s.In(l, d, out, in) })}
	}
	cases := grouped(d, true, func(s *opstest.Stage, l opstest.Layout, index tensor.DType, rows []int) args {
		return args{
			A: weights(s, l, rows, groupOut, groupIn), TransA: true,
			B: groupedTensor(s, true, l, d, index, groupIn, rows), D: groupedTensor(s, false, l, d, index, groupOut, rows),
		}
	})
	for _, rows := range groupSizes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			cases = append(cases, opstest.Case[args]{Name: fmt.Sprintf("dgrad/%v/%v", rows, l), Make: func(s *opstest.Stage) args {
				return args{
					A: weights(s, l, rows, groupOut, groupIn),
					B: groupedTensor(s, true, l, d, tensor.I64, groupOut, rows), D: groupedTensor(s, false, l, d, tensor.I64, groupIn, rows),
				}
			}})
		}
	}
	return append(cases, squareCases(func(s *opstest.Stage, n int) args {
		return args{
			A: weights(s, opstest.Dense, make([]int, n), groupIn, groupIn), B: alike(s, true, opstest.Dense, d, n, groupIn, groupIn),
			D: alike(s, false, opstest.Padded, d, n, groupIn, groupIn),
		}
	})...)
}

func discreteOutCases(d tensor.DType) []opstest.Case[gemm.GroupedGemmArgs] {
	type args = gemm.GroupedGemmArgs
	cases := grouped(d, false, func(s *opstest.Stage, l opstest.Layout, index tensor.DType, rows []int) args {
		return args{
			A: groupedTensor(s, true, l, d, index, groupIn, rows),
			B: groupedTensor(s, true, l, d, index, groupOut, rows), TransB: true,
			D: gemm.GroupedTensor{List: each(rows, func(int) *tensor.Tensor { return s.Out(l, d, groupOut, groupIn) })},
		}
	})
	return append(cases, squareCases(func(s *opstest.Stage, n int) args {
		return args{
			A: alike(s, true, opstest.Dense, d, n, groupIn, groupIn), B: alike(s, true, opstest.Padded, d, n, groupIn, groupIn),
			D: gemm.GroupedTensor{List: each(make([]int, n), func(int) *tensor.Tensor { return s.Out(opstest.Dense, d, groupIn, groupIn) })},
		}
	})...)
}

// squareCases are products of square members, each of which may be read the other way round.
func squareCases(make func(s *opstest.Stage, n int) gemm.GroupedGemmArgs) []opstest.Case[gemm.GroupedGemmArgs] {
	var cases []opstest.Case[gemm.GroupedGemmArgs]
	for _, n := range []int{1, 3} {
		for turned := range 4 {
			transA, transB := turned&1 != 0, turned&2 != 0
			cases = append(cases, opstest.Case[gemm.GroupedGemmArgs]{Name: fmt.Sprintf("square/%d/trans_a=%v,trans_b=%v", n, transA, transB), Make: func(s *opstest.Stage) gemm.GroupedGemmArgs {
				a := make(s, n)
				a.TransA, a.TransB = transA, transB
				return a
			}})
		}
	}
	return cases
}

// groupedGemmGradCases are the calls of two experts with bias.
func groupedGemmGradCases() []opstest.GradCase {
	type args = gemm.TEGeneralGroupedGemmArgs
	rows := []int{3, 2}
	return []opstest.GradCase{
		opstest.NewGradCase("dgrad", gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			f, b := groupedForward(s, opstest.Dense, tensor.F64, rows), groupedDgrad(s, opstest.Dense, tensor.F64, rows)
			y, dy := s.F64Out(5, groupOut), s.F64In(5, groupOut)
			f.SingleOutput, f.D, b.A = true, []*tensor.Tensor{y}, f.A
			b.B = rowBlocks(s, dy, rows)
			return opstest.Derivation[args, args]{
				Forward: []args{f}, Backward: []args{b}, Y: y, DY: dy,
				Wrt: []opstest.Derivative{{Name: "x_0", X: f.B[0], DX: b.D[0]}, {Name: "x_1", X: f.B[1], DX: b.D[1]}},
			}
		}),
		opstest.NewGradCase("wgrad,bias", gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemm, func(s *opstest.Stage) opstest.Derivation[args, args] {
			f, b := groupedForward(s, opstest.Dense, tensor.F64, rows), groupedWgrad(s, opstest.Dense, tensor.F64, rows)
			y, dy := s.F64Out(5, groupOut), s.F64In(5, groupOut)
			f.SingleOutput, f.D, b.A = true, []*tensor.Tensor{y}, f.B
			b.B = rowBlocks(s, dy, rows)
			f.Bias = each(rows, func(int) *tensor.Tensor { return s.F64In(groupOut) })
			b.Bias = each(rows, func(int) *tensor.Tensor { return s.F64Out(groupOut) })
			return opstest.Derivation[args, args]{
				Forward: []args{f}, Backward: []args{b}, Y: y, DY: dy,
				Wrt: []opstest.Derivative{{Name: "W_0", X: f.A[0], DX: b.D[0]}, {Name: "W_1", X: f.A[1], DX: b.D[1]}, {Name: "bias_1", X: f.Bias[1], DX: b.Bias[1]}},
			}
		}),
	}
}

// rowBlocks cuts a matrix into blocks of rows.
func rowBlocks(s *opstest.Stage, x *tensor.Tensor, rows []int) []*tensor.Tensor {
	s.T.Helper()
	first := 0
	return each(rows, func(m int) *tensor.Tensor {
		block, err := x.Slice(0, first, first+m)
		if err != nil {
			s.T.Fatalf("opstest: %v", err)
		}
		first += m
		return block
	})
}
