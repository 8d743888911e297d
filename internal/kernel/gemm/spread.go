package gemm

import (
	"fmt"

	"github.com/primus-fl/primus/internal/race"
)

// Spread copies a matrix to panels of width columns, with distances in elements:
//
//	dst[p·panel + r·width + c] = src[r·srcRow + p·width + c]
//
// for r < rows and p·width+c < cols. The columns of the last panel beyond cols become zero. The
// slices must not overlap. Matrix products use it to pack an operand whose columns run along the
// inner axis.
func Spread(dst []float32, panel, width int, src []float32, srcRow, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if width < 1 || panel < 0 || srcRow < 0 {
		panic(fmt.Sprintf("BUG: gemm: spread to panels of %d columns with distances %d and %d", width, panel, srcRow))
	}
	panels := (cols + width - 1) / width
	_ = dst[(panels-1)*panel+rows*width-1]
	_ = src[(rows-1)*srcRow+cols-1]
	for r := range rows {
		race.Read(src[r*srcRow:][:cols])
	}
	for p := range panels {
		race.Write(dst[p*panel:][:rows*width])
	}
	for rows > 0 {
		some := min(rows, spreadRows)
		whole := spreadPanels(dst, panel, width, src, srcRow, some, cols/width)
		if whole*width < cols {
			spreadGeneric(dst[whole*panel:], panel, width, src[whole*width:], srcRow, some, cols-whole*width)
		}
		if rows -= some; rows > 0 {
			dst, src = dst[some*width:], src[some*srcRow:]
		}
	}
}

// spreadRows is the number of rows that are copied to one panel after the other, so that whole
// cache lines of panels are written at once while the rows stay in the cache.
const spreadRows = 8

func spreadGeneric(dst []float32, panel, width int, src []float32, srcRow, rows, cols int) {
	for r := range rows {
		for c := 0; c < cols; c += width {
			to := dst[c/width*panel+r*width:][:width]
			n := copy(to, src[r*srcRow+c:r*srcRow+cols])
			clear(to[n:])
		}
	}
}
