package reference

import (
	"math"

	"github.com/primus-fl/primus/tensor"
)

// Indexes returns the elements of an integer tensor.
func Indexes(t *tensor.Tensor) []int {
	values := t.Float64s()
	out := make([]int, len(values))
	for i, v := range values {
		out[i] = int(v)
	}
	return out
}

// Amax returns the largest magnitude, rounded to f32; NaNs are ignored.
func Amax(v []float64) float64 {
	largest := 0.0
	for _, x := range v {
		if x = math.Abs(x); x > largest {
			largest = x
		}
	}
	return ToF32(largest)
}

// ToF32 rounds to f32.
func ToF32(v float64) float64 { return float64(float32(v)) }

// OrAll returns the elements of t, or n times def when it was left out.
func OrAll(t *tensor.Tensor, n int, def float64) []float64 {
	if t != nil {
		return t.Float64s()
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = def
	}
	return x
}

// CopyRange copies n entries of the first axis, bit for bit.
func CopyRange(dst *tensor.Tensor, to int, src *tensor.Tensor, from, n int) error {
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

// Number returns the element of a tensor with a single one.
func Number(t *tensor.Tensor) float64 { return t.Float64s()[0] }

// IsFinite reports whether x is neither NaN nor infinite.
func IsFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
