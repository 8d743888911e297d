package flagos

import (
	"unsafe"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/embedding"
)

// embeddingImpls returns the impls of the family.
func embeddingImpls() []opregistry.Impl {
	return []opregistry.Impl{
		host.Impl(embedding.EmbeddingFwd, embeddingFwd),
		host.Impl(embedding.EmbeddingBwd, embeddingBwd),
	}
}

type gather struct {
	host.Cut
	table, out host.Matrix
	index      host.Indexes
}

var gatherKernel = parallel.NewKernel((*gather).part)

// embeddingFwd implements embedding.EmbeddingFwd.
func embeddingFwd(e *opregistry.Exec, a embedding.EmbeddingFwdArgs) error {
	var v host.Views
	c := gather{table: v.Matrix("weight", a.Weight), out: v.Matrix("output", a.Output), index: v.Indexes("indices", a.Indices)}
	if v.Err != nil {
		return v.Err
	}
	c.Cut = host.CutItems(c.out.Rows, c.out.Cols)
	gatherKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func (c *gather) part(part int) {
	lo, hi := c.Bounds(part)
	for r := lo; r < hi; r++ {
		c.out.Take(r, &c.table, c.index.At(r))
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
	grad, table host.Matrix
	alike       bool // grad and table have one dtype
	accumulate  bool
	first       []int32 // row of the gradient for each row of the table, -1 for none
	next        []int32 // row of the gradient with the same index, -1 for none
}

var scatterKernel = parallel.NewKernel((*scatter).part)

// embeddingBwd implements embedding.EmbeddingBwd. Scratch: four bytes for each row of grad and of
// dweight; with bf16 and f16 also two rows of f32 per worker.
func embeddingBwd(e *opregistry.Exec, a embedding.EmbeddingBwdArgs) error {
	var v host.Views
	c := scatter{exec: e, grad: v.Matrix("grad", a.Grad), table: v.Matrix("dweight", a.DWeight), alike: a.Grad.DType() == a.DWeight.DType(), accumulate: a.Accumulate}
	index := v.Indexes("indices", a.Indices)
	if v.Err != nil {
		return v.Err
	}
	scratch := e.Scratch(c.table.Rows + c.grad.Rows)
	defer e.Release(scratch)
	lists := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(scratch))), len(scratch))
	c.first, c.next = lists[:c.table.Rows], lists[c.table.Rows:]
	for i := range c.first {
		c.first[i] = -1
	}
	for r := c.grad.Rows - 1; r >= 0; r-- {
		row := index.At(r)
		c.next[r], c.first[row] = c.first[row], int32(r)
	}
	rows := c.grad.Rows
	if !a.Accumulate {
		rows += c.table.Rows
	}
	blocks := (c.table.Rows + scatterBlock - 1) / scatterBlock
	c.parts = min(max(rows*c.grad.Cols/host.Grain, 1), blocks, host.MaxParts)
	scatterKernel.Run(e.Pool(), c.parts, c)
	return nil
}

func (c *scatter) part(part int) {
	var sum, row []float32
	if cols := c.table.Cols; c.table.Narrow() || c.grad.Narrow() {
		buf := c.exec.Scratch(2 * cols)
		defer c.exec.Release(buf)
		sum, row = buf[:cols], buf[cols:]
	}
	for lo := part * scatterBlock; lo < c.table.Rows; lo += c.parts * scatterBlock {
		for r := lo; r < min(lo+scatterBlock, c.table.Rows); r++ {
			c.fill(r, sum, row)
		}
	}
}

// fill computes one row of the table. sum and row are used for narrow elements.
func (c *scatter) fill(to int, sum, row []float32) {
	cols, r := c.table.Cols, c.first[to]
	switch {
	case r < 0 && c.accumulate:
		return
	case r < 0:
		c.table.Zero(to)
		return
	case c.accumulate:
		sum = c.table.Piece(to, 0, cols, sum)
	case c.next[r] < 0 && c.alike:
		c.table.Take(to, &c.grad, int(r))
		return
	default:
		sum = c.table.Place(to, 0, cols, sum)
		copy(sum, c.grad.Piece(int(r), 0, cols, row))
		r = c.next[r]
	}
	for ; r >= 0; r = c.next[r] {
		vector.Add(sum, sum, c.grad.Piece(int(r), 0, cols, row))
	}
	c.table.Settle(to, 0, sum)
}
