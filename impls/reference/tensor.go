package reference

import (
	"math"

	"github.com/primus-fl/primus/tensor"
)

// indexes returns the elements of an integer tensor.
func indexes(t *tensor.Tensor) []int {
	values := t.Float64s()
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = int(v)
	}
	return out
}

// amaxOf returns the largest magnitude, rounded to f32; NaNs are ignored.
func amaxOf(v []float64) float64 {
	largest := 0.0
	for _, x := range v {
		if x = math.Abs(x); x > largest {
			largest = x
		}
	}
	return toF32(largest)
}

// toF32 rounds to f32.
func toF32(v float64) float64 { return float64(float32(v)) }

// orAll returns the elements of t, or n times def when it was left out.
func orAll(t *tensor.Tensor, n int, def float64) []float64 {
	if t != nil {
		return t.Float64s()
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = def
	}
	return x
}

// copyRange copies n entries of the first axis, bit for bit.
func copyRange(dst *tensor.Tensor, to int, src *tensor.Tensor, from, n int) error {
	x, err := src.Slice(0, from, from+n)
	if err != nil {
		return err
	}
	y, err := dst.Slice(0, to, to+n)
	if err != nil {
		return err
	}
	return y.CopyFrom(x)
}

// number returns the element of a tensor with a single one.
func number(t *tensor.Tensor) float64 { return t.Float64s()[0] }

// isFinite reports whether x is neither NaN nor infinite.
func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
