package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
)

var softmaxTiles = parallel.NewKernel((*forward).tiles)

var softmaxGradTiles = parallel.NewKernel((*backward).tiles)

func (c *forward) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.x, c.y); t.Next(); {
		w := *c
		w.Cut, w.first, w.x, w.y = t.Whole(), t.Lo, t.Load(c.x), t.Place(c.y)
		w.part(0)
		t.Store(c.y, w.y)
	}
}

func (c *backward) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.dy, c.y, c.dx); t.Next(); {
		w := *c
		w.Cut, w.first = t.Whole(), t.Lo
		w.dy, w.y, w.dx = t.Load(c.dy), t.Load(c.y), t.Place(c.dx)
		w.part(0)
		t.Store(c.dx, w.dx)
	}
}
