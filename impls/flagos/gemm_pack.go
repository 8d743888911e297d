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

// transposed returns the transpose.
func (x gemmOperand) transposed() gemmOperand {
	return gemmOperand{data: x.data, rows: x.cols, cols: x.rows, rowStep: x.colStep, colStep: x.rowStep}
}

// row returns row r of an operand whose rows are dense.
func (x gemmOperand) row(r int) []float32 {
	if x.cols == 0 {
		return nil
	}
	return x.data[r*x.rowStep:][:x.cols]
}

// from returns n rows from row r on.
func (x gemmOperand) from(r, n int) gemmOperand {
	if n > 0 && x.cols > 0 {
		x.data = x.data[r*x.rowStep:]
	}
	x.rows = n
	return x
}

// packRows copies rows r0 and following, columns k0 and following, of an operand
// whose rows are dense, at a pitch for the micro-kernel. Missing rows of the last
// tile are zero.
func (x gemmOperand) packRows(dst []float32, pitch, r0, rows, k0, depth, mr int) {
	for r := range rows {
		copy(dst[r*pitch:][:depth], x.data[(r0+r)*x.rowStep+k0:])
	}
	clear(dst[rows*pitch : roundUp(rows, mr)*pitch])
}

// packColumns copies rows k0 and following of the columns from col to colEnd, which
// are dense, as panels of width columns that lie panel elements apart; missing
// columns of the last one are zero.
func (x gemmOperand) packColumns(dst []float32, panel, k0, depth, col, colEnd, width int) {
	for ; col < colEnd; col += width {
		w := min(width, colEnd-col)
		if w < width {
			clear(dst[:depth*width])
		}
		simd.Transpose(dst, width, x.data[col*x.colStep+k0:], x.colStep, w, depth)
		dst = dst[min(panel, len(dst)):]
	}
}

// packStep copies row k of the columns from col to colEnd, whatever the strides, to
// panels of width columns that lie panel elements apart; missing columns of the
// last one are zero.
func (x gemmOperand) packStep(dst []float32, panel, k, col, colEnd, width int) {
	spread(dst, panel, width, x.data[k*x.rowStep+col*x.colStep:], x.colStep, colEnd-col)
}

// packSteps does so for all rows.
func (x gemmOperand) packSteps(dst []float32, panel, width int) {
	for k := range x.rows {
		x.packStep(dst[k*width:], panel, k, 0, x.cols, width)
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
		to := 0
		for i := 0; i+32 <= n; i += 32 {
			d, s := (*[32]float32)(dst[to:]), (*[32]float32)(src[i:])
			copy16((*[16]float32)(d[:16]), (*[16]float32)(s[:16]))
			copy16((*[16]float32)(d[16:]), (*[16]float32)(s[16:]))
			to += panel
		}
	case width == 12:
		to := 0
		for i := 0; i+12 <= n; i += 12 {
			d, s := (*[12]float32)(dst[to:]), (*[12]float32)(src[i:])
			*(*[4]float32)(d[0:]) = *(*[4]float32)(s[0:])
			*(*[4]float32)(d[4:]) = *(*[4]float32)(s[4:])
			*(*[4]float32)(d[8:]) = *(*[4]float32)(s[8:])
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

// copy16 copies in pieces that the compiler moves without a call.
func copy16(d, s *[16]float32) {
	*(*[4]float32)(d[0:]) = *(*[4]float32)(s[0:])
	*(*[4]float32)(d[4:]) = *(*[4]float32)(s[4:])
	*(*[4]float32)(d[8:]) = *(*[4]float32)(s[8:])
	*(*[4]float32)(d[12:]) = *(*[4]float32)(s[12:])
}
