package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
)

var (
	normFwdTiles      = parallel.NewKernel((*normFwd).tiles)
	normBwdTiles      = parallel.NewKernel((*normBwd).tiles)
	layerNormFwdTiles = parallel.NewKernel((*layerNormFwd).tiles)
	layerNormBwdTiles = parallel.NewKernel((*layerNormBwd).tiles)
)

func (c *normFwd) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.cut, w.x, w.y = t.whole(), t.load(c.x), t.place(c.y)
		w.rsigma = c.rsigma[t.lo:t.hi]
		w.part(0)
		t.store(c.y, w.y)
	}
}

// tiles adds the sums of one tile after the other.
func (c *normBwd) tiles(part int) {
	lo, hi := c.bounds(part)
	dgamma := c.dgamma.row(part)
	clear(dgamma)
	own := c.exec.Scratch(c.x.cols)
	for t := newTile(c.exec, lo, hi, c.dz, c.x, c.dx); t.next(); {
		w := *c
		w.cut, w.dz, w.x, w.dx = t.whole(), t.load(c.dz), t.load(c.x), t.place(c.dx)
		w.rsigma = c.rsigma[t.lo:t.hi]
		w.dgamma = partRows(own, 1, c.x.cols)
		w.part(0)
		simd.Add(dgamma, dgamma, own)
		t.store(c.dx, w.dx)
	}
	c.exec.Release(own)
}

func (c *layerNormFwd) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.cut, w.x, w.y = t.whole(), t.load(c.x), t.place(c.y)
		w.mu, w.rsigma = c.mu[t.lo:t.hi], c.rsigma[t.lo:t.hi]
		w.part(0)
		t.store(c.y, w.y)
	}
}

// tiles adds the sums of one tile after the other.
func (c *layerNormBwd) tiles(part int) {
	lo, hi := c.bounds(part)
	dgamma, dbeta := c.dgamma.row(part), c.dbeta.row(part)
	clear(dgamma)
	clear(dbeta)
	own := c.exec.Scratch(2 * c.x.cols)
	for t := newTile(c.exec, lo, hi, c.dz, c.x, c.dx); t.next(); {
		w := *c
		w.cut, w.dz, w.x, w.dx = t.whole(), t.load(c.dz), t.load(c.x), t.place(c.dx)
		w.mu, w.rsigma = c.mu[t.lo:t.hi], c.rsigma[t.lo:t.hi]
		w.dgamma, w.dbeta = partRows(own, 1, c.x.cols), partRows(own[c.x.cols:], 1, c.x.cols)
		w.xhat, w.dzg, w.terms = c.xhat.sub(part, 1), c.dzg.sub(part, 1), c.terms.sub(part, 1)
		w.part(0)
		simd.Add(dgamma, dgamma, own[:c.x.cols])
		simd.Add(dbeta, dbeta, own[c.x.cols:])
		t.store(c.dx, w.dx)
	}
	c.exec.Release(own)
}
