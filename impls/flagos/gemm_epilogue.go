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

// geluRoom is scratch for a chunk, with ones: gelu is a gate that lets them through.
type geluRoom struct{ y, line, ones, unused [geluChunk]float32 }

// finish makes D of some rows of a target.
func (c *gemmEpilogue) finish(t gemmTarget, r0, rows int) {
	if c.stored && c.bias == nil {
		return
	}
	var room geluRoom
	for i := range room.ones {
		room.ones[i] = 1
	}
	for r := r0; r < r0+rows; r++ {
		for col := t.col; col < t.end; col += geluChunk {
			c.chunk(t.at(r, col)[:min(geluChunk, t.end-col)], r, col, &room)
		}
	}
}

// chunk finishes at most geluChunk elements of a product.
func (c *gemmEpilogue) chunk(product []float32, r, col int, room *geluRoom) {
	if c.bias != nil {
		simd.Add(product, product, c.bias[col:])
	}
	n := len(product)
	y, line, ones := room.y[:n], room.line[:n], room.ones[:n]
	switch {
	case c.stored:
		return
	case !c.gelu:
		y = product
	case c.grad:
		simd.GateGrad(y, room.unused[:n], product, c.geluIn.piece(r, col, n, line), ones, geluGate())
	default:
		c.geluIn.put(r, col, product)
		simd.Gate(y, product, ones, geluGate())
	}
	if c.beta != 0 {
		simd.Axpy(c.beta, c.d.piece(r, col, n, line), y)
	}
	c.d.put(r, col, y)
}
