package simd

// Exp stores the exponential function:
//
//	dst[i] = eˣ⁽ⁱ⁾
//
// for every element of x, within 2 units in the last place. Results below the
// smallest normal float32 (x < −87.33654) are 0, those beyond the largest one
// (x > 88.72283) are +Inf; NaN stays NaN. dst may be x.
//
// The argument is reduced by multiples of ln 2, whose high part has so few bits
// that the product is exact (Cody and Waite 1980); the rest is a polynomial of
// degree 6 fitted to eʳ on |r| ≤ ln 2 / 2 for least relative error, 3·10⁻⁹.
func Exp(dst, x []float32) {
	dst = dst[:len(x)]
	raceRead(x)
	raceWrite(dst)
	exp(dst, x)
}

// ExpSum stores shifted exponentials and returns their sum:
//
//	dst[i] = eˣ⁽ⁱ⁾⁻ˢʰⁱᶠᵗ        Σ dst[i]
//
// for every element of x, each exponential as by Exp. dst may be x. An infinite shift gives NaN
// where x is the same infinity.
func ExpSum(dst, x []float32, shift float32) (sum float32) {
	dst = dst[:len(x)]
	raceRead(x)
	raceWrite(dst)
	return expSum(dst, x, shift)
}

// ExpScale stores multiples of shifted exponentials:
//
//	dst[i] = a·eˣ⁽ⁱ⁾⁻ˢʰⁱᶠᵗ
//
// for every element of x, each exponential as by Exp. dst may be x.
func ExpScale(dst, x []float32, shift, a float32) {
	dst = dst[:len(x)]
	raceRead(x)
	raceWrite(dst)
	expScale(dst, x, shift, a)
}

// Sigmoid stores the logistic function:
//
//	dst[i] = 1 / (1 + e⁻ˣ⁽ⁱ⁾)
//
// for every element of x, within 4 units in the last place of a normal result.
// NaN stays NaN. dst may be x.
func Sigmoid(dst, x []float32) {
	dst = dst[:len(x)]
	raceRead(x)
	raceWrite(dst)
	sigmoid(dst, x)
}
