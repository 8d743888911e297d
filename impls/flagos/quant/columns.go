package quant

import (
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/ops/quant"
)

// The tiles of data by columns. A row of a tile has the columns whose magnitudes a kernel keeps in
// registers; a column of data that will be transposed has several cache lines, because lines that
// lie a row apart are slow to write one by one.
const (
	columnsWidth  = 512
	columnsHeight = 512
)

// strips reports whether the columns of a strip of rows are blocks.
func (c *quantization) strips() bool {
	return c.cols.on && c.q.Scaling.BlockLen() > 0 && !c.q.Block2D
}

// byColumns quantises the columns of a tile in blocks.
func (c *quantization) byColumns(t *tile) {
	b, factor := c.q.Scaling.BlockLen(), t.factor[:t.width]
	for first := 0; first < t.height; first += b {
		n := min(b, t.height-first)
		x, pitch := c.strip(t, first, n)
		fp8.AmaxColumns(factor, x, pitch, n)
		to := t.bytes
		to.Data = to.Data[first*to.Pitch:]
		if c.q.Scaling == quant.MXFP8Scaling {
			to = c.cols.data
			to.Data = to.Data[(t.row+first)*to.Pitch+t.col:]
			c.store(factor, &c.cols, (t.row+first)/b, t.col)
		} else {
			for j := range factor {
				c.store(factor[j:j+1], &c.cols, t.col+j, (t.row+first)/b)
			}
		}
		for r := range n {
			c.f.EncodeEach(to.Piece(r, 0, t.width), x[r*pitch:][:t.width], factor)
		}
	}
}

// strip returns n rows of a tile and how far they lie apart.
func (c *quantization) strip(t *tile, first, n int) (x []float32, pitch int) {
	if !c.x.Narrow() {
		return c.x.Data[(t.row+first)*c.x.Pitch+t.col:], c.x.Pitch
	}
	for r := range n {
		c.x.Piece(t.row+first+r, t.col, t.width, t.line[r*t.width:])
	}
	return t.line, t.width
}
