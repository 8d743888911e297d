//go:build amd64 && !noasm

package gemm

import "github.com/primus-fl/primus/internal/cpufeat"

// transposeBlocks transposes the first cols/4·4 columns of as many rows, from the first, as the
// assembly can, and returns the number of these rows.
func transposeBlocks(dst []float32, dstRow int, src []float32, srcRow, rows, cols int) int {
	if cols < 4 {
		return 0
	}
	done := 0
	if cpufeat.Has(cpufeat.AVX512) {
		for ; done+16 <= rows; done += 16 {
			transpose16AVX512(&dst[done], dstRow, &src[done*srcRow], srcRow, cols/4)
		}
	}
	if cpufeat.Has(cpufeat.AVX2) {
		for ; done+8 <= rows; done += 8 {
			transpose8AVX2(&dst[done], dstRow, &src[done*srcRow], srcRow, cols/4)
		}
	}
	return done
}

// transpose16AVX512 transposes 16 rows of 4·quads columns.
//
//go:noescape
func transpose16AVX512(dst *float32, dstRow int, src *float32, srcRow, quads int)

// transpose8AVX2 transposes 8 rows of 4·quads columns.
//
//go:noescape
func transpose8AVX2(dst *float32, dstRow int, src *float32, srcRow, quads int)
