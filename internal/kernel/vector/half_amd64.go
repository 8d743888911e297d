//go:build amd64 && !noasm

package vector

import "github.com/primus-fl/primus/internal/cpufeat"

func widenBF16Vector(dst []float32, src []uint16) (done int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return widenBF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		return widenBF16AVX2(dst, src)
	}
	return 0
}

func widenF16Vector(dst []float32, src []uint16) (done int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return widenF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		return widenF16AVX2(dst, src)
	}
	return 0
}

func narrowBF16Vector(dst []uint16, src []float32) (done int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return narrowBF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		return narrowBF16AVX2(dst, src)
	}
	return 0
}

func narrowF16Vector(dst []uint16, src []float32) (done int) {
	switch {
	case cpufeat.Has(cpufeat.AVX512):
		return narrowF16AVX512(dst, src)
	case cpufeat.Has(cpufeat.AVX2):
		return narrowF16AVX2(dst, src)
	}
	return 0
}

// The conversions of an instruction set return how many elements they have converted: those of AVX2
// a multiple of 8, those of AVX-512 all.

//go:noescape
func widenBF16AVX512(dst []float32, src []uint16) (done int)

//go:noescape
func widenF16AVX512(dst []float32, src []uint16) (done int)

//go:noescape
func narrowBF16AVX512(dst []uint16, src []float32) (done int)

//go:noescape
func narrowF16AVX512(dst []uint16, src []float32) (done int)

//go:noescape
func widenBF16AVX2(dst []float32, src []uint16) (done int)

//go:noescape
func widenF16AVX2(dst []float32, src []uint16) (done int)

//go:noescape
func narrowBF16AVX2(dst []uint16, src []float32) (done int)

//go:noescape
func narrowF16AVX2(dst []uint16, src []float32) (done int)
