package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
)

var (
	activateTiles     = parallel.NewKernel((*activate).tiles)
	activateGradTiles = parallel.NewKernel((*activateGrad).tiles)
	softmaxTiles      = parallel.NewKernel((*softmax).tiles)
	softmaxGradTiles  = parallel.NewKernel((*softmaxGrad).tiles)
	sumTiles          = parallel.NewKernel((*sum).tiles)
	entropyTiles      = parallel.NewKernel((*entropy).tiles)
	entropyGradTiles  = parallel.NewKernel((*entropyGrad).tiles)
)

func (c *activate) tiles(part int) {
	lo, hi := c.bounds(part)
	buf := c.f.scratch(c.exec, c.y.cols)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.x, w.y = t.load(c.x), t.place(c.y)
		w.rows(0, w.y.rows, &buf)
		t.store(c.y, w.y)
	}
	buf.release(c.exec)
}

func (c *activateGrad) tiles(part int) {
	lo, hi := c.bounds(part)
	var sum []float32
	if c.dbias.data != nil {
		sum = c.dbias.row(part)
		clear(sum)
	}
	buf := c.f.scratch(c.exec, c.dy.cols)
	for t := newTile(c.exec, lo, hi, c.dy, c.x, c.dx); t.next(); {
		w := *c
		w.dy, w.x, w.dx = t.load(c.dy), t.load(c.x), t.place(c.dx)
		w.rows(0, w.dx.rows, sum, &buf)
		t.store(c.dx, w.dx)
	}
	buf.release(c.exec)
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

func (c *softmax) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.x, c.y); t.next(); {
		w := *c
		w.cut, w.first, w.x, w.y = t.whole(), t.lo, t.load(c.x), t.place(c.y)
		w.part(0)
		t.store(c.y, w.y)
	}
}

func (c *softmaxGrad) tiles(part int) {
	lo, hi := c.bounds(part)
	for t := newTile(c.exec, lo, hi, c.dy, c.y, c.dx); t.next(); {
		w := *c
		w.cut, w.first = t.whole(), t.lo
		w.dy, w.y, w.dx = t.load(c.dy), t.load(c.y), t.place(c.dx)
		w.part(0)
		t.store(c.dx, w.dx)
	}
}
