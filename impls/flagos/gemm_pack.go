package flagos

import (
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/tensor"
)

// leftPad separates the packed rows of left, so that rows of a power of two do
// not fall into the same sets of a cache: one cache line.
const leftPad = 16

// gemmOperand is op(X) of a product: element (r, c) lies at r·rowStep + c·colStep.
type gemmOperand struct {
	data             []float32
	rows, cols       int
	rowStep, colStep int
}

// gemmOperandOf returns the elements of t as a matrix and whether the axes but the
// last make up rows of one distance.
func gemmOperandOf(t *tensor.Tensor) (gemmOperand, bool) {
	shape, strides := t.Shape(), t.Strides()
	last := len(shape) - 1
	x := gemmOperand{data: tensor.Data[float32](t), rows: shape.Rows(), cols: shape.Cols(), rowStep: shape[last], colStep: strides[last]}
	if x.cols == 1 {
		x.colStep = 1
	}
	if t.IsContiguous() {
		return x, true
	}
	next := 0
	for axis := last - 1; axis >= 0; axis-- {
		if shape[axis] == 1 {
			continue
		}
		if next == 0 {
			x.rowStep = strides[axis]
		} else if strides[axis] != next {
			return x, false
		}
		next = strides[axis] * shape[axis]
	}
	return x, true
}

// packRows copies rows r0 and following, columns k0 and following, for the
// micro-kernel: panel, row and step are the distances between tiles of mr rows,
// their rows and their steps. Missing rows of the last tile are zero.
func (x *gemmOperand) packRows(dst []float32, r0, rows, k0, depth, mr int) (panel, row, step int) {
	from := x.data
	if depth > 0 {
		from = x.data[r0*x.rowStep+k0*x.colStep:]
	}
	if x.colStep == 1 {
		pitch := depth + leftPad
		for r := range rows {
			copy(dst[r*pitch:][:depth], from[r*x.rowStep:])
		}
		clear(dst[rows*pitch : roundUp(rows, mr)*pitch])
		return mr * pitch, pitch, 1
	}
	panel = mr*depth + leftPad
	for k := range depth {
		spread(dst[k*mr:], panel, mr, from[k*x.colStep:], x.rowStep, rows)
	}
	return panel, 1, mr
}

// packColumns copies the columns from col to colEnd as panels of nr columns for
// the micro-kernel, each rows·nr long; missing columns of the last one are zero.
func (x *gemmOperand) packColumns(dst []float32, col, colEnd, nr int) {
	if x.rowStep != 1 || x.colStep == 1 {
		for k := range x.rows {
			spread(dst[k*nr:], x.rows*nr, nr, x.data[k*x.rowStep+col*x.colStep:], x.colStep, colEnd-col)
		}
		return
	}
	for ; col < colEnd; col += nr {
		w := min(nr, colEnd-col)
		panel := dst[:x.rows*nr]
		if w < nr {
			clear(panel)
		}
		simd.Transpose(panel, nr, x.data[col*x.colStep:], x.colStep, w, x.rows)
		dst = dst[len(panel):]
	}
}

// spread copies n elements that lie each elements apart to groups of width elements
// that lie panel elements apart. The rest of the last group becomes zero.
func spread(dst []float32, panel, width int, src []float32, each, n int) {
	switch {
	case each != 1:
		for i := range n {
			dst[i/width*panel+i%width] = src[i*each]
		}
	case width == 32:
		for i := 0; i+32 <= n; i += 32 {
			*(*[32]float32)(dst[i/32*panel:]) = *(*[32]float32)(src[i:])
		}
	case width == 12:
		to := 0
		for i := 0; i+12 <= n; i += 12 {
			*(*[12]float32)(dst[to:]) = *(*[12]float32)(src[i:])
			to += panel
		}
	default:
		to := 0
		for i := 0; i+width <= n; i += width {
			copy(dst[to:][:width], src[i:])
			to += panel
		}
	}
	rest := n % width
	if rest == 0 {
		return
	}
	last := dst[n/width*panel:][:width]
	if each == 1 {
		copy(last, src[n-rest:n])
	}
	clear(last[rest:])
}
