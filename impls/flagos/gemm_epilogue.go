package flagos

import (
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
)

// gemmTarget is where a part of a product puts c: into D itself, or into scratch that
// holds the rows from row on of the columns from col to end.
type gemmTarget struct {
	exec     *opregistry.Exec
	room     []float32 // nil when it is D
	data     []float32
	pitch    int
	row      int // the first row in data
	col, end int
	first    int // the first column in data
}

// target returns where a part puts columns of at most some rows.
func (g *gemm) target(rows, col, end int) gemmTarget {
	t := gemmTarget{exec: g.exec, col: col, end: end}
	if g.direct {
		t.data, t.pitch = g.epilogue.d.data, g.epilogue.d.pitch
		return t
	}
	t.pitch, t.first = end-col+leftPad, col
	t.room = g.exec.Scratch(rows * t.pitch)
	t.data = t.room
	return t
}

// move makes room for the rows from one on.
func (t *gemmTarget) move(row int) {
	if t.room != nil {
		t.row = row
	}
}

// at returns the elements from one of c on.
func (t *gemmTarget) at(r, col int) []float32 { return t.data[(r-t.row)*t.pitch+col-t.first:] }

func (t *gemmTarget) release() {
	if t.room != nil {
		t.exec.Release(t.room)
	}
}

// gemmEpilogue is what follows a product.
type gemmEpilogue struct {
	d      matrix
	geluIn matrix
	bias   []float32 // nil without
	beta   float32   // of what D holds, unless the product has been added to it
	gelu   bool
	grad   bool
	stored bool // the product is in D
}

// geluChunk is how many elements pass through gelu at a time.
const geluChunk = 256

// finish makes D of some rows of a target.
func (c *gemmEpilogue) finish(t gemmTarget, r0, rows int) {
	if c.stored && c.bias == nil {
		return
	}
	var y, line [geluChunk]float32
	for r := r0; r < r0+rows; r++ {
		for col := t.col; col < t.end; col += geluChunk {
			n := min(geluChunk, t.end-col)
			c.chunk(t.at(r, col)[:n], r, col, y[:n], line[:n])
		}
	}
}

// chunk finishes at most geluChunk elements of a product; y and line have room for as
// many.
func (c *gemmEpilogue) chunk(product []float32, r, col int, y, line []float32) {
	if c.bias != nil {
		simd.Add(product, product, c.bias[col:])
	}
	switch {
	case c.stored:
		return
	case !c.gelu:
		y = product
	case c.grad:
		geluDerivative(y, c.geluIn.piece(r, col, len(product), line))
		simd.Mul(y, y, product)
	default:
		c.geluIn.put(r, col, product)
		gelu(y, product)
	}
	if c.beta != 0 {
		simd.Axpy(c.beta, c.d.piece(r, col, len(product), line), y)
	}
	c.d.put(r, col, y)
}

// gelu(x) = x/2·(1 + tanh u) = x·σ(2u) with 2u = geluLinear·x + geluCubic·x³.
const (
	geluLinear = 1.5957691216057308 // 2·√(2/π)
	geluCubic  = geluLinear * 0.044715
)

// gelu stores the tanh form of GELU of at most geluChunk elements. Source:
// Hendrycks and Gimpel 2016, arXiv:1606.08415.
func gelu(y, x []float32) {
	var room [geluChunk]float32
	u := room[:len(x)]
	simd.Mul(u, x, x)
	simd.Mul(u, u, x)
	simd.Scale(geluCubic, u, u)
	simd.Axpy(geluLinear, x, u)
	simd.Sigmoid(u, u)
	simd.Mul(y, x, u)
}

// geluDerivative stores σ(2u) + x·σ(2u)·(1 − σ(2u))·(2u)′ of at most geluChunk
// elements.
func geluDerivative(y, x []float32) {
	var uRoom, slopeRoom [geluChunk]float32
	u, slope := uRoom[:len(x)], slopeRoom[:len(x)]
	simd.Mul(u, x, x)
	simd.Mul(u, u, x)
	simd.Scale(3*geluCubic, slope, u)
	simd.Axpy(geluLinear, x, slope)
	simd.Scale(geluCubic, u, u)
	simd.Axpy(geluLinear, x, u)
	simd.Sigmoid(u, u)
	simd.Mul(slope, slope, u)
	simd.Mul(y, slope, u)
	simd.Scale(-1, y, y)
	simd.Add(y, y, slope)
	simd.Add(y, y, u)
}
