package gemm

import (
	"fmt"

	"github.com/primus-fl/primus/internal/race"
)

// Transpose copies a matrix to its transpose, with distances in elements:
//
//	dst[c·dstRow+r] = src[r·srcRow+c]
//
// for r < rows and c < cols. The slices must not overlap. Matrix products use it to pack an operand
// whose rows run along the inner axis.
func Transpose(dst []float32, dstRow int, src []float32, srcRow, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if dstRow < 0 || srcRow < 0 {
		panic(fmt.Sprintf("BUG: gemm: transpose with row distances %d and %d", dstRow, srcRow))
	}
	_ = dst[(cols-1)*dstRow+rows-1]
	_ = src[(rows-1)*srcRow+cols-1]
	for r := range rows {
		race.Read(src[r*srcRow:][:cols])
	}
	for c := range cols {
		race.Write(dst[c*dstRow:][:rows])
	}
	done := transposeBlocks(dst, dstRow, src, srcRow, rows, cols)
	if rest := cols % 4; done > 0 && rest > 0 {
		transposeGeneric(dst[(cols-rest)*dstRow:], dstRow, src[cols-rest:], srcRow, done, rest)
	}
	if done < rows {
		transposeGeneric(dst[done:], dstRow, src[done*srcRow:], srcRow, rows-done, cols)
	}
}

func transposeGeneric(dst []float32, dstRow int, src []float32, srcRow, rows, cols int) {
	r := 0
	for ; r+4 <= rows; r += 4 {
		s0 := src[r*srcRow:][:cols]
		s1 := src[(r+1)*srcRow:][:cols]
		s2 := src[(r+2)*srcRow:][:cols]
		s3 := src[(r+3)*srcRow:][:cols]
		at := r
		for c, v := range s0 {
			d := dst[at : at+4 : at+4]
			d[0], d[1], d[2], d[3] = v, s1[c], s2[c], s3[c]
			at += dstRow
		}
	}
	for ; r < rows; r++ {
		at := r
		for _, v := range src[r*srcRow:][:cols] {
			dst[at] = v
			at += dstRow
		}
	}
}
