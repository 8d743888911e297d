package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// maxHeads is how many operands of one call may be narrow.
const maxHeads = 8

// f32Heads keeps f32 copies of narrow operands. Operands of f32 are used directly.
type f32Heads struct {
	exec    *opregistry.Exec
	buffers [maxHeads][]float32
	n       int
}

// inputs returns c with Q, K and V in f32.
func (w *f32Heads) inputs(c attention) attention {
	c.q = w.load(c.q, c.Batch, c.SeqQ, c.Heads, c.DimQK)
	c.k = w.load(c.k, c.Batch, c.SeqKV, c.Groups, c.DimQK)
	c.v = w.load(c.v, c.Batch, c.SeqKV, c.Groups, c.DimV)
	return c
}

// place returns memory for the vectors of an operand.
func (w *f32Heads) place(h heads, batch, seq, n, d int) heads {
	if !h.narrow() {
		return h
	}
	buf := w.exec.Scratch(batch * seq * n * d)
	w.buffers[w.n] = buf
	w.n++
	return heads{data: buf, sequence: seq * n * d, step: n * d, head: d}
}

// load returns the vectors of an operand.
func (w *f32Heads) load(h heads, batch, seq, n, d int) heads {
	f32 := w.place(h, batch, seq, n, d)
	if h.narrow() {
		headsCopyOf(h, f32, batch, seq, n, d).run(w.exec, headsLoadKernel)
	}
	return f32
}

// store rounds what was written to the memory of an operand to the operand.
func (w *f32Heads) store(h, f32 heads, batch, seq, n, d int) {
	if h.narrow() {
		headsCopyOf(h, f32, batch, seq, n, d).run(w.exec, headsStoreKernel)
	}
}

func (w *f32Heads) release() {
	for _, buf := range w.buffers[:w.n] {
		w.exec.Release(buf)
	}
}

// headsCopy converts vectors, those of a step of a sequence together.
type headsCopy struct {
	cut
	half, f32 heads
	seq, n, d int
}

var (
	headsLoadKernel  = parallel.NewKernel((*headsCopy).load)
	headsStoreKernel = parallel.NewKernel((*headsCopy).store)
)

func headsCopyOf(half, f32 heads, batch, seq, n, d int) headsCopy {
	return headsCopy{cut: cutItems(batch*seq, n*d), half: half, f32: f32, seq: seq, n: n, d: d}
}

func (c headsCopy) run(e *opregistry.Exec, kernel *parallel.Kernel[headsCopy]) {
	kernel.Run(e.Pool(), c.parts, c)
}

func (c *headsCopy) load(part int) {
	lo, hi := c.bounds(part)
	for i := lo; i < hi; i++ {
		c.half.widen(c.f32.from(i/c.seq, i%c.seq), i/c.seq, i%c.seq, c.n, c.d)
	}
}

func (c *headsCopy) store(part int) {
	lo, hi := c.bounds(part)
	for i := lo; i < hi; i++ {
		c.half.round(c.f32.from(i/c.seq, i%c.seq), i/c.seq, i%c.seq, c.n, c.d)
	}
}
