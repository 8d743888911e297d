package flagos

import (
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
)

// sum adds rows, or elements when all operands are dense.
type sum struct {
	cut
	exec      *opregistry.Exec
	a, b, out matrix
	dense     bool
}

var sumKernel = parallel.NewKernel((*sum).part)

// residualAdd implements norm.ResidualAdd.
func residualAdd(e *opregistry.Exec, a norm.ResidualAddArgs) error {
	var v views
	c := sum{exec: e, a: v.matrix("a", a.A), b: v.matrix("b", a.B), out: v.matrix("output", a.Output)}
	if v.err != nil {
		return v.err
	}
	c.dense = c.a.dense() && c.b.dense() && c.out.dense()
	if c.dense {
		for _, m := range [...]*matrix{&c.a, &c.b, &c.out} {
			m.rows, m.cols, m.pitch = m.rows*m.cols, 1, 1
		}
	}
	c.cut = cutItems(c.a.rows, c.a.cols)
	kernelFor(sumKernel, sumTiles, c.a, c.b, c.out).Run(e.Pool(), c.parts, c)
	return nil
}

func (c *sum) part(part int) {
	lo, hi := c.bounds(part)
	if c.dense {
		vector.Add(c.out.data[lo:hi], c.a.data[lo:hi], c.b.data[lo:hi])
		return
	}
	for r := lo; r < hi; r++ {
		vector.Add(c.out.row(r), c.a.row(r), c.b.row(r))
	}
}
