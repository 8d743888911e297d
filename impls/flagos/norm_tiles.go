package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
)

var (
	normFwdTiles = parallel.NewKernel((*normFwd).tiles)
	normBwdTiles = parallel.NewKernel((*normBwd).tiles)
)

func (c *normFwd) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.x, c.y); t.Next(); {
		w := *c
		w.Cut, w.x, w.y = t.Whole(), t.Load(c.x), t.Place(c.y)
		w.rsigma, w.block = c.rsigma[t.Lo:t.Hi], 0
		if c.mu != nil {
			w.mu = c.mu[t.Lo:t.Hi]
		}
		w.part(0)
		t.Store(c.y, w.y)
	}
}

func (c *normBwd) tiles(part int) {
	sums := c.sums(part)
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.dz, c.x, c.add, c.dx); t.Next(); {
		w := *c
		w.dz, w.x, w.dx = t.Load(c.dz), t.Load(c.x), t.Place(c.dx)
		w.rsigma, w.block = c.rsigma[t.Lo:t.Hi], 0
		if c.mu != nil {
			w.mu = c.mu[t.Lo:t.Hi]
		}
		if c.add.Rows > 0 {
			w.add = t.Load(c.add)
		}
		w.rows(0, t.Hi-t.Lo, &sums)
		t.Store(c.dx, w.dx)
	}
}
