package flagos

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
)

// sum adds rows, or elements when all operands are dense.
type sum struct {
	host.Cut
	exec      *opregistry.Exec
	a, b, out host.Matrix
	dense     bool
}

var sumKernel = parallel.NewKernel((*sum).part)

// residualAdd implements norm.ResidualAdd.
func residualAdd(e *opregistry.Exec, a norm.ResidualAddArgs) error {
	var v host.Views
	c := sum{exec: e, a: v.Matrix("a", a.A), b: v.Matrix("b", a.B), out: v.Matrix("output", a.Output)}
	if v.Err != nil {
		return v.Err
	}
	c.dense = c.a.Dense() && c.b.Dense() && c.out.Dense()
	if c.dense {
		for _, m := range [...]*host.Matrix{&c.a, &c.b, &c.out} {
			m.Rows, m.Cols, m.Pitch = m.Rows*m.Cols, 1, 1
		}
	}
	c.Cut = host.CutItems(c.a.Rows, c.a.Cols)
	host.KernelFor(sumKernel, sumTiles, c.a, c.b, c.out).Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *sum) part(part int) {
	lo, hi := c.Bounds(part)
	if c.dense {
		vector.Add(c.out.Data[lo:hi], c.a.Data[lo:hi], c.b.Data[lo:hi])
		return
	}
	for r := lo; r < hi; r++ {
		vector.Add(c.out.Row(r), c.a.Row(r), c.b.Row(r))
	}
}

var sumTiles = parallel.NewKernel((*sum).tiles)

func (c *sum) tiles(part int) {
	lo, hi := c.Bounds(part)
	for t := host.NewTile(c.exec, lo, hi, c.a, c.b, c.out); t.Next(); {
		w := *c
		w.Cut, w.a, w.b, w.out = t.Whole(), t.Load(c.a), t.Load(c.b), t.Place(c.out)
		w.part(0)
		t.Store(c.out, w.out)
	}
}
