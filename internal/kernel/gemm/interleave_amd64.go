//go:build amd64 && !noasm

package gemm

import "github.com/primus-fl/primus/internal/cpufeat"

// interleaveVector stores as many pairs as the assembly can, and returns their number.
func interleaveVector(dst []float32, a, b []uint16) int {
	whole := len(a) &^ 15
	if whole == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	interleaveAVX512(&dst[0], &a[0], &b[0], whole)
	return whole
}

// interleaveAVX512 stores n pairs, a multiple of 16.
//
//go:noescape
func interleaveAVX512(dst *float32, a, b *uint16, n int)
