//go:build amd64 && !noasm

package fp8

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/cpufeat"
)

// The functions for vectors return how many elements they have done.

func encodeE2M1Vector(dst []byte, x []float32, scales []byte, limits *[128]E2M1Limits) (done int) {
	done = len(x) &^ (E2M1Block - 1)
	switch {
	case done == 0:
	case cpufeat.Has(cpufeat.AVX512):
		encodeE2M1AVX512(&dst[0], &x[0], &scales[0], done, limits)
	case cpufeat.Has(cpufeat.AVX2):
		encodeE2M1AVX2(&dst[0], &x[0], &scales[0], done, limits)
	default:
		return 0
	}
	return done
}

func amaxesE2M1BF16Vector(dst []float32, x []uint16) (done int) {
	const group = 16
	blocks := len(x) / E2M1Block &^ (group - 1)
	if blocks == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return amaxesE2M1BF16AVX512(&dst[0], &x[0], blocks)
}

func encodeE2M1BF16Vector(dst []byte, x []uint16, scales []byte, words *E2M1Words) (done int) {
	const group = 128
	n := len(x) &^ (group - 1)
	if n == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return encodeE2M1BF16AVX512(&dst[0], &x[0], &scales[0], n, words)
}

func encodeE2M1DownBF16Vector(dst []byte, x []uint16, pitch int, scales []byte, words *E2M1Words) (done int) {
	const group = 32
	n := len(scales) &^ (group - 1)
	if n == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	return encodeE2M1DownBF16AVX512(&dst[0], &x[0], pitch, &scales[0], n, words)
}

func encodeE2M1AtRandomVector(dst []byte, x []float32, scales []byte, words []uint32, factors *[128]float64) (done int) {
	done = len(x) &^ (E2M1Block - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	encodeE2M1AtRandomAVX512(&dst[0], &x[0], &scales[0], &words[0], done, factors)
	return done
}

func turnRowsVector(dst []float32, dstPitch int, src []float32, srcPitch, cols int) (done int) {
	done = cols &^ (E2M1Block - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	turnRowsAVX512(&dst[0], dstPitch, &src[0], srcPitch, done)
	return done
}

func encodeE2M1DownVector(dst []byte, x []float32, pitch int, scales []byte, limits *[128]E2M1Limits) (done int) {
	done = len(scales) &^ (E2M1Block - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	encodeE2M1DownAVX512(&dst[0], &x[0], pitch, &scales[0], done, limits)
	return done
}

func decodeE2M1Vector(dst []float32, src, scales []byte, values *[256]E2M1Values) (done int) {
	done = len(dst) &^ (E2M1Block - 1)
	switch {
	case done == 0:
	case cpufeat.Has(cpufeat.AVX512):
		decodeE2M1AVX512(&dst[0], &src[0], &scales[0], done, values)
	case cpufeat.Has(cpufeat.AVX2):
		decodeE2M1AVX2(&dst[0], &src[0], &scales[0], done, values)
	default:
		return 0
	}
	return done
}

func (s *E2M1Scales) encodeVector(codes []byte, amax []float32) (done int) {
	done = len(amax)
	switch {
	case done == 0:
	case cpufeat.Has(cpufeat.AVX512):
		encodeE2M1ScalesAVX512(&codes[0], &amax[0], done, s)
	case cpufeat.Has(cpufeat.AVX2) && done >= 8:
		done &^= 7
		encodeE2M1ScalesAVX2(&codes[0], &amax[0], done, s)
	default:
		return 0
	}
	return done
}

// amaxesE2M1AVX512 stores the largest magnitudes of blocks of 16, whose number is a positive
// multiple of 16.
//
//go:noescape
func amaxesE2M1AVX512(dst, x *float32, blocks int)

// amaxesE2M1BF16AVX512 does blocks, a positive multiple of 16, up to sixteen with a NaN.
//
//go:noescape
func amaxesE2M1BF16AVX512(dst *float32, x *uint16, blocks int) (done int)

// encodeE2M1BF16AVX512 does n elements, a positive multiple of 128, up to 128 with a NaN.
//
//go:noescape
func encodeE2M1BF16AVX512(dst *byte, x *uint16, scales *byte, n int, words *E2M1Words) (done int)

// encodeE2M1DownBF16AVX512 does n columns, a positive multiple of 32, up to 32 with a NaN.
//
//go:noescape
func encodeE2M1DownBF16AVX512(dst *byte, x *uint16, pitch int, scales *byte, n int, words *E2M1Words) (done int)

// encodeE2M1ScalesAVX512 does n amaxes, at least one.
//
//go:noescape
func encodeE2M1ScalesAVX512(codes *byte, amax *float32, n int, s *E2M1Scales)

// encodeE2M1ScalesAVX2 does n amaxes, a positive multiple of 8.
//
//go:noescape
func encodeE2M1ScalesAVX2(codes *byte, amax *float32, n int, s *E2M1Scales)

// The loops do n elements, a positive multiple of a block.

//go:noescape
func encodeE2M1AVX512(dst *byte, x *float32, scales *byte, n int, limits *[128]E2M1Limits)

//go:noescape
func encodeE2M1AtRandomAVX512(dst *byte, x *float32, scales *byte, words *uint32, n int, factors *[128]float64)

// turnRowsAVX512 does n columns, a positive multiple of 16.
//
//go:noescape
func turnRowsAVX512(dst *float32, dstPitch int, src *float32, srcPitch, n int)

//go:noescape
func encodeE2M1AVX2(dst *byte, x *float32, scales *byte, n int, limits *[128]E2M1Limits)

//go:noescape
func encodeE2M1DownAVX512(dst *byte, x *float32, pitch int, scales *byte, n int, limits *[128]E2M1Limits)

//go:noescape
func decodeE2M1AVX512(dst *float32, src, scales *byte, n int, values *[256]E2M1Values)

//go:noescape
func decodeE2M1AVX2(dst *float32, src, scales *byte, n int, values *[256]E2M1Values)

func decodeE2M1DownVector(dst []float32, pitch int, src []byte, srcPitch int, scales []byte, values *[256]E2M1Values, past bool) (done int) {
	done = len(scales) &^ (E2M1Block - 1)
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	past = past && (uintptr(unsafe.Pointer(&dst[0]))|uintptr(4*pitch))%64 == 0
	decodeE2M1DownAVX512(&dst[0], pitch, &src[0], srcPitch, &scales[0], done, values, past)
	return done
}

// decodeE2M1DownAVX512 does n columns, a positive multiple of 16. It writes past the caches only
// whole lines.
//
//go:noescape
func decodeE2M1DownAVX512(dst *float32, pitch int, src *byte, srcPitch int, scales *byte, n int, values *[256]E2M1Values, past bool)
