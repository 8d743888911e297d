package panel

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/tensor"
)

// LeftPad separates the packed rows of left by one cache line, so that rows whose length is a power
// of two do not fall into the same sets of a cache.
const LeftPad = 16

// Operand is op(X) of a product: element (r, c) lies at r·RowStep + c·ColStep.
type Operand struct {
	Data []float32
	host.Half
	Rows, Cols       int
	RowStep, ColStep int

	paired bool // a row is a pair of rows of 16 bits, RowStep apart
}

// Of returns the elements of t as a matrix, and whether the axes before the last form
// rows at a constant distance.
func Of(t *tensor.Tensor) (Operand, bool) {
	shape, strides := t.Shape(), t.Strides()
	last := len(shape) - 1
	x := Operand{Rows: shape.Rows(), Cols: shape.Cols(), RowStep: shape[last], ColStep: strides[last]}
	x.Data, x.Half = host.ElementsOf(t)
	if x.Cols == 1 {
		x.ColStep = 1
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
			x.RowStep = strides[axis]
		} else if strides[axis] != next {
			return x, false
		}
		next = strides[axis] * shape[axis]
	}
	return x, true
}

// Transposed returns the transpose.
func (x Operand) Transposed() Operand {
	x.Rows, x.Cols, x.RowStep, x.ColStep = x.Cols, x.Rows, x.ColStep, x.RowStep
	return x
}

// Piece returns n adjacent elements. Narrow ones are widened to buf.
func (x *Operand) Piece(at, n int, buf []float32) []float32 {
	if !x.Narrow() {
		return x.Data[at:][:n]
	}
	x.Load(buf[:n], at)
	return buf[:n]
}

// One returns the element at an index.
func (x *Operand) One(at int) float32 {
	var buf [1]float32
	return x.Piece(at, 1, buf[:])[0]
}

// WidenedRow returns row r of an operand whose rows are dense. A narrow one is widened to buf.
func (x *Operand) WidenedRow(r int, buf []float32) []float32 {
	if x.Cols == 0 {
		return nil
	}
	return x.Piece(r*x.RowStep, x.Cols, buf)
}

// TimesRows stores the product, as of vector.Dot, of x with each of the rows from row r on, which
// are dense. Narrow ones are read where they are.
func (x *Operand) TimesRows(dst, with []float32, r int) {
	if x.Cols == 0 {
		clear(dst)
		return
	}
	switch at := r * x.RowStep; x.DType() {
	case tensor.BF16:
		vector.DotRowsBF16(dst, with, x.Bits()[at:], x.RowStep)
	case tensor.F16:
		vector.DotRowsF16(dst, with, x.Bits()[at:], x.RowStep)
	case tensor.Unspecified: // of f32
		vector.DotRows(dst, with, x.Data[at:], x.RowStep)
	default:
		panic("BUG: panel: elements of " + x.DType().String())
	}
}

// Widened returns an operand whose rows are dense in f32. Narrow elements are widened to buf.
func (x Operand) Widened(buf []float32) Operand {
	if !x.Narrow() || x.Cols == 0 {
		return x
	}
	for r := range x.Rows {
		x.Load(buf[r*x.Cols:][:x.Cols], r*x.RowStep)
	}
	return Operand{Data: buf, Rows: x.Rows, Cols: x.Cols, RowStep: x.Cols, ColStep: 1}
}

// Row returns row r of an operand of f32 whose rows are dense.
func (x Operand) Row(r int) []float32 {
	if x.Cols == 0 {
		return nil
	}
	return x.Data[r*x.RowStep:][:x.Cols]
}

// From returns the rows of f32 from row r on.
func (x Operand) From(r int) Operand {
	x.Rows -= r
	if x.Rows > 0 && x.Cols > 0 {
		x.Data = x.Data[r*x.RowStep:]
	}
	return x
}

// Block returns rows from first on.
func (x Operand) Block(first, rows int) Operand {
	x.Rows = rows
	switch at := first * x.RowStep; {
	case rows == 0 || x.Cols == 0:
	case x.Narrow():
		x.Half = x.Half.From(at)
	default:
		x.Data = x.Data[at:]
	}
	return x
}

// PackRows copies rows from r0 and columns from k0 of an operand whose rows are dense, at the pitch
// of the micro-kernel. Missing rows of the last tile become zero.
func (x Operand) PackRows(dst []float32, pitch, r0, rows, k0, depth, mr int) {
	for r := range rows {
		to, at := dst[r*pitch:][:depth], (r0+r)*x.RowStep+k0
		if x.Narrow() {
			x.Load(to, at)
		} else {
			copy(to, x.Data[at:])
		}
	}
	clear(dst[rows*pitch : host.RoundUp(rows, mr)*pitch])
}

// PackColumns copies rows from k0 of the columns from col to colEnd, which are dense, as panels of
// width columns that lie panel elements apart; missing columns of the last panel become zero.
func (x Operand) PackColumns(dst []float32, panel, k0, depth, col, colEnd, width int) {
	if x.Narrow() {
		x.packHalfColumns(dst, panel, k0, depth, col, colEnd, width)
		return
	}
	for ; col < colEnd; col += width {
		w := min(width, colEnd-col)
		if w < width {
			clear(dst[:depth*width])
		}
		kernel.Transpose(dst, width, x.Data[col*x.ColStep+k0:], x.ColStep, w, depth)
		dst = dst[min(panel, len(dst)):]
	}
}

// PackSteps copies rows from k0 of the columns from col to colEnd, whatever the strides, as panels
// of width columns that lie panel elements apart; missing columns of the last panel become zero.
func (x Operand) PackSteps(dst []float32, panel, k0, depth, col, colEnd, width int) {
	if x.Cols == 0 || depth == 0 {
		return
	}
	at, n := k0*x.RowStep+col*x.ColStep, colEnd-col
	switch {
	case x.paired:
		x.packPairs(dst, panel, 2*k0*x.RowStep+col, depth, n, width)
		return
	case x.ColStep == 1 && x.Narrow():
		x.packHalfSteps(dst, panel, at, depth, n, width)
		return
	case x.ColStep == 1:
		kernel.Spread(dst, panel, width, x.Data[at:], x.RowStep, depth, n)
		return
	}
	for k := range depth {
		for i := range n {
			dst[i/width*panel+k*width+i%width] = x.One(at + k*x.RowStep + i*x.ColStep)
		}
		if rest := n % width; rest > 0 {
			clear(dst[n/width*panel+k*width+rest:][:width-rest])
		}
	}
}
