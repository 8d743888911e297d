package opscases

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/tensor"
)

// scoreShapes are shapes of scores [b, h, sq, sk].
func scoreShapes() [][]int {
	return [][]int{{1, 1, 1, 1}, {2, 3, 4, 5}, {1, 2, 7, 3}, {2, 1, 5, 130}, {1, 2, 9, 9}, {2, 2, 0, 4}, {2, 2, 4, 0}, {0, 2, 3, 3}}
}

func squareShapes() [][]int {
	return [][]int{{1, 1, 1}, {3, 5, 5}, {2, 33, 33}, {1, 67, 67}, {0, 4, 4}, {2, 0, 0}}
}

func softmaxCases(d tensor.DType) []opstest.Case[softmax.SoftmaxArgs] {
	return scaledCases(d, scoreShapes(), false)
}

func triangularSoftmaxCases(d tensor.DType) []opstest.Case[softmax.SoftmaxArgs] {
	return scaledCases(d, squareShapes(), true)
}

func alignedSoftmaxCases(d tensor.DType) []opstest.Case[softmax.SoftmaxArgs] {
	return scaledCases(d, scoreShapes(), true)
}

// corner returns the index of the last element of the first row of the first matrix.
func corner(shape []int) []int {
	at := make([]int, len(shape))
	at[len(at)-1] = shape[len(at)-1] - 1
	return at
}

// scaledCases returns the cases of a softmax without a mask operand. With causal, the first row of
// a matrix does not see the last column.
func scaledCases(d tensor.DType, shapes [][]int, causal bool) []opstest.Case[softmax.SoftmaxArgs] {
	type args = softmax.SoftmaxArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, shape := range shapes {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *opstest.Stage) args {
				return args{Input: s.Scaled(4, l, d, shape...), Output: s.Out(l, d, shape...), ScaleFactor: 0.75}
			})
		}
	}
	shape := shapes[1]
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := args{Input: s.Scaled(4, opstest.Dense, d, shape...), Output: s.Out(opstest.Dense, d, shape...), ScaleFactor: 0.75}
			change(s, &a)
			return a
		})
	}
	edit("in_place", func(_ *opstest.Stage, a *args) { a.Output = a.Input })
	edit("scale=0", func(_ *opstest.Stage, a *args) { a.ScaleFactor = 0 })
	edit("scale=-1", func(_ *opstest.Stage, a *args) { a.ScaleFactor = -1 })
	edit("large_logits", func(_ *opstest.Stage, a *args) { a.ScaleFactor = 7.5 })
	edit("far_from_0", func(s *opstest.Stage, a *args) {
		v := a.Input.Float64s()
		for i := range v {
			v[i] = float64(512 + 4*(i%3)) // held by every dtype
		}
		s.Fill(a.Input, v)
		a.ScaleFactor = 0.5
	})
	edit("equal_logits", func(s *opstest.Stage, a *args) { s.Fill(a.Input, make([]float64, a.Input.NumElements())) })
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		at := make([]int, len(shape))
		at[len(at)-2] = shape[len(at)-2] - 1
		edit(fmt.Sprintf("%v_in_the_last_row", v), func(_ *opstest.Stage, a *args) { a.Input.Set(v, at...) })
	}
	edit("nothing_but_minus_inf", func(_ *opstest.Stage, a *args) {
		at := make([]int, len(shape))
		for at[len(at)-1] = range shape[len(shape)-1] {
			a.Input.Set(math.Inf(-1), at...)
		}
	})
	if causal {
		edit("nan_under_the_mask", func(_ *opstest.Stage, a *args) { a.Input.Set(math.NaN(), corner(shape)...) })
	}
	return cases
}

func softmaxBackwardCases(d tensor.DType) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	return scaledBackwardCases(d, scoreShapes(), nil)
}

func triangularSoftmaxBackwardCases(d tensor.DType) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	return scaledBackwardCases(d, squareShapes(), bottomRight)
}

