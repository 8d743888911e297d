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
		c.out.take(r, &c.table, c.index.at(r))
	}
}

const (
	// scatterBlock is the number of rows of a table that go to one part together,
	// so many that their marks fill a cache line; the blocks are dealt out in turn,
	// because tokens that are frequent tend to have indexes close to each other.
	scatterBlock = lineFloats

	// scatterParts bounds the parts, each of which looks at all indexes. It is a
	// power of two.
	scatterParts = 16
)

// scatter adds the rows of a gradient to a table. Each part owns rows of the table
// and takes the rows of the gradient in order, so that the order of each sum is
// that of the indexes.
type scatter struct {
	parts       int // a power of two
	grad, table matrix
	index       indexes
	seen        []float32 // 1 for each row of the table that holds a sum; nil if all do
}

var scatterKernel = parallel.NewKernel((*scatter).part)

// embeddingBwd follows ops.EmbeddingBwd. Scratch: one float for each row of dweight
// unless it accumulates; with bf16 and f16 also two copies of the gradient in f32.
func embeddingBwd(e *opregistry.Exec, a ops.EmbeddingBwdArgs) error {
	var v views
	c := scatter{grad: v.matrix("grad", a.Grad), table: v.matrix("dweight", a.DWeight), index: v.indexes("indices", a.Indices)}
	if v.err != nil {
		return v.err
	}
	if c.table.narrow() {
		c.runHalf(e, a.Accumulate)
	} else {
		c.run(e, a.Accumulate)
	}
	return nil
}

func (c scatter) run(e *opregistry.Exec, accumulate bool) {
	work := c.grad.rows * c.grad.cols
	if !accumulate {
		work += c.table.rows * c.table.cols
		c.seen = e.Scratch(c.table.rows)
		defer e.Release(c.seen)
		clear(c.seen)
	}
	for c.parts = 1; c.parts < scatterParts && c.parts*grain < work; c.parts *= 2 {
	}
	scatterKernel.Run(e.Pool(), c.parts, c)
}

func (c *scatter) part(part int) {
	for r := range c.grad.rows {
		row := c.index.at(r)
		if row/scatterBlock&(c.parts-1) != part {
			continue
		}
		to := c.table.row(row)
		if c.seen != nil && c.seen[row] == 0 {
			c.seen[row] = 1
			copy(to, c.grad.row(r))
			continue
		}
		simd.Add(to, to, c.grad.row(r))
	}
	if c.seen == nil {
		return
	}
	for first := part * scatterBlock; first < c.table.rows; first += c.parts * scatterBlock {
		for row := first; row < min(first+scatterBlock, c.table.rows); row++ {
			if c.seen[row] == 0 {
				clear(c.table.row(row))
			}
		}
	}
}
