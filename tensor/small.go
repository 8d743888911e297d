package tensor

import "math"

// Formats of block scaling. They are not element types: their bit patterns are held in a Tensor of
// U8, as the documentation of each op that uses them says.
type (
	// Float8E8M0 is a power of two: 2^(x−127), and NaN for 255. It has neither a sign nor a zero.
	// Source: OCP Microscaling Formats 1.0, section 5.4.1.
	Float8E8M0 uint8

	// Float4E2M1 holds one of 0, ½, 1, 1½, 2, 3, 4 and 6 in its low three bits and its sign in the
	// fourth; the upper four bits are ignored. It has neither infinities nor NaN. Source: OCP
	// Microscaling Formats 1.0, section 5.3.3.
	Float4E2M1 uint8
)

const e8m0NaN = 255

// Float32 returns the value of x, exactly.
func (x Float8E8M0) Float32() float32 {
	if x == e8m0NaN {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(x)-127))
}

// CeilFloat8E8M0 returns the least power of two that is not below f: 2^−127 for f ≤ 2^−127
// (including zero and negative numbers), 2^127 for every f above 2^126 (including infinity), and
// NaN for NaN.
func CeilFloat8E8M0(f float64) Float8E8M0 {
	switch {
	case math.IsNaN(f):
		return e8m0NaN
	case f <= 0x1p-127:
		return 0
	case f > 0x1p126:
		return e8m0NaN - 1
	}
	fraction, exp := math.Frexp(f) // f = fraction·2^exp, ½ ≤ fraction < 1
	if fraction == 0.5 {
		exp--
	}
	return Float8E8M0(exp + 127)
}

// Float32 returns the value of x, exactly.
func (x Float4E2M1) Float32() float32 {
	v := [...]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}[x&7]
	if x&8 != 0 {
		return -v
	}
	return v
}

// ToFloat4E2M1 rounds f once to the nearest E2M1 value, ties to even. Beyond 6 the result is ±6,
// and for NaN, which the format lacks, it is +6, as in the conversion of PTX.
func ToFloat4E2M1(f float64) Float4E2M1 {
	if math.IsNaN(f) {
		return 7
	}
	var sign Float4E2M1
	if math.Signbit(f) {
		sign = 8
	}
	// Codes count steps of ½ up to 2, of 1 up to 4, and of 2 from there on; rounding up to the end
	// of a binade gives the first code of the next one.
	a := math.Abs(f)
	switch {
	case a < 2:
		return sign | Float4E2M1(math.RoundToEven(2*a))
	case a < 4:
		return sign | Float4E2M1(math.RoundToEven(a)+2)
	case a < 6:
		return sign | Float4E2M1(math.RoundToEven(a/2)+4)
	default:
		return sign | 7
	}
}
