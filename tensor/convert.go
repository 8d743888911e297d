package tensor

import "math"

// Conversions from a narrow type are exact. Conversions to a narrow type round the given float32 or
// float64 once, to nearest, ties to even. Subnormals are kept. Every NaN becomes a quiet NaN of the
// same sign.

// Float32 returns the value of b.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBFloat16 rounds f to the nearest bfloat16; beyond the largest finite value
// the result is an infinity.
func ToBFloat16(f float32) BFloat16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 {
		return BFloat16(u>>16 | 0x40)
	}
	return BFloat16((u + 0x7fff + u>>16&1) >> 16)
}

// Float32 returns the value of h.
func (h Float16) Float32() float32 {
	sign, exp, man := uint32(h)&0x8000<<16, uint32(h)>>10&0x1f, uint32(h)&0x3ff
	switch {
	case exp == 0: // a multiple of 2^−24
		return math.Float32frombits(sign | math.Float32bits(float32(man)*(1.0/(1<<24))))
	case exp < 0x1f:
		return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
	case man == 0:
		return math.Float32frombits(sign | 0x7f800000)
	default:
		return math.Float32frombits(sign | 0x7fc00000)
	}
}

// ToFloat16 rounds f to the nearest binary16; beyond 65504 plus half a unit the
// result is an infinity.
func ToFloat16(f float32) Float16 {
	u := math.Float32bits(f)
	sign, size := Float16(u>>16&0x8000), u&0x7fffffff
	switch {
	case size > 0x7f800000:
		return sign | 0x7e00
	case size >= 0x477ff000: // 65520, half a unit beyond the largest
		return sign | 0x7c00
	case size < 0x38800000: // below 2^−14: the unit of the sum is 2^−24
		return sign | Float16(math.Float32bits(math.Float32frombits(size)+0.5)-math.Float32bits(0.5))
	default:
		return sign | Float16((size+0xfff+size>>13&1-112<<23)>>13)
	}
}

// Float32 returns the value of x.
func (x Float8E4M3) Float32() float32 { return float32(e4m3.decode(uint32(x))) }

// ToFloat8E4M3 rounds f to the nearest E4M3 value. The format has no infinities:
// what rounds beyond 448 becomes NaN, as PyTorch's float8_e4m3fn conversion does.
func ToFloat8E4M3(f float32) Float8E4M3 { return Float8E4M3(e4m3.encode(float64(f))) }

// Float32 returns the value of x.
func (x Float8E5M2) Float32() float32 { return float32(e5m2.decode(uint32(x))) }

// ToFloat8E5M2 rounds f to the nearest E5M2 value; beyond 57344 plus half a unit
// the result is an infinity.
func ToFloat8E5M2(f float32) Float8E5M2 { return Float8E5M2(e5m2.encode(float64(f))) }

// miniFloat describes a binary floating-point format of at most 16 bits.
type miniFloat struct {
	expBits, manBits int
	finite           bool // no infinities; all ones is the only NaN of a sign
}

var (
	bfloat16 = miniFloat{expBits: 8, manBits: 7}
	binary16 = miniFloat{expBits: 5, manBits: 10}
	e4m3     = miniFloat{expBits: 4, manBits: 3, finite: true}
	e5m2     = miniFloat{expBits: 5, manBits: 2}
)

func (m miniFloat) decode(bits uint32) float64 {
	expMax := uint32(1)<<m.expBits - 1
	manMax := uint32(1)<<m.manBits - 1
	exp := bits >> m.manBits & expMax
	man := bits & manMax
	bias := int(expMax >> 1)
	var v float64
	switch {
	case exp == expMax && !m.finite && man == 0:
		v = math.Inf(1)
	case exp == expMax && (!m.finite || man == manMax):
		v = math.NaN()
	case exp == 0:
		v = math.Ldexp(float64(man), 1-bias-m.manBits)
	default:
		v = math.Ldexp(float64(man|1<<m.manBits), int(exp)-bias-m.manBits)
	}
	if bits>>(m.expBits+m.manBits)&1 != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

func (m miniFloat) encode(f float64) uint32 {
	sign := uint32(0)
	if math.Signbit(f) {
		sign = 1 << (m.expBits + m.manBits)
	}
	expMax := uint32(1)<<m.expBits - 1
	manMax := uint32(1)<<m.manBits - 1
	bias := int(expMax >> 1)
	quietNaN := sign | expMax<<m.manBits | 1<<(m.manBits-1)
	overflow := sign | expMax<<m.manBits
	if m.finite {
		quietNaN = sign | expMax<<m.manBits | manMax
		overflow = quietNaN
	}
	if math.IsNaN(f) {
		return quietNaN
	}
	if math.IsInf(f, 0) {
		return overflow
	}
	// The bits of |f| below its exponent are rounded away. A carry into the next binade must add one
	// to the exponent field, and the addition of the integers does that.
	size, shift := math.Float64bits(math.Abs(f)), 52-m.manBits
	var kept uint64
	if int(size>>52) > 1023-bias {
		kept = (size+(1<<(shift-1)-1)+size>>shift&1)>>shift - uint64(1023-bias)<<m.manBits
	} else { // less than the least normal number: all have the same unit
		kept = uint64(math.RoundToEven(math.Ldexp(math.Abs(f), bias-1+m.manBits)))
	}
	field := uint32(min(kept, math.MaxUint32))
	limit := expMax << m.manBits
	if m.finite {
		limit |= manMax
	}
	if field >= limit {
		return overflow
	}
	return sign | field
}
