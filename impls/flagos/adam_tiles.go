package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/layers"
	"github.com/primus-fl/primus/internal/kernel/vector"
)

// maxAdamLists is the number of lists with master weights, the largest there is.
const maxAdamLists = 5

// tiles performs a step for tensors of which some are narrow.
func (c *adam) tiles(at, lo, hi int) {
	var buffers [maxAdamLists][listTile]float32
	var x [maxAdamLists][]float32
	var lines [maxAdamLists]host.Matrix
	for i, list := range c.lists {
		lines[i] = host.Flatten(list[at])
	}
	for ; lo < hi; lo += listTile {
		n := min(listTile, hi-lo)
		for i := range c.lists {
			x[i] = lines[i].Piece(0, lo, n, buffers[i][:])
		}
		g, p, m, v := x[0], x[1], x[2], x[3]
		first := 1 // of the lists that are written
		if c.unscales {
			vector.Scale(c.scale, g, g)
			first = 0
		}
		if len(c.lists) == maxAdamLists {
			layers.Adam(x[4], m, v, g, &c.step)
			copy(p, x[4])
		} else {
			layers.Adam(p, m, v, g, &c.step)
		}
		for i := first; i < len(c.lists); i++ {
			lines[i].Settle(0, lo, x[i])
		}
	}
}
