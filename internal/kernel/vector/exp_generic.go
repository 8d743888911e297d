package vector

import "math"

// The constants of the exponential function; the assembly has the same.
const (
	expLow  = -87.33654 // below, the result is not a normal number
	expHigh = 89        // above, the result overflows
	log2e   = 1.44269504
	ln2High = 0.69140625 // 8 bits: its product with an exponent is exact
	ln2Low  = 0.00174093055994531
	expC2   = 0.499999934113973
	expC3   = 0.166665200894958
	expC4   = 0.0416683943635846
	expC5   = 0.00836878256777872
	expC6   = 0.00138144672109083

	// roundMagic, 1.5·2²³, added to a small number leaves the number, rounded to an integer, in the
	// low bits.
	roundMagic = 12582912
)

// Exp1 returns eˣ within 2 units in the last place, in plain Go. Results below the smallest normal
// float32 (x < −87.33654) are 0, those beyond the largest one (x > 88.72283) are +Inf; NaN stays
// NaN.
//
// The argument is reduced by multiples of ln 2, whose high part has so few bits that the product is
// exact (Cody and Waite 1980); the rest is a polynomial of degree 6 fitted to eʳ on |r| ≤ ln 2 / 2
// for least relative error, 3·10⁻⁹. The assembly computes the same, with fewer roundings.
func Exp1(x float32) float32 {
	switch {
	case x < expLow:
		return 0
	case x > expHigh:
		return float32(math.Inf(1))
	case x != x:
		return x
	}
	k := float32(x*log2e) + roundMagic
	n := int32(math.Float32bits(k)) - 0x4b400000
	k -= roundMagic
	r := x - k*ln2High
	r -= k * ln2Low
	p := float32(expC6)
	p = p*r + expC5
	p = p*r + expC4
	p = p*r + expC3
	p = p*r + expC2
	p = p*(r*r) + r + 1
	half := n >> 1
	return p * powerOfTwo(half) * powerOfTwo(n-half)
}

// powerOfTwo returns 2ⁿ for the exponents of normal numbers.
func powerOfTwo(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

func expSumGeneric(dst, x []float32, shift float32) float32 {
	dst = dst[:len(x)]
	var sum float32
	for i, v := range x {
		e := Exp1(v - shift)
		dst[i] = e
		sum += e
	}
	return sum
}

func sigmoidGeneric(dst, x []float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = 1 / (1 + Exp1(-v))
	}
}

func expScaleGeneric(dst, x []float32, shift, a float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = a * Exp1(v-shift)
	}
}
