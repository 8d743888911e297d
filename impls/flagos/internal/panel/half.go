package panel

import kernel "github.com/primus-fl/primus/internal/kernel/gemm"

const (
	// halfTile is the number of elements that are widened before they are packed; they take a part
	// of a first-level cache.
	halfTile = 2048

	// halfSteps is how many rows of them are packed together by packHalfSteps.
	halfSteps = 8
)

// packHalfColumns is PackColumns for elements of 16 bits.
func (x *Operand) packHalfColumns(dst []float32, panel, k0, depth, col, colEnd, width int) {
	var tile [halfTile]float32
	some := halfTile / width
	for ; col < colEnd; col += width {
		w := min(width, colEnd-col)
		if w < width {
			clear(dst[:depth*width])
		}
		for k := 0; k < depth; k += some {
			n := min(some, depth-k)
			for i := range w {
				x.Load(tile[i*some:][:n], (col+i)*x.ColStep+k0+k)
			}
			kernel.Transpose(dst[k*width:], width, tile[:], some, w, n)
		}
		dst = dst[min(panel, len(dst)):]
	}
}

// packHalfSteps is PackSteps for rows of n dense elements of 16 bits; at is the index of the first
// element of the first row.
func (x *Operand) packHalfSteps(dst []float32, panel, at, depth, n, width int) {
	var tile [halfTile]float32
	some := halfTile / halfSteps / width * width
	for col := 0; col < n; col += some {
		w := min(some, n-col)
		for k := 0; k < depth; k += halfSteps {
			rows := min(halfSteps, depth-k)
			for r := range rows {
				x.Load(tile[r*some:][:w], at+(k+r)*x.RowStep+col)
			}
			kernel.Spread(dst[col/width*panel+k*width:], panel, width, tile[:], some, rows, w)
		}
	}
}
