package panel

import (
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/tensor"
)

// Pairs returns an operand of bf16 with each two adjacent rows as one row of pairs, as
// kernel.PairKernel takes them, and whether that is possible without copies: the number of rows is
// even, and so is the distance of columns whose elements lie side by side.
func (x Operand) Pairs() (Operand, bool) {
	if x.DType() != tensor.BF16 || x.Rows == 0 || x.Rows%2 != 0 {
		return x, false
	}
	x.Rows /= 2
	switch {
	case x.RowStep == 1 && (x.ColStep%2 == 0 || x.Cols == 1):
		bits := x.Bits()
		x.Data = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(bits))), len(bits)/2)
		x.Half, x.ColStep = host.Half{}, max(x.ColStep/2, 1)
		return x, true
	case x.ColStep == 1:
		x.paired = true
		return x, true
	}
	return x, false
}

// packPairs is PackSteps for pairs of rows of n dense elements; at is the index of the first
// element of the first row.
func (x *Operand) packPairs(dst []float32, panel, at, depth, n, width int) {
	var tile [halfTile]float32
	some := halfTile / halfSteps / width * width
	bits := x.Bits()
	for col := 0; col < n; col += some {
		w := min(some, n-col)
		for k := 0; k < depth; k += halfSteps {
			rows := min(halfSteps, depth-k)
			for r := range rows {
				first := at + 2*(k+r)*x.RowStep + col
				kernel.Interleave(tile[r*some:][:w], bits[first:][:w], bits[first+x.RowStep:][:w])
			}
			kernel.Spread(dst[col/width*panel+k*width:], panel, width, tile[:], some, rows, w)
		}
	}
}
