package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
)

var entropyTiles = parallel.NewKernel((*entropy).tiles)

var entropyGradTiles = parallel.NewKernel((*entropyGrad).tiles)

func (c *entropy) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.logits); t.Next(); {
		w := *c
		w.Cut, w.logits, w.targets = t.Whole(), t.Load(c.logits), c.targets.From(t.Lo)
		w.losses, w.lse = c.losses[t.Lo:t.Hi], c.lse[t.Lo:t.Hi]
		w.part(0)
	}
}

func (c *entropyGrad) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.logits, c.dlogits); t.Next(); {
		w := *c
		w.Cut, w.logits, w.dlogits = t.Whole(), t.Load(c.logits), t.Place(c.dlogits)
		w.targets, w.lse, w.dlosses = c.targets.From(t.Lo), c.lse[t.Lo:t.Hi], c.dlosses[t.Lo:t.Hi]
		w.part(0)
		t.Store(c.dlogits, w.dlogits)
	}
}
