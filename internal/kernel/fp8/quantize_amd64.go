//go:build amd64 && !noasm

package fp8

import (
	"math"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// The functions for vectors return how many elements of x, or blocks, they have done: as many as
// fill vectors, up to a block with a NaN or an infinity.

const (
	groupLen  = 512 // elements whose scales are found at a time
	blockLen  = 128 // of the blocks that have a loop
	exponents = 0xff800000
)

func (f *Format) encodeAmaxVector(dst []byte, x []float32, scale float32) (done int, amax float32) {
	done = len(x) &^ (unit - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0, 0
	}
	return done, encodeAmaxAVX512(&dst[0], &x[0], done, f, scale)
}

func (f *Format) quantizeVector(dst []byte, inv, x []float32, block int, epsilon float32, pow2 bool) (done int) {
	groups := len(x) / groupLen
	if groups == 0 || block != blockLen || !(epsilon <= math.MaxFloat32) || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return quantizeAVX512(&dst[0], &inv[0], &x[0], groups, f, max(epsilon, 0), scaleMask(pow2)) * (groupLen / blockLen)
}

// scaleMask returns the bits of a scale that are kept.
func scaleMask(pow2 bool) uint32 {
	if pow2 {
		return exponents
	}
	return math.MaxUint32
}

func (f *Format) scalesVector(inv, amax []float32, epsilon float32, pow2 bool) (done int) {
	done = len(amax) &^ (unit - 1)
	if done == 0 || !(epsilon <= math.MaxFloat32) || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	scalesAVX512(&amax[0], &inv[0], done, f, max(epsilon, 0), scaleMask(pow2))
	return done
}

func (f *Format) quantizeE8M0Vector(dst, codes []byte, x []float32) (done int) {
	groups := len(x) / groupLen
	if groups == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return quantizeE8M0AVX512(&dst[0], &codes[0], &x[0], groups, f, f.bias()) * (groupLen / BlockE8M0)
}

func amaxBF16Vector(x []uint16) (done int, amax float32) {
	done = len(x) &^ (4*unit - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0, 0
	}
	return done, amaxBF16AVX512(&x[0], done)
}

func (f *Format) encodeAmaxBF16Vector(dst []byte, x []uint16, scale float32) (done int, amax float32) {
	done = len(x) &^ (unit - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0, 0
	}
	return done, encodeAmaxBF16AVX512(&dst[0], &x[0], done, f, scale)
}

func (f *Format) quantizeBF16Vector(dst []byte, inv []float32, x []uint16, block int, epsilon float32, pow2 bool) (done int) {
	groups := len(x) / groupLen
	if groups == 0 || block != blockLen || !(epsilon <= math.MaxFloat32) || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return quantizeBF16AVX512(&dst[0], &inv[0], &x[0], groups, f, max(epsilon, 0), scaleMask(pow2)) * (groupLen / blockLen)
}

func (f *Format) quantizeE8M0BF16Vector(dst, codes []byte, x []uint16) (done int) {
	groups := len(x) / groupLen
	if groups == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return quantizeE8M0BF16AVX512(&dst[0], &codes[0], &x[0], groups, f, f.bias()) * (groupLen / BlockE8M0)
}

//go:noescape
func encodeAmaxAVX512(dst *byte, x *float32, n int, f *Format, scale float32) (amax float32)

//go:noescape
func quantizeAVX512(dst *byte, inv, x *float32, groups int, f *Format, epsilon float32, mask uint32) (done int)

//go:noescape
func scalesAVX512(amax, inv *float32, n int, f *Format, epsilon float32, mask uint32)

//go:noescape
func quantizeE8M0AVX512(dst, codes *byte, x *float32, groups int, f *Format, bias int32) (done int)

//go:noescape
func amaxBF16AVX512(x *uint16, n int) (amax float32)

//go:noescape
func encodeAmaxBF16AVX512(dst *byte, x *uint16, n int, f *Format, scale float32) (amax float32)

//go:noescape
func quantizeBF16AVX512(dst *byte, inv *float32, x *uint16, groups int, f *Format, epsilon float32, mask uint32) (done int)

//go:noescape
func quantizeE8M0BF16AVX512(dst, codes *byte, x *uint16, groups int, f *Format, bias int32) (done int)
