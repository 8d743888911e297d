//go:build amd64 && !noasm

package fp8

import "github.com/primus-fl/primus/internal/cpufeat"

// transposeWordsVector transposes the first rows and columns, and returns how many.
func transposeWordsVector(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) (down, right int) {
	down, right = rows&^7, cols&^7
	if down == 0 || right == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0, 0
	}
	for c := 0; c < right; c += 8 {
		transposeWordsAVX512(&dst[c*dstPitch], dstPitch, &src[c*word], srcPitch, down)
	}
	return down, right
}

// transposeWordsAVX512 transposes eight columns of a positive multiple of eight rows.
//
//go:noescape
func transposeWordsAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int)

// copyVector copies the first bytes of all rows, and returns how many of each.
func copyVector(dst []byte, dstPitch int, src []byte, srcPitch, rows, n int) (done int) {
	done = n &^ 63
	if done == 0 || !cpufeat.Has(cpufeat.AVX512) {
		return 0
	}
	copyRowsAVX512(&dst[0], dstPitch, &src[0], srcPitch, rows, done)
	return done
}

// copyRowsAVX512 copies n bytes, a positive multiple of 64, of at least one row.
//
//go:noescape
func copyRowsAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows, n int)
