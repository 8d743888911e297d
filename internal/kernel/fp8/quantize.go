package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/race"
)

// ScaleOf returns the scale with which numbers up to amax fill a format whose largest number is
// given: largest/amax, where amax is at least epsilon, and 1 if that is 0, infinite or NaN. The
// scale is finite; with pow2 it is rounded down to a power of two.
func ScaleOf(amax, largest, epsilon float32, pow2 bool) float32 {
	if amax < epsilon {
		amax = epsilon
	}
	if amax == 0 || amax != amax || amax > math.MaxFloat32 {
		return 1
	}
	scale := min(largest/amax, math.MaxFloat32)
	switch {
	case !pow2 || scale <= 0:
		return scale
	case scale >= 0x1p-126:
		return math.Float32frombits(math.Float32bits(scale) &^ (1<<23 - 1))
	}
	_, exp := math.Frexp(float64(scale))
	return float32(math.Ldexp(1, exp-1))
}

// Scales replaces the magnitudes of blocks by their scales, and stores the reciprocals of these:
//
//	amax[i] = ScaleOf(amax[i], Largest, epsilon, pow2)
//	inv[i]  = 1/amax[i]
//
// for every element of amax. The magnitudes are not negative and no NaN.
func (f *Format) Scales(inv, amax []float32, epsilon float32, pow2 bool) {
	inv = inv[:len(amax)]
	race.Read(amax)
	race.Write(amax)
	race.Write(inv)
	for i := f.scalesVector(inv, amax, epsilon, pow2); i < len(amax); i++ {
		amax[i] = ScaleOf(amax[i], f.largest, epsilon, pow2)
		inv[i] = 1 / amax[i]
	}
}

// group is how many blocks plain Go rounds at a time.
const group = 16

// Quantize rounds blocks of x, the last of which may be shorter, to fp8, each with the scale of its
// largest magnitude, and stores the reciprocals of the scales:
//
//	scale  = ScaleOf(max |x[j]|, Largest, epsilon, pow2)
//	inv[i] = 1/scale
//	dst[j] = fp8(x[j]·scale)
//
// for every block i and its elements j, as Amaxes and Encode do.
func (f *Format) Quantize(dst []byte, inv, x []float32, block int, epsilon float32, pow2 bool) {
	dst, inv = dst[:len(x)], inv[:(len(x)+block-1)/block]
	race.Read(x)
	race.Write(dst)
	race.Write(inv)
	for len(inv) > 0 {
		done := f.quantizeVector(dst, inv, x, block, epsilon, pow2)
		n := min(group, len(inv)-done)
		dst, inv, x = dst[done*block:], inv[done:], x[done*block:]
		size := min(n*block, len(x))
		f.quantizeGroup(dst[:size], inv[:n], x[:size], block, epsilon, pow2)
		dst, inv, x = dst[size:], inv[n:], x[size:]
	}
}

func (f *Format) quantizeGroup(dst []byte, inv, x []float32, block int, epsilon float32, pow2 bool) {
	var buf [group]float32
	scale := buf[:len(inv)]
	Amaxes(scale, x, block)
	f.Scales(inv, scale, epsilon, pow2)
	f.Encode(dst, x, scale, block)
}

// BlockE8M0 is the number of elements with one scale of E8M0.
const BlockE8M0 = 32

// QuantizeE8M0 rounds blocks of x, the last of which may be shorter, to fp8, each with the code of
// E8M0 that EncodeE8M0 stores for its largest magnitude.
func (f *Format) QuantizeE8M0(dst, codes []byte, x []float32) {
	dst, codes = dst[:len(x)], codes[:(len(x)+BlockE8M0-1)/BlockE8M0]
	race.Read(x)
	race.Write(dst)
	race.Write(codes)
	for len(codes) > 0 {
		done := f.quantizeE8M0Vector(dst, codes, x)
		n := min(group, len(codes)-done)
		dst, codes, x = dst[done*BlockE8M0:], codes[done:], x[done*BlockE8M0:]
		size := min(n*BlockE8M0, len(x))
		f.quantizeGroupE8M0(dst[:size], codes[:n], x[:size])
		dst, codes, x = dst[size:], codes[n:], x[size:]
	}
}

func (f *Format) quantizeGroupE8M0(dst, codes []byte, x []float32) {
	var buf [group]float32
	scale := buf[:len(codes)]
	Amaxes(scale, x, BlockE8M0)
	f.EncodeE8M0(codes, scale)
	f.Encode(dst, x, scale, BlockE8M0)
}

// EncodeAmax rounds x to fp8 with one scale, as Encode does, and returns its largest magnitude, as
// Amax does.
func (f *Format) EncodeAmax(dst []byte, x []float32, scale float32) (amax float32) {
	dst = dst[:len(x)]
	done, amax := f.encodeAmaxVector(dst, x, scale)
	if done == len(x) {
		race.Read(x)
		race.Write(dst)
		return amax
	}
	s := [1]float32{scale}
	f.Encode(dst[done:], x[done:], s[:], len(x)-done)
	return max(amax, Amax(x[done:]))
}
