package fp8

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/race"
)

// Transpose stores the transpose of a matrix of bytes, whose rows lie at a pitch:
//
//	dst[c·dstPitch + r] = src[r·srcPitch + c]
//
// for all rows and columns. The matrices must not overlap.
func Transpose(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) {
	transpose(dst, dstPitch, src, srcPitch, rows, cols, false)
}

// TransposeToMemory is Transpose for a result that the caches cannot hold: whole lines of it go
// past them.
func TransposeToMemory(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int) {
	transpose(dst, dstPitch, src, srcPitch, rows, cols, true)
}

func transpose(dst []byte, dstPitch int, src []byte, srcPitch, rows, cols int, stream bool) {
	if rows == 0 || cols == 0 {
		return
	}
	dst, src = dst[:(cols-1)*dstPitch+rows], src[:(rows-1)*srcPitch+cols]
	for r := range rows {
		race.ReadMemory(unsafe.Pointer(&src[r*srcPitch]), cols)
	}
	for c := range cols {
		race.WriteMemory(unsafe.Pointer(&dst[c*dstPitch]), rows)
	}
	down, right := transposeVector(dst, dstPitch, src, srcPitch, rows, cols, stream)
	transposeGeneric(dst, dstPitch, src, srcPitch, down, rows, 0, right)
	transposeGeneric(dst, dstPitch, src, srcPitch, 0, rows, right, cols)
}

// transposeGeneric transposes the rows from r0 on and the columns from c0 on.
func transposeGeneric(dst []byte, dstPitch int, src []byte, srcPitch, r0, rows, c0, cols int) {
	for r := r0; r < rows; r++ {
		for c := c0; c < cols; c++ {
			dst[c*dstPitch+r] = src[r*srcPitch+c]
		}
	}
}
