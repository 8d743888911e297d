package flagos

import (
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/tensor"
)

// leftPad separates the packed rows of left by one cache line, so that rows whose length is a power
// of two do not fall into the same sets of a cache.
const leftPad = 16

// gemmOperand is op(X) of a product: element (r, c) lies at r·rowStep + c·colStep.
type gemmOperand struct {
	data []float32
	half
	rows, cols       int
	rowStep, colStep int
}

// gemmOperandOf returns the elements of t as a matrix, and whether the axes before the last form
// rows at a constant distance.
func gemmOperandOf(t *tensor.Tensor) (gemmOperand, bool) {
	shape, strides := t.Shape(), t.Strides()
	last := len(shape) - 1
	x := gemmOperand{rows: shape.Rows(), cols: shape.Cols(), rowStep: shape[last], colStep: strides[last]}
	x.data, x.half = elementsOf(t)
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
	x.rows, x.cols, x.rowStep, x.colStep = x.cols, x.rows, x.colStep, x.rowStep
	return x
}

// piece returns n adjacent elements. Narrow ones are widened to buf.
func (x *gemmOperand) piece(at, n int, buf []float32) []float32 {
	if !x.narrow() {
		return x.data[at:][:n]
	}
	x.load(buf[:n], at)
	return buf[:n]
}

// one returns the element at an index.
func (x *gemmOperand) one(at int) float32 {
	var buf [1]float32
	return x.piece(at, 1, buf[:])[0]
}

// widenedRow returns row r of an operand whose rows are dense. A narrow one is widened to buf.
func (x *gemmOperand) widenedRow(r int, buf []float32) []float32 {
	if x.cols == 0 {
		return nil
	}
	return x.piece(r*x.rowStep, x.cols, buf)
}

// row returns row r of an operand of f32 whose rows are dense.
func (x gemmOperand) row(r int) []float32 {
	if x.cols == 0 {
		return nil
	}
	return x.data[r*x.rowStep:][:x.cols]
}

// from returns the rows of f32 from row r on.
func (x gemmOperand) from(r int) gemmOperand {
	x.rows -= r
	if x.rows > 0 && x.cols > 0 {
		x.data = x.data[r*x.rowStep:]
	}
	return x
}

// packRows copies rows from r0 and columns from k0 of an operand whose rows are dense, at the pitch
// of the micro-kernel. Missing rows of the last tile become zero.
func (x gemmOperand) packRows(dst []float32, pitch, r0, rows, k0, depth, mr int) {
	for r := range rows {
		to, at := dst[r*pitch:][:depth], (r0+r)*x.rowStep+k0
		if x.narrow() {
			x.load(to, at)
		} else {
			copy(to, x.data[at:])
		}
	}
	clear(dst[rows*pitch : roundUp(rows, mr)*pitch])
}

// packColumns copies rows from k0 of the columns from col to colEnd, which are dense, as panels of
// width columns that lie panel elements apart; missing columns of the last panel become zero.
func (x gemmOperand) packColumns(dst []float32, panel, k0, depth, col, colEnd, width int) {
	if x.narrow() {
		x.packHalfColumns(dst, panel, k0, depth, col, colEnd, width)
		return
	}
	for ; col < colEnd; col += width {
		w := min(width, colEnd-col)
		if w < width {
			clear(dst[:depth*width])
		}
		kernel.Transpose(dst, width, x.data[col*x.colStep+k0:], x.colStep, w, depth)
		dst = dst[min(panel, len(dst)):]
	}
}

// packSteps copies rows from k0 of the columns from col to colEnd, whatever the strides, as panels
// of width columns that lie panel elements apart; missing columns of the last panel become zero.
func (x gemmOperand) packSteps(dst []float32, panel, k0, depth, col, colEnd, width int) {
	if x.cols == 0 || depth == 0 {
		return
	}
	at, n := k0*x.rowStep+col*x.colStep, colEnd-col
	switch {
	case x.colStep == 1 && x.narrow():
		x.packHalfSteps(dst, panel, at, depth, n, width)
		return
	case x.colStep == 1:
		kernel.Spread(dst, panel, width, x.data[at:], x.rowStep, depth, n)
		return
	}
	for k := range depth {
		for i := range n {
			dst[i/width*panel+k*width+i%width] = x.one(at + k*x.rowStep + i*x.colStep)
		}
		if rest := n % width; rest > 0 {
			clear(dst[n/width*panel+k*width+rest:][:width-rest])
		}
	}
}
