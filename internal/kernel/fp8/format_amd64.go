//go:build amd64 && !noasm

package fp8

import "github.com/primus-fl/primus/internal/cpufeat"

// The functions for vectors return how many elements of each block, or of x, they have done.

const unit = 16 // elements that the loops do at a time, at least

func amaxesVector(dst, x []float32, block int) (done int) {
	done = block &^ (unit - 1)
	if done == 0 || len(dst) == 0 {
		return 0
	}
	if block == E2M1Block && len(dst) >= 16 && cpufeat.Has(cpufeat.AVX512) {
		n := len(dst) &^ 15
		amaxesE2M1AVX512(&dst[0], &x[0], n)
		if dst, x = dst[n:], x[n*block:]; len(dst) == 0 {
			return done
		}
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		amaxesAVX512(&dst[0], &x[0], len(dst), done, block)
	case cpufeat.Has(cpufeat.AVX2):
		amaxesAVX2(&dst[0], &x[0], len(dst), done, block)
	default:
		return 0
	}
	return done
}

func raiseVector(dst, x []float32) (done int) {
	done = len(x) &^ (unit - 1)
	if done == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		raiseAVX512(&dst[0], &x[0], done)
	case cpufeat.Has(cpufeat.AVX2):
		raiseAVX2(&dst[0], &x[0], done)
	default:
		return 0
	}
	return done
}

func (f *Format) encodeVector(dst []byte, x, scale []float32, block int) (done int) {
	done = block &^ (unit - 1)
	if done == 0 || len(scale) == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		encodeAVX512(&dst[0], &x[0], &scale[0], len(scale), done, block, f)
	case cpufeat.Has(cpufeat.AVX2):
		encodeAVX2(&dst[0], &x[0], &scale[0], len(scale), done, block, f)
	default:
		return 0
	}
	return done
}

func (f *Format) encodeEachVector(dst []byte, x, scale []float32) (done int) {
	done = len(x) &^ (unit - 1)
	if done == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		encodeEachAVX512(&dst[0], &x[0], &scale[0], done, f)
	case cpufeat.Has(cpufeat.AVX2):
		encodeEachAVX2(&dst[0], &x[0], &scale[0], done, f)
	default:
		return 0
	}
	return done
}

func (f *Format) decodeVector(dst []float32, src []byte, scale []float32, block int) (done int) {
	done = block &^ (unit - 1)
	if done == 0 || len(scale) == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		decodeAVX512(&dst[0], &src[0], &scale[0], len(scale), done, block, f)
	case cpufeat.Has(cpufeat.AVX2):
		decodeAVX2(&dst[0], &src[0], &scale[0], len(scale), done, block, f)
	default:
		return 0
	}
	return done
}

func (f *Format) decodeEachVector(dst []float32, src []byte, scale []float32) (done int) {
	done = len(src) &^ (unit - 1)
	if done == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		decodeEachAVX512(&dst[0], &src[0], &scale[0], done, f)
	case cpufeat.Has(cpufeat.AVX2):
		decodeEachAVX2(&dst[0], &src[0], &scale[0], done, f)
	default:
		return 0
	}
	return done
}

func encodeE8M0Vector(codes []byte, amax []float32, bias int32) (done int) {
	done = len(amax) &^ (unit - 1)
	if done == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		encodeE8M0AVX512(&codes[0], &amax[0], done, bias)
	case cpufeat.Has(cpufeat.AVX2):
		encodeE8M0AVX2(&codes[0], &amax[0], done, bias)
	default:
		return 0
	}
	return done
}

func decodeE8M0Vector(dst []float32, codes []byte) (done int) {
	done = len(codes) &^ (unit - 1)
	if done == 0 {
		return 0
	}
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		decodeE8M0AVX512(&dst[0], &codes[0], done)
	case cpufeat.Has(cpufeat.AVX2):
		decodeE8M0AVX2(&dst[0], &codes[0], done)
	default:
		return 0
	}
	return done
}

// The loops of an instruction set do the first whole elements, a positive multiple of the unit, of
// each of at least one block.

//go:noescape
func amaxesAVX512(dst, x *float32, blocks, whole, block int)

//go:noescape
func amaxesAVX2(dst, x *float32, blocks, whole, block int)

//go:noescape
func raiseAVX512(dst, x *float32, n int)

//go:noescape
func raiseAVX2(dst, x *float32, n int)

//go:noescape
func encodeAVX512(dst *byte, x, scale *float32, blocks, whole, block int, f *Format)

//go:noescape
func encodeAVX2(dst *byte, x, scale *float32, blocks, whole, block int, f *Format)

//go:noescape
func encodeEachAVX512(dst *byte, x, scale *float32, n int, f *Format)

//go:noescape
func encodeEachAVX2(dst *byte, x, scale *float32, n int, f *Format)

//go:noescape
func decodeAVX512(dst *float32, src *byte, scale *float32, blocks, whole, block int, f *Format)

//go:noescape
func decodeAVX2(dst *float32, src *byte, scale *float32, blocks, whole, block int, f *Format)

//go:noescape
func decodeEachAVX512(dst *float32, src *byte, scale *float32, n int, f *Format)

//go:noescape
func decodeEachAVX2(dst *float32, src *byte, scale *float32, n int, f *Format)

//go:noescape
func encodeE8M0AVX512(codes *byte, amax *float32, n int, bias int32)

//go:noescape
func encodeE8M0AVX2(codes *byte, amax *float32, n int, bias int32)

//go:noescape
func decodeE8M0AVX512(dst *float32, codes *byte, n int)

//go:noescape
func decodeE8M0AVX2(dst *float32, codes *byte, n int)
