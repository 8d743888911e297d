//go:build amd64 && !noasm

package vector

import "github.com/primus-fl/primus/internal/cpufeat"

func widenBF16(dst []float32, src []uint16) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		widenBF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		done := widenBF16AVX2(dst, src)
		widenBF16Generic(dst[done:], src[done:])
	default:
		widenBF16Generic(dst, src)
	}
}

func widenF16(dst []float32, src []uint16) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		widenF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		done := widenF16AVX2(dst, src)
		widenF16Generic(dst[done:], src[done:])
	default:
		widenF16Generic(dst, src)
	}
}

func narrowBF16(dst []uint16, src []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		narrowBF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		done := narrowBF16AVX2(dst, src)
		narrowBF16Generic(dst[done:], src[done:])
	default:
		narrowBF16Generic(dst, src)
	}
}

func narrowF16(dst []uint16, src []float32) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		narrowF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		done := narrowF16AVX2(dst, src)
		narrowF16Generic(dst[done:], src[done:])
	default:
		narrowF16Generic(dst, src)
	}
}

// The conversions of each instruction set convert every element of src, or return how many they
// have converted: a multiple of eight.

//go:noescape
func widenBF16AVX512(dst []float32, src []uint16)

//go:noescape
func widenF16AVX512(dst []float32, src []uint16)

//go:noescape
func narrowBF16AVX512(dst []uint16, src []float32)

//go:noescape
func narrowF16AVX512(dst []uint16, src []float32)

//go:noescape
func widenBF16AVX2(dst []float32, src []uint16) (done int)

//go:noescape
func widenF16AVX2(dst []float32, src []uint16) (done int)

//go:noescape
func narrowBF16AVX2(dst []uint16, src []float32) (done int)

//go:noescape
func narrowF16AVX2(dst []uint16, src []float32) (done int)
