package gemm

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/opregistry"
)

// gemmTarget is the memory in which a part of a product accumulates c: D itself, or scratch with
// the rows from row on of the columns from first to end.
type gemmTarget struct {
	exec     *opregistry.Exec
	buf      []float32 // nil when the memory is D's
	data     []float32
	pitch    int
	row      int // the first row in data
	col, end int
	first    int // the first column in data
}

// target returns the memory for columns of at most this many rows.
func (g *blocked) target(rows, col, end int) gemmTarget {
	t := gemmTarget{exec: g.exec, col: col, end: end}
	if g.direct {
		t.data, t.pitch = g.epilogue.d.Data, g.epilogue.d.Pitch
		return t
	}
	t.pitch, t.first = end-col+panel.LeftPad, col
	t.buf = g.exec.Scratch(rows * t.pitch)
	t.data = t.buf
	return t
}

// move makes the target ready for the rows from row on.
func (t *gemmTarget) move(row int) {
	if t.buf != nil {
		t.row = row
	}
}

// at returns the elements of a row of c from a column on.
func (t *gemmTarget) at(r, col int) []float32 { return t.data[(r-t.row)*t.pitch+col-t.first:] }

func (t *gemmTarget) release() {
	if t.buf != nil {
		t.exec.Release(t.buf)
	}
}

// gemmEpilogue holds what is added to a product or applied to it.
type gemmEpilogue struct {
	d      host.Matrix
	geluIn host.Matrix
	bias   []float32 // nil without a bias
	beta   float32   // factor of D; 0 if the product has been added to D already
	gelu   bool
	grad   bool
	stored bool // the product is in D
}

// geluChunk is how many elements gelu processes at a time.
const geluChunk = 256

// geluScratch is scratch for a chunk. It holds ones because gelu is computed as a gate, whose other
// factor is 1.
type geluScratch struct{ y, line, ones, unused [geluChunk]float32 }

// finish computes rows of D from a target.
func (c *gemmEpilogue) finish(t gemmTarget, r0, rows int) {
	if c.stored && c.bias == nil {
		return
	}
	if !c.gelu && c.beta == 0 {
		for r := r0; r < r0+rows; r++ {
			c.round(t.at(r, t.col)[:t.end-t.col], r, t.col)
		}
		return
	}
	var buf geluScratch
	for i := range buf.ones {
		buf.ones[i] = 1
	}
	for r := r0; r < r0+rows; r++ {
		for col := t.col; col < t.end; col += geluChunk {
			c.chunk(t.at(r, col)[:min(geluChunk, t.end-col)], r, col, &buf)
		}
	}
}

// round finishes elements of a product that only a bias is added to.
func (c *gemmEpilogue) round(product []float32, r, col int) {
	if c.bias != nil {
		vector.Add(product, product, c.bias[col:])
	}
	if !c.stored {
		c.d.Put(r, col, product)
	}
}

// chunk finishes at most geluChunk elements of a product that is not in D.
func (c *gemmEpilogue) chunk(product []float32, r, col int, buf *geluScratch) {
	if c.bias != nil {
		vector.Add(product, product, c.bias[col:])
	}
	n := len(product)
	y, line, ones := buf.y[:n], buf.line[:n], buf.ones[:n]
	switch {
	case !c.gelu:
		y = product
	case c.grad:
		vector.GateGrad(y, buf.unused[:n], product, c.geluIn.Piece(r, col, n, line), ones, vector.GELU())
	default:
		c.geluIn.Put(r, col, product)
		vector.Gate(y, product, ones, vector.GELU())
	}
	if c.beta != 0 {
		vector.Axpy(c.beta, c.d.Piece(r, col, n, line), y)
	}
	c.d.Put(r, col, y)
}
