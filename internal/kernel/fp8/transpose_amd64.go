//go:build amd64 && !noasm

package fp8

import (
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel/internal/prefetch"
)

// transposeVector transposes the first rows and columns, and returns how many.
func transposeVector(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) (down, right int) {
	down, right = rows&^7, cols&^15
	if down == 0 || right == 0 || !cpufeat.Has(cpufeat.AVX2) {
		return 0, 0
	}
	whole := 0 // rows that give whole cache lines
	if cpufeat.Has(cpufeat.AVX512) {
		whole = rows &^ 63
	}
	for c := 0; c < right; c += 16 {
		if whole > 0 {
			transposeAVX512(&dst[c*dstPitch], dstPitch, &src[c], srcPitch, whole)
		}
		if whole == down {
			continue
		}
		// Stores to lines that lie apart would wait for each of them.
		if next := c + 16; next < right {
			prefetch.Rows(&dst[next*dstPitch+whole], dstPitch, 16, down-whole)
		}
		if next := c + 64; c%64 == 0 && next < right {
			prefetch.Rows(&src[whole*srcPitch+next], srcPitch, down-whole, 1)
		}
		transposeAVX2(&dst[c*dstPitch+whole], dstPitch, &src[whole*srcPitch+c], srcPitch, down-whole)
	}
	return down, right
}

// transposeAVX512 transposes 16 columns of a positive multiple of 64 rows.
//
//go:noescape
func transposeAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int)

// transposeAVX2 transposes 16 columns of a positive multiple of eight rows.
//
//go:noescape
func transposeAVX2(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
