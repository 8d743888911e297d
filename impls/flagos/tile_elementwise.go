package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
)

var (
	activateTiles     = parallel.NewKernel((*activate).tiles)
	activateGradTiles = parallel.NewKernel((*activateGrad).tiles)
	sumTiles          = parallel.NewKernel((*sum).tiles)
	entropyTiles      = parallel.NewKernel((*entropy).tiles)
	entropyGradTiles  = parallel.NewKernel((*entropyGrad).tiles)
)

func (c *activate) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.cut, w.x, w.y = t.whole(), t.load(c.x), t.place(c.y)
		w.part(0)
		t.store(c.y, w.y)
	}
}

// tiles adds the sums of one tile after the other.
func (c *activateGrad) tiles(part int) {
	lo, hi := c.bounds(part)
	var own []float32
	if c.dbias.data != nil {
		clear(c.dbias.row(part))
		own = c.exec.Scratch(c.x.cols)
		defer c.exec.Release(own)
	}
	for t := newTile(c.exec, lo, hi, c.dy, c.x, c.dx); t.next(); {
		w := *c
		w.cut, w.dy, w.x, w.dx = t.whole(), t.load(c.dy), t.load(c.x), t.place(c.dx)
		if own != nil {
			w.dbias = partRows(own, 1, c.x.cols)
		}
		w.part(0)
		if own != nil {
			simd.Add(c.dbias.row(part), c.dbias.row(part), own)
		}
		t.store(c.dx, w.dx)
	}
}

func (c *sum) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.a, c.b, c.out); t.next(); {
		w := *c
		w.cut, w.a, w.b, w.out = t.whole(), t.load(c.a), t.load(c.b), t.place(c.out)
		w.part(0)
		t.store(c.out, w.out)
	}
}

func (c *entropy) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.logits); t.next(); {
		w := *c
		w.cut, w.logits, w.targets = t.whole(), t.load(c.logits), c.targets.from(t.lo)
		w.losses, w.lse = c.losses[t.lo:t.hi], c.lse[t.lo:t.hi]
		w.part(0)
	}
}

func (c *entropyGrad) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.logits, c.dlogits); t.next(); {
		w := *c
		w.cut, w.logits, w.dlogits = t.whole(), t.load(c.logits), t.place(c.dlogits)
		w.targets, w.lse, w.dlosses = c.targets.from(t.lo), c.lse[t.lo:t.hi], c.dlosses[t.lo:t.hi]
		w.part(0)
		t.store(c.dlogits, w.dlogits)
	}
}
