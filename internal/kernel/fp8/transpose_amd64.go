//go:build amd64 && !noasm

package fp8

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/kernel"
)

// transposedRows is how many rows transposeAVX512 does at most: several cache lines of each column,
// because lines that lie a power of two apart are slow to write one by one.
const transposedRows = 512

// transposeVector transposes the first rows and columns, and returns how many.
func transposeVector(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int, stream bool) (down, right int) {
	down, right = rows&^7, cols&^15
	if down == 0 || right == 0 || !cpufeat.Has(cpufeat.AVX2) {
		return 0, 0
	}
	tall, wide := rows&^63, cols&^63
	if tall == 0 || !cpufeat.Has(cpufeat.AVX512) {
		wide = 0
	}
	stream = stream && (uintptr(unsafe.Pointer(&dst[0]))|uintptr(dstPitch))%64 == 0
	for r := 0; r < tall; r += transposedRows {
		for c := 0; c < wide; c += 64 {
			transposeAVX512(&dst[c*dstPitch+r], dstPitch, &src[r*srcPitch+c], srcPitch, min(transposedRows, tall-r), stream)
		}
	}
	if wide > 0 && tall < down {
		transposeColumns(dst[tall:], dstPitch, src[tall*srcPitch:], srcPitch, down-tall, wide)
	}
	if wide < right {
		transposeColumns(dst[wide*dstPitch:], dstPitch, src[wide:], srcPitch, down, right-wide)
	}
	return down, right
}

// The tile that transposeColumns copies, so that its rows do not share a few places of a cache.
const (
	copiedRows = 256
	copiedCols = 64
)

// transposeColumns transposes a multiple of eight rows of a multiple of 16 columns.
func transposeColumns(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) {
	var tile [copiedRows * copiedCols]byte
	for r := 0; r < rows; r += copiedRows {
		down := min(copiedRows, rows-r)
		for c := 0; c < cols; c += copiedCols {
			right := min(copiedCols, cols-c)
			for i := range down {
				copy(tile[i*copiedCols:][:right], src[(r+i)*srcPitch+c:])
			}
			for k := 0; k < right; k += 16 {
				to := dst[(c+k)*dstPitch+r:]
				// Stores to lines that lie apart would wait for each of them.
				kernel.PrefetchRows(&to[0], dstPitch, 16, down)
				transposeAVX2(&to[0], dstPitch, &tile[k], copiedCols, down)
			}
		}
	}
}

// transposeAVX512 transposes 64 columns of a positive multiple of 64 rows, at most transposedRows.
// To stream, dst and dstPitch are multiples of 64.
//
//go:noescape
func transposeAVX512(dst *byte, dstPitch int, src *byte, srcPitch, rows int, stream bool)

// transposeAVX2 transposes 16 columns of a positive multiple of eight rows.
//
//go:noescape
func transposeAVX2(dst *byte, dstPitch int, src *byte, srcPitch, rows int)
