package simd

// Dot returns Σ x[i]·y[i] over the elements of x.
//
// Products and sums are in float32, in several partial sums of fixed layout. An
// empty x gives 0. NaN and Inf propagate.
func Dot(x, y []float32) float32 {
	y = y[:len(x)]
	raceRead(x)
	raceRead(y)
	return dot(x, y)
}

// Sum returns Σ x[i], added in float32 in several partial sums of fixed layout.
// An empty x gives 0. NaN and Inf propagate.
func Sum(x []float32) float32 {
	raceRead(x)
	return sum(x)
}

// SumSquares returns Σ x[i]², added in float32 in several partial sums of fixed
// layout. An empty x gives 0. NaN and Inf propagate.
func SumSquares(x []float32) float32 {
	raceRead(x)
	return sumSquares(x)
}

// Max returns the largest element of x, −Inf for an empty x. When x holds a NaN the result is NaN
// or the largest of some of the other elements.
func Max(x []float32) float32 {
	raceRead(x)
	return maximum(x)
}
