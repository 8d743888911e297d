package quant

import (
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/ops/quant"
)

// A tile whose data is transposed has several cache lines in either direction, because lines that
// lie a power of two apart are slow to read and to write one by one. Other tiles have whole rows,
// which are the fastest to read.
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
			to.Data = to.Data[t.row*to.Pitch+t.col:]
			c.store(factor, &c.cols, t.row/b, t.col)
		} else {
			c.f.Scales(t.amax[first/b*t.width:][:t.width], factor, c.q.AmaxEpsilon, c.q.ForcePow2Scales)
		}
		c.f.EncodeColumns(to.Data, to.Pitch, x, pitch, n, factor)
	}
	if c.q.Scaling == quant.MXFP8Scaling {
		return
	}
	blocks := (t.height + b - 1) / b
	for j := range t.width {
		inv := c.cols.scales.Data[(t.col+j)*c.cols.scales.Pitch+t.row/b:][:blocks]
		for i := range inv {
			inv[i] = t.amax[i*t.width+j]
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
