package opstest

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/tensor"
)

// minBiased is the fewest elements whose average says something.
const minBiased = 64

// bias says by how much results are off on average, if that is more than rounding explains: each
// element may be off by the arithmetic in f32, whose bound is tol, and by half a unit of its dtype,
// but the errors of roundings to nearest have no direction. It looks for one direction and for one
// towards or away from 0.
func bias(want, got *tensor.Tensor, tol tensor.Tolerance) string {
	d := got.DType()
	if !d.IsFloat() || got.NumElements() < minBiased {
		return ""
	}
	if d.Size() == 1 {
		return unequal(want, got)
	}
	unit, smallest := narrow(d)
	var sum, outward, arithmetic, squares float64
	n := 0
	wanted := want.Float64s()
	for i, g := range got.Float64s() {
		w := wanted[i]
		e := g - w
		if math.IsNaN(e) || math.IsInf(e, 0) || w == 0 || math.Abs(w) < smallest {
			continue
		}
		n++
		sum += e
		outward += math.Copysign(e, e*w)
		arithmetic += tol.Abs + tol.Rel*math.Abs(w)
		if unit > 0 {
			half := unit * powerBelow(w)
			squares += half * half
		}
	}
	if n < minBiased {
		return ""
	}
	// Rounding errors are uniform: their deviation is 1/√3 of half a unit. Results of operands that
	// have few fractions have few errors. Six deviations.
	errors := float64(min(n, 128))
	bound := arithmetic/4/float64(n) + 6*math.Sqrt(squares/3/float64(n)/errors)
	for _, mean := range []float64{sum / float64(n), outward / float64(n)} {
		if math.Abs(mean) > bound {
			return fmt.Sprintf("the mean error of %d elements is %.3g, at most %.3g is rounding", n, mean, bound)
		}
	}
	return ""
}

// powerBelow returns the largest power of two that is at most |w|, 0 for 0.
func powerBelow(w float64) float64 {
	return math.Float64frombits(math.Float64bits(w) & (0x7ff << 52))
}

// narrow returns half the distance of the numbers of a narrow dtype at 1, which is the largest
// relative error of rounding to it, and its smallest normal number; 0 for other dtypes.
func narrow(d tensor.DType) (unit, smallest float64) {
	if d == tensor.BF16 {
		return 0x1p-8, 0x1p-126
	}
	if d == tensor.F16 {
		return 0x1p-11, 0x1p-14
	}
	return 0, 0
}

// unequal says how many results of 8 bits differ, if those are more than the few whose exact values
// lie so near the middle of two numbers that arithmetic in f32 takes the other one.
func unequal(want, got *tensor.Tensor) string {
	differ, n := 0, got.NumElements()
	wanted := want.Float64s()
	for i, g := range got.Float64s() {
		if w := wanted[i]; g != w && !(math.IsNaN(g) && math.IsNaN(w)) {
			differ++
		}
	}
	if most := 2 + n/64; differ > most {
		return fmt.Sprintf("%d of %d elements differ, at most %d is rounding", differ, n, most)
	}
	return ""
}
