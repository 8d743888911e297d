package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// Format describes fp8 to the kernels. A float32 without its sign, u in bits, becomes
//
//	(u + roundUp + (u>>shift)&1) >> shift                     from normal on
//	float32bits(float32frombits(u) + subnormal) − subnormal   below
//
// and fp8 without its sign, moved up by half bits, is binary16 of a value that is factor times
// smaller. The assembly knows the offsets of the fields.
type Format struct {
	shift     uint64
	roundUp   uint32  // half a unit less one, less the difference of the biases
	largest   float32 // finite number
	normal    float32 // the smallest normal number
	subnormal float32 // a number whose unit is that of the subnormals
	nan       uint32  // the pattern that a NaN gets
	factor    float32 // from binary16
	half      uint64
	nanWord   uint32 // twice the only NaN, or a pattern that does not occur
	toUnit    uint32 // shift<<23, from a power of two to one whose unit is that of fp8, plus a correction of exponents

	wide      float32 // from float32 with the pattern shifted up
	notFinite byte    // the first such pattern

	// sums has, at the low bits of the exponent of a magnitude, the number that brings its fp8 to
	// the low bits of the sum of both.
	sums [32]float32
}

// The formats: E4M3, which has no infinities, and E5M2.
var (
	E4M3 = Format{
		shift: 20, roundUp: 1<<32 - 1 + 1<<19 - (127-7)<<23, largest: 448, normal: 0x1p-6, subnormal: 0x1p14, nan: 0x7f,
		factor: 0x1p8, half: 7, nanWord: 0x7f007f, toUnit: 20<<23 + -(127-6)<<3&0xff, wide: 0x1p120, notFinite: 0x7f, sums: sumsOf(3, -6, 8),
	}
	E5M2 = Format{
		shift: 21, roundUp: 1<<32 - 1 + 1<<20 - (127-15)<<23, largest: 57344, normal: 0x1p-14, subnormal: 0x1p7, nan: 0x7e,
		factor: 1, half: 8, nanWord: math.MaxUint32, toUnit: 21<<23 + -(127-14)<<2&0xff, wide: 0x1p112, notFinite: infinity, sums: sumsOf(2, -14, 15),
	}
)

const infinity = 0x7c // in E5M2

// sumsOf returns the numbers for a format of so many bits in its mantissa, with these exponents.
// The unit of the last place of a sum is that of fp8 with the exponent, and below it the sum has
// what the exponent adds to the pattern.
func sumsOf(mantissa, least, greatest int) (sums [32]float32) {
	for e := least; e <= greatest; e++ {
		unit := math.Ldexp(1, e-mantissa)
		sums[(e+127)%len(sums)] = float32(unit * float64(1<<23+(e-least)<<mantissa))
	}
	return sums
}

// Largest returns the largest finite number of the format.
func (f *Format) Largest() float32 { return f.largest }

// Amaxes stores the largest magnitudes of blocks of x, the last of which may be shorter:
//
//	dst[i] = max |x[j]| for ⌊j/block⌋ = i
//
// for every element of dst, of which there is one per block. NaNs are ignored; a block without
// other elements has 0.
func Amaxes(dst, x []float32, block int) {
	race.Read(x)
	race.Write(dst)
	full := len(x) / block
	amaxesOf(dst[:full], x, block)
	if lo := full * block; lo < len(x) {
		amaxesOf(dst[full:full+1], x[lo:], len(x)-lo)
	}
}

// amaxesOf is Amaxes for whole blocks, one for each element of dst.
func amaxesOf(dst, x []float32, block int) {
	done := amaxesVector(dst, x, block)
	if done == block {
		return
	}
	for i := range dst {
		if done == 0 {
			dst[i] = 0
		}
		dst[i] = amaxGeneric(dst[i], x[i*block+done:(i+1)*block])
	}
}

// Amax returns the largest magnitude of x, as Amaxes does for a single block.
func Amax(x []float32) float32 {
	var a [1]float32
	Amaxes(a[:], x, max(len(x), 1))
	return a[0]
}

// Raise raises the elements of dst to the magnitudes of x:
//
//	dst[i] = max(dst[i], |x[i]|)
//
// for every element of x. NaNs of x are ignored.
func Raise(dst, x []float32) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Write(dst)
	done := raiseVector(dst, x)
	raiseGeneric(dst[done:], x[done:])
}

// Encode rounds blocks of x, the last of which may be shorter, to fp8 with a scale for each:
//
//	dst[i] = fp8(x[i]·scale[⌊i/block⌋])
//
// for every element of x. Products beyond the largest number become that number with their sign; a
// NaN becomes a NaN.
func (f *Format) Encode(dst []byte, x, scale []float32, block int) {
	dst = dst[:len(x)]
	race.Read(x)
	race.Read(scale)
	race.Write(dst)
	full := len(x) / block
	f.encodeBlocks(dst, x, scale[:full], block)
	if lo := full * block; lo < len(x) {
		f.encodeBlocks(dst[lo:], x[lo:], scale[full:full+1], len(x)-lo)
	}
}

// encodeBlocks is Encode for whole blocks, one for each scale.
func (f *Format) encodeBlocks(dst []byte, x, scale []float32, block int) {
	done := f.encodeVector(dst, x, scale, block)
	if done == block {
		return
	}
	for i, s := range scale {
		lo, hi := i*block+done, (i+1)*block
		f.encodeGeneric(dst[lo:hi], x[lo:hi], s)
	}
}

// EncodeEach is Encode with a scale for each element:
//
//	dst[i] = fp8(x[i]·scale[i])
func (f *Format) EncodeEach(dst []byte, x, scale []float32) {
	dst, scale = dst[:len(x)], scale[:len(x)]
	race.Read(x)
	race.Read(scale)
	race.Write(dst)
	for i := f.encodeEachVector(dst, x, scale); i < len(x); i++ {
		dst[i] = f.pattern(x[i] * scale[i])
	}
}

// Decode is the inverse of Encode, except for rounding:
//
//	dst[i] = src[i]·scale[⌊i/block⌋]
//
// for every element of src.
func (f *Format) Decode(dst []float32, src []byte, scale []float32, block int) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Read(scale)
	race.Write(dst)
	full := len(src) / block
	f.decodeBlocks(dst, src, scale[:full], block)
	if lo := full * block; lo < len(src) {
		f.decodeBlocks(dst[lo:], src[lo:], scale[full:full+1], len(src)-lo)
	}
}

// decodeBlocks is Decode for whole blocks, one for each scale.
func (f *Format) decodeBlocks(dst []float32, src []byte, scale []float32, block int) {
	done := f.decodeVector(dst, src, scale, block)
	if done == block {
		return
	}
	for i, s := range scale {
		lo, hi := i*block+done, (i+1)*block
		f.decodeGeneric(dst[lo:hi], src[lo:hi], s)
	}
}

// DecodeEach is Decode with a scale for each element:
//
//	dst[i] = src[i]·scale[i]
func (f *Format) DecodeEach(dst []float32, src []byte, scale []float32) {
	dst, scale = dst[:len(src)], scale[:len(src)]
	race.Read(src)
	race.Read(scale)
	race.Write(dst)
	for i := f.decodeEachVector(dst, src, scale); i < len(src); i++ {
		dst[i] = f.value(src[i]) * scale[i]
	}
}