func alignedSoftmaxBackwardCases(d tensor.DType) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	return scaledBackwardCases(d, scoreShapes(), bottomRight)
}

// hides reports whether column j does not belong to the softmax of row i of a matrix.
type hides = func(i, j, rows, cols int) bool

// bottomRight is a causal mask that is aligned to the bottom right.
func bottomRight(i, j, rows, cols int) bool { return j > i+cols-rows }

// results returns the results of a softmax of random logits.
func results(s *opstest.Stage, l opstest.Layout, d tensor.DType, shape []int, hidden hides) *tensor.Tensor {
	s.T.Helper()
	y := s.In(l, d, shape...)
	s.Fill(y, fillSoftmax(s, y, 3, hidden, nil))
	return y
}

// fillSoftmax returns what the documentation of the forward ops defines, with a mask of one batch
// or nil. A float64 can hold the exponentials of the logits that the cases make, so no maximum is
// subtracted.
func fillSoftmax(s *opstest.Stage, x *tensor.Tensor, scale float64, hidden hides, mask *tensor.Tensor) []float64 {
	s.T.Helper()
	shape, y := x.Shape(), x.Float64s()
	rows, cols := shape[len(shape)-2], shape.Cols()
	for r := range shape.Rows() {
		row, sum := y[r*cols:(r+1)*cols], 0.0
		for j, v := range row {
			row[j] = math.Exp(scale * v)
			switch {
			case hidden != nil && hidden(r%rows, j, rows, cols), mask != nil && mask.DType() == tensor.U8 && mask.At(0, 0, r%rows, j) == 1:
				row[j] = 0
			case mask != nil && mask.DType().IsFloat():
				row[j] *= math.Exp(mask.At(0, 0, r%rows, j))
			}
			sum += row[j]
		}
		for j := range row {
			row[j] /= max(sum, math.SmallestNonzeroFloat64)
		}
	}
	return y
}

func scaledBackwardCases(d tensor.DType, shapes [][]int, hidden hides) []opstest.Case[softmax.SoftmaxBackwardArgs] {
	type args = softmax.SoftmaxBackwardArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	for _, shape := range shapes {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded, opstest.Turned} {
			add(fmt.Sprintf("%v/%v", tensor.Shape(shape), l), func(s *opstest.Stage) args {
				return args{OutputGrads: s.In(l, d, shape...), SoftmaxResults: results(s, l, d, shape, hidden), Output: s.Out(l, d, shape...), ScaleFactor: 0.75}
			})
		}
	}
	shape := shapes[1]
	edit := func(name string, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := args{
				OutputGrads: s.In(opstest.Dense, d, shape...), SoftmaxResults: results(s, opstest.Dense, d, shape, hidden), Output: s.Out(opstest.Dense, d, shape...), ScaleFactor: 0.75,
			}
			change(s, &a)
			return a
		})
	}
	edit("into_output_grads", func(_ *opstest.Stage, a *args) { a.Output = a.OutputGrads })
	edit("scale=-2", func(_ *opstest.Stage, a *args) { a.ScaleFactor = -2 })
	edit("row_of_zeros", func(_ *opstest.Stage, a *args) {
		at := make([]int, len(shape))
		at[len(at)-2] = shape[len(at)-2] - 1
		for at[len(at)-1] = range shape[len(shape)-1] {
			a.SoftmaxResults.Set(0, at...)
		}
	})
	edit("nan", func(_ *opstest.Stage, a *args) {
		at := make([]int, len(shape))
		at[len(at)-2] = shape[len(at)-2] - 1
		a.OutputGrads.Set(math.NaN(), at...)
	})
	if hidden != nil {
		edit("nan_under_the_mask", func(_ *opstest.Stage, a *args) { a.OutputGrads.Set(math.NaN(), corner(shape)...) })
	}
	return cases
}

