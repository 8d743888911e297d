package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

type gather struct {
	cut
	table, out matrix
	index      indexes
}

var gatherKernel = parallel.NewKernel((*gather).part)

// embeddingFwd follows ops.EmbeddingFwd.
func embeddingFwd(e *opregistry.Exec, a ops.EmbeddingFwdArgs) error {
	var v views
	c := gather{table: v.matrix("weight", a.Weight), out: v.matrix("output", a.Output), index: v.indexes("indices", a.Indices)}
	if v.err != nil {
		return v.err
	}
	c.cut = cutItems(c.out.rows, c.out.cols)
	gatherKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *gather) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		copy(c.out.row(r), c.table.row(c.index.at(r)))
	}
}

// scatterColumns is the width of the strips of a table that one part owns.
const scatterColumns = 64

// scatter adds the rows of a gradient to a table. Each part owns strips of
// columns and takes all rows in order, so that no two parts write to one element.
type scatter struct {
	cut
	grad, table matrix
	index       indexes
}

var scatterKernel = parallel.NewKernel((*scatter).part)

var zeroKernel = parallel.NewKernel((*zero).part)

// embeddingBwd follows ops.EmbeddingBwd.
func embeddingBwd(e *opregistry.Exec, a ops.EmbeddingBwdArgs) error {
	var v views
	c := scatter{grad: v.matrix("grad", a.Grad), table: v.matrix("dweight", a.DWeight), index: v.indexes("indices", a.Indices)}
	if v.err != nil {
		return v.err
	}
	if !a.Accumulate {
		z := zero{cut: cutItems(c.table.rows, c.table.cols), out: c.table}
		zeroKernel.Run(e.Pool(), z.parts, z)
	}
	strips := roundUp(c.table.cols, scatterColumns) / scatterColumns
	c.cut = cutItems(strips, scatterColumns*c.grad.rows)
	scatterKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *scatter) part(part int) {
	lo, hi := c.bounds(part)
	lo, hi = lo*scatterColumns, min(hi*scatterColumns, c.table.cols)
	for r := range c.grad.rows {
		sum := c.table.row(c.index.at(r))[lo:hi]
		simd.Add(sum, sum, c.grad.row(r)[lo:hi])
	}
}

// zero clears rows.
type zero struct {
	cut
	out matrix
}

func (c *zero) part(part int) {
	lo, hi := c.bounds(part)
	for r := lo; r < hi; r++ {
		clear(c.out.row(r))
	}
}
