package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
)

var activateTiles = parallel.NewKernel((*activate).tiles)

var activateGradTiles = parallel.NewKernel((*activateGrad).tiles)

func (c *activate) tiles(part int) {
	lo, hi := c.Bounds(part)
	buf := c.f.scratch(c.exec, c.y.Cols)
	for t := host.NewTile(c.exec, lo, hi, c.x, c.y); t.Next(); {
		w := *c
		w.x, w.y = t.Load(c.x), t.Place(c.y)
		w.rows(0, w.y.Rows, &buf)
		t.Store(c.y, w.y)
	}
	buf.release(c.exec)
}

func (c *activateGrad) tiles(part int) {
	lo, hi := c.Bounds(part)
	var sum []float32
	if c.dbias.Data != nil {
		sum = c.dbias.Row(part)
		clear(sum)
	}
	buf := c.f.scratch(c.exec, c.dy.Cols)
	for t := host.NewTile(c.exec, lo, hi, c.dy, c.x, c.dx); t.Next(); {
		w := *c
		w.dy, w.x, w.dx = t.Load(c.dy), t.Load(c.x), t.Place(c.dx)
		w.rows(0, w.dx.Rows, sum, &buf)
		t.Store(c.dx, w.dx)
	}
	buf.release(c.exec)
}
