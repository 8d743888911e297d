package quant

import (
	"github.com/primus-fl/primus/internal/kernel/fp8"
	"github.com/primus-fl/primus/ops/quant"
)

// byColumns quantises the columns of a tile, each of which is a block.
func (c *quantization) byColumns(t *tile) {
	factor := t.factor[:t.width]
	clear(factor)
	for r := range t.height {
		fp8.Raise(factor, c.elements(t, r))
	}
	if c.q.Scaling == quant.MXFP8Scaling {
		c.store(factor, &c.cols, t.row/c.height, t.col)
		for r := range t.height {
			c.f.EncodeEach(c.cols.data.Piece(t.row+r, t.col, t.width), c.elements(t, r), factor)
		}
		return
	}
	for j := range factor {
		c.store(factor[j:j+1], &c.cols, t.col+j, t.row/c.height)
	}
	for r := range t.height {
		c.f.EncodeEach(t.bytes.Piece(r, 0, t.width), c.elements(t, r), factor)
	}
}
