package vector

import "github.com/primus-fl/primus/internal/race"

// ExpSum stores shifted exponentials and returns their sum:
//
//	dst[i] = eˣ⁽ⁱ⁾⁻ˢʰⁱᶠᵗ        Σ dst[i]
//
// for every element of x, each exponential as Exp1 defines it. dst may be x. An infinite shift
// gives NaN where x is the same infinity.
func ExpSum(dst, x []float32, shift float32) (sum float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	return expSum(dst, x, shift)
}

// ExpScale stores multiples of shifted exponentials:
//
//	dst[i] = a·eˣ⁽ⁱ⁾⁻ˢʰⁱᶠᵗ
//
// for every element of x, each exponential as Exp1 defines it. dst may be x.
func ExpScale(dst, x []float32, shift, a float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
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
	race.Read(x)
	race.Write(dst)
	sigmoid(dst, x)
}
