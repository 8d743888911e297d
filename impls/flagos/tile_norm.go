package flagos

import "github.com/primus-fl/primus/internal/parallel"

var (
	normFwdTiles = parallel.NewKernel((*normFwd).tiles)
	normBwdTiles = parallel.NewKernel((*normBwd).tiles)
)

func (c *normFwd) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.cut, w.x, w.y = t.whole(), t.load(c.x), t.place(c.y)
		w.rsigma = c.rsigma[t.lo:t.hi]
		if c.mu != nil {
			w.mu = c.mu[t.lo:t.hi]
		}
		w.part(0)
		t.store(c.y, w.y)
	}
}

func (c *normBwd) tiles(part int) {
	sums := c.sums(part)
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.dz, c.x, c.add, c.dx); t.next(); {
		w := *c
		w.dz, w.x, w.dx = t.load(c.dz), t.load(c.x), t.place(c.dx)
		w.rsigma = c.rsigma[t.lo:t.hi]
		if c.mu != nil {
			w.mu = c.mu[t.lo:t.hi]
		}
		if c.add.rows > 0 {
			w.add = t.load(c.add)
		}
		w.rows(0, t.hi-t.lo, &sums)
		t.store(c.dx, w.dx)
	}
}
