package flagos

import (
	"unsafe"

	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// scatterHalf is scatter for a narrow gradient and table: sums are kept in f32, in a
// table that has a row for each one that an index names.
type scatterHalf struct {
	grad, table matrix // narrow
	wide, sums  matrix // the gradient in f32, the sums
	index       indexes
	slotOf      []int32 // the row of sums of each row of the table, and 1; or 0
	slots       []int32 // the row of sums of each row of the gradient
	byToken     cut
	byRow       cut
	accumulate  bool
}

var (
	scatterWidenKernel = parallel.NewKernel((*scatterHalf).widenPart)
	scatterLoadKernel  = parallel.NewKernel((*scatterHalf).loadPart)
	scatterFillKernel  = parallel.NewKernel((*scatterHalf).fillPart)
)

// runHalf serves a narrow gradient and table.
func (c scatter) runHalf(e *opregistry.Exec, accumulate bool) {
	tokens, cols := c.grad.rows, c.grad.cols
	numbers := e.Scratch(c.table.rows + tokens)
	defer e.Release(numbers)
	all := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers))
	h := scatterHalf{grad: c.grad, table: c.table, index: c.index, slotOf: all[:c.table.rows], slots: all[c.table.rows:], accumulate: accumulate}
	rows := h.number()
	room := e.Scratch((tokens + rows) * cols)
	defer e.Release(room)
	h.wide = matrix{data: room, rows: tokens, cols: cols, pitch: cols}
	h.sums = matrix{data: room[tokens*cols:], rows: rows, cols: cols, pitch: cols}

	h.byToken, h.byRow = cutItems(tokens, cols), cutItems(c.table.rows, cols)
	scatterWidenKernel.Run(e.Pool(), h.byToken.parts, h)
	if accumulate {
		scatterLoadKernel.Run(e.Pool(), h.byRow.parts, h)
	}
	scatter{grad: h.wide, table: h.sums, index: indexes{narrow: h.slots}}.run(e, accumulate)
	scatterFillKernel.Run(e.Pool(), h.byRow.parts, h)
}

// number gives the rows that are named a row of sums each and returns how many there
// are.
func (c *scatterHalf) number() int {
	clear(c.slotOf)
	rows := int32(0)
	for i := range c.slots {
		slot := &c.slotOf[c.index.at(i)]
		if *slot == 0 {
			rows++
			*slot = rows
		}
		c.slots[i] = *slot - 1
	}
	return int(rows)
}

func (c *scatterHalf) widenPart(part int) {
	lo, hi := c.byToken.bounds(part)
	for r := lo; r < hi; r++ {
		c.grad.load(c.wide.row(r), r*c.grad.pitch)
	}
}

// loadPart begins the sums with what the table holds.
func (c *scatterHalf) loadPart(part int) {
	lo, hi := c.byRow.bounds(part)
	for r := lo; r < hi; r++ {
		if slot := int(c.slotOf[r]); slot > 0 {
			c.table.load(c.sums.row(slot-1), r*c.table.pitch)
		}
	}
}

// fillPart stores the sums and clears the rows without, unless they accumulate.
func (c *scatterHalf) fillPart(part int) {
	lo, hi := c.byRow.bounds(part)
	for r := lo; r < hi; r++ {
		if slot := int(c.slotOf[r]); slot > 0 {
			c.table.store(r*c.table.pitch, c.sums.row(slot-1))
		} else if !c.accumulate {
			c.table.zero(r)
		}
	}
}