func maskedSoftmaxCases(d tensor.DType) []opstest.Case[softmax.ScaledMaskedSoftmaxForwardArgs] {
	type args = softmax.ScaledMaskedSoftmaxForwardArgs
	var cases []opstest.Case[args]
	add := func(name string, make func(*opstest.Stage) args) {
		cases = append(cases, opstest.Case[args]{Name: name, Make: make})
	}
	call := func(s *opstest.Stage, l opstest.Layout, mask tensor.DType, batches int, shape []int) args {
		a := args{Input: s.Scaled(4, l, d, shape...), Output: s.Out(l, d, shape...), ScaleFactor: 0.75}
		a.Mask = s.In(l, mask, batches, 1, shape[2], shape[3])
		return a
	}
	for _, shape := range scoreShapes() {
		for _, l := range []opstest.Layout{opstest.Dense, opstest.Padded} {
			for _, mask := range []tensor.DType{tensor.U8, tensor.Bool} {
				add(fmt.Sprintf("%v/%v/%v", tensor.Shape(shape), l, mask), func(s *opstest.Stage) args { return call(s, l, mask, shape[0], shape) })
			}
		}
	}
	shape := []int{2, 3, 4, 6}
	edit := func(name string, mask tensor.DType, batches int, change func(*opstest.Stage, *args)) {
		add(name, func(s *opstest.Stage) args {
			a := call(s, opstest.Dense, mask, batches, shape)
			change(s, &a)
			return a
		})
	}
	edit("one_mask_for_all", tensor.U8, 1, func(*opstest.Stage, *args) {})
	edit("in_place", tensor.Bool, 2, func(_ *opstest.Stage, a *args) { a.Output = a.Input })
	edit("row_masked_throughout", tensor.U8, 2, func(_ *opstest.Stage, a *args) {
		for j := range 6 {
			a.Mask.Set(1, 1, 0, 2, j)
		}
	})
	edit("nothing_masked", tensor.U8, 2, func(s *opstest.Stage, a *args) { s.Fill(a.Mask, make([]float64, a.Mask.NumElements())) })
	edit("bytes_that_are_not_1", tensor.U8, 1, func(_ *opstest.Stage, a *args) {
		for j, v := range []float64{0, 1, 2, 3, 128, 255} {
			a.Mask.Set(v, 0, 0, 1, j)
		}
	})
	edit("logits_below_the_masked_one", tensor.U8, 1, func(s *opstest.Stage, a *args) {
		s.Shift(a.Input, -16)
		a.ScaleFactor = 4096 // −49152 and below
		for j := range 6 {
			a.Mask.Set(float64(j%2), 0, 0, 0, j)
		}
	})
	edit("nan_under_the_mask", tensor.U8, 1, func(_ *opstest.Stage, a *args) {
		a.Mask.Set(1, 0, 0, 1, 3)
		a.Mask.Set(0, 0, 0, 1, 4)
		a.Input.Set(math.NaN(), 1, 1, 1, 3)
	})
	edit("nan", tensor.U8, 1, func(_ *opstest.Stage, a *args) {
		a.Mask.Set(0, 0, 0, 1, 3)
		a.Input.Set(math.NaN(), 1, 1, 1, 3)
	})
	for _, mask := range opstest.ComputeDTypes() {
		edit("added/"+mask.String(), mask, 2, func(*opstest.Stage, *args) {})
	}
	edit("added/one_for_all", d, 1, func(*opstest.Stage, *args) {})
	edit("added/minus_inf", d, 1, func(_ *opstest.Stage, a *args) { a.Mask.Set(math.Inf(-1), 0, 0, 2, 4) })
	edit("added/nothing_but_minus_inf", d, 1, func(_ *opstest.Stage, a *args) {
		for j := range 6 {
			a.Mask.Set(math.Inf(-1), 0, 0, 2, j)
		}
	})
	edit("added/minus_ten_thousand", d, 1, func(_ *opstest.Stage, a *args) { a.Mask.Set(-10000, 0, 0, 2, 4) })
	edit("added/strided", d, 2, func(s *opstest.Stage, a *args) { a.Mask = s.In(opstest.Turned, d, 2, 1, 4, 6) })
	return cases
}
