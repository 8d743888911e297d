package reference

import (
	"math"

	softmaxops "github.com/primus-fl/primus/ops/softmax"
	"github.com/primus-fl/primus/tensor"
)

// columns returns how many columns, from the first, belong to the softmax of row i of a matrix
// [rows, cols] of scores.
type columns func(i, rows, cols int) int

func everyColumn(_, _, cols int) int { return cols }

// causalColumns is a causal mask aligned to the bottom right.
func causalColumns(i, rows, cols int) int { return max(0, i+cols-rows+1) }

// softmax returns the impl of an op like softmax.ScaledSoftmaxForward.
func softmax(seen columns) func(softmaxops.SoftmaxArgs) error {
	return func(a softmaxops.SoftmaxArgs) error {
		x := a.Input.Float64s()
		y := make([]float64, len(x))
		eachRow(a.Input.Shape(), seen, func(lo, hi int) {
			copy(y[lo:hi], normalised(scaled(x[lo:hi], a.ScaleFactor)))
		})
		return a.Output.SetFloat64s(y)
	}
}

// softmaxGradient returns the impl of an op like softmax.ScaledSoftmaxBackward.
func softmaxGradient(seen columns) func(softmaxops.SoftmaxBackwardArgs) error {
	return func(a softmaxops.SoftmaxBackwardArgs) error {
		dy, y := a.OutputGrads.Float64s(), a.SoftmaxResults.Float64s()
		dx := make([]float64, len(y))
		eachRow(a.SoftmaxResults.Shape(), seen, func(lo, hi int) {
			sum := dot(y[lo:hi], dy[lo:hi])
			for j := lo; j < hi; j++ {
				dx[j] = float64(a.ScaleFactor) * y[j] * (dy[j] - sum)
			}
		})
		return a.Output.SetFloat64s(dx)
	}
}

// maskedLogit is the value of a masked logit. A row whose largest logit it is gives zeros.
const maskedLogit = -10000

// maskedSoftmax implements softmax.ScaledMaskedSoftmaxForward.
func maskedSoftmax(a softmaxops.ScaledMaskedSoftmaxForwardArgs) error {
	shape := a.Input.Shape()
	x, mask := a.Input.Float64s(), a.Mask.Float64s()
	y := make([]float64, len(x))
	matrix := shape[2] * shape[3]
	eachRow(shape, everyColumn, func(lo, hi int) {
		batch, within := lo/(shape[1]*matrix), lo%matrix
		if a.Mask.Shape()[0] == 1 {
			batch = 0
		}
		z, m := scaled(x[lo:hi], a.ScaleFactor), mask[batch*matrix+within:]
		if a.Mask.DType().IsFloat() {
			for j := range z {
				z[j] += m[j]
			}
			copy(y[lo:hi], normalised(z))
			return
		}
		for j := range z {
			if m[j] == 1 {
				z[j] = maskedLogit
			}
		}
		if largestOf(z) != maskedLogit {
			copy(y[lo:hi], normalised(z))
		}
	})
	return a.Output.SetFloat64s(y)
}

// eachRow calls f with the range of the columns that belong to the softmax of each row, if there
// are any.
func eachRow(shape tensor.Shape, seen columns, f func(lo, hi int)) {
	rows, cols := shape[len(shape)-2], shape.Cols()
	for r := range shape.Rows() {
		if n := seen(r%rows, rows, cols); n > 0 {
			f(r*cols, r*cols+n)
		}
	}
}

func scaled(x []float64, scale float32) []float64 {
	z := make([]float64, len(x))
	for j, v := range x {
		z[j] = float64(scale) * v
	}
	return z
}

// normalised returns the softmax of z.
func normalised(z []float64) []float64 {
	most, sum := largestOf(z), 0.0
	for j, v := range z {
		z[j] = math.Exp(v - most)
		sum += z[j]
	}
	for j := range z {
		z[j] /= sum
	}
	return z
}
