package flagos

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
)

type gather struct {
	cut
	table, out matrix
	index      indexes
}

var gatherKernel = parallel.NewKernel((*gather).part)

// embeddingFwd implements embedding.EmbeddingFwd.
func embeddingFwd(e *opregistry.Exec, a embedding.EmbeddingFwdArgs) error {
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

// scatterBlock is the number of adjacent rows of a table that belong to one part. The blocks are
// dealt out in turn, because frequent tokens tend to have indexes close to each other.
const scatterBlock = 16

// scatter adds the rows of a gradient to a table. Each part owns rows of the table and writes each
// of them once, in order. It takes the rows of the gradient that belong to a row in the order of
// the indexes, which makes the order of each sum fixed.
type scatter struct {
	exec        *opregistry.Exec
	parts       int
	grad, table matrix
	accumulate  bool
	first       []int32 // row of the gradient for each row of the table, -1 for none
	next        []int32 // row of the gradient with the same index, -1 for none
}

var scatterKernel = parallel.NewKernel((*scatter).part)

// embeddingBwd implements embedding.EmbeddingBwd. Scratch: four bytes for each row of grad and of
// dweight; with bf16 and f16 also two rows of f32 per worker.
func embeddingBwd(e *opregistry.Exec, a embedding.EmbeddingBwdArgs) error {
	var v views
	c := scatter{exec: e, grad: v.matrix("grad", a.Grad), table: v.matrix("dweight", a.DWeight), accumulate: a.Accumulate}
	index := v.indexes("indices", a.Indices)
	if v.err != nil {
		return v.err
	}
	scratch := e.Scratch(c.table.rows + c.grad.rows)
	defer e.Release(scratch)
	lists := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch))
	c.first, c.next = lists[:c.table.rows], lists[c.table.rows:]
	for i := range c.first {
		c.first[i] = -1
	}
	for r := c.grad.rows - 1; r >= 0; r-- {
		row := index.at(r)
		c.next[r], c.first[row] = c.first[row], int32(r)
	}
	rows := c.grad.rows
	if !a.Accumulate {
		rows += c.table.rows
	}
	blocks := (c.table.rows + scatterBlock - 1) / scatterBlock
	c.parts = min(max(rows*c.grad.cols/grain, 1), blocks, maxParts)
	scatterKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *scatter) part(part int) {
	var sum, row []float32
	if cols := c.table.cols; c.table.narrow() {
		buf := c.exec.Scratch(2 * cols)
		defer c.exec.Release(buf)
		sum, row = buf[:cols], buf[cols:]
	}
	for lo := part * scatterBlock; lo < c.table.rows; lo += c.parts * scatterBlock {
		for r := lo; r < min(lo+scatterBlock, c.table.rows); r++ {
			c.fill(r, sum, row)
		}
	}
}

// fill computes one row of the table. sum and row are used for narrow elements.
func (c *scatter) fill(to int, sum, row []float32) {
	cols, r := c.table.cols, c.first[to]
	switch {
	case r < 0 && c.accumulate:
		return
	case r < 0:
		c.table.zero(to)
		return
	case c.accumulate:
		sum = c.table.piece(to, 0, cols, sum)
	case c.next[r] < 0:
		c.table.take(to, &c.grad, int(r))
		return
	default:
		sum = c.table.place(to, 0, cols, sum)
		copy(sum, c.grad.piece(int(r), 0, cols, row))
		r = c.next[r]
	}
	for ; r >= 0; r = c.next[r] {
		vector.Add(sum, sum, c.grad.piece(int(r), 0, cols, row))
	}
	c.table.settle(to, 0, sum)
}
