package vector

import "github.com/primus-fl/primus/internal/race"

// Dot returns Σ x[i]·y[i] over the elements of x.
//
// Products and sums are in float32, in several partial sums of fixed layout. An
// empty x gives 0. NaN and Inf propagate.
func Dot(x, y []float32) float32 {
	y = y[:len(x)]
	race.Read(x)
	race.Read(y)
	return dot(x, y)
}

// Sum returns Σ x[i], added in float32 in several partial sums of fixed layout.
// An empty x gives 0. NaN and Inf propagate.
func Sum(x []float32) float32 {
	race.Read(x)
	return sum(x)
}

// Max returns the largest element of x, −Inf for an empty x. When x holds a NaN the result is NaN
// or the largest of some of the other elements.
func Max(x []float32) float32 {
	race.Read(x)
	return maximum(x)
}

// SumSquares returns Σ x[i]², summed in f64 in several partial sums.
func SumSquares(x []float32) float64 {
	race.Read(x)
	done, sum := sumSquaresVector(x)
	return sum + sumSquaresGeneric(x[done:])
}
