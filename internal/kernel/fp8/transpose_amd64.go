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
	// Stores to lines that lie apart would wait for each of them.
	for c := 0; c < right; c += 16 {
		if next := c + 16; next < right {
			prefetch.Rows(&dst[next*dstPitch], dstPitch, 16, down)
		}
		if next := c + 64; c%64 == 0 && next < right {
			prefetch.Rows(&src[next], srcPitch, down, 1)
		}
		transposeAVX2(&dst[c*dstPitch], dstPitch, &src[c], srcPitch, down)
	}
	return down, right
}

// transposeAVX2 transposes 16 columns of a positive multiple of eight rows.
//
//go:noescape
func transposeAVX2(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
