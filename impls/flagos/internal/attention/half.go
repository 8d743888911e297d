package attention

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
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
func (w *f32Heads) inputs(c common, batch int) common {
	c.q = w.load(c.q, batch, c.SeqQ, c.Heads, c.DimQK)
	c.k = w.load(c.k, batch, c.SeqKV, c.Groups, c.DimQK)
	c.v = w.load(c.v, batch, c.SeqKV, c.Groups, c.DimV)
	return c
}

// place returns memory for the vectors of an operand.
func (w *f32Heads) place(h host.Heads, batch, seq, n, d int) host.Heads {
	if !h.Narrow() {
		return h
	}
	buf := w.exec.Scratch(batch * seq * n * d)
	w.buffers[w.n] = buf
	w.n++
	f32 := host.Heads{Data: buf, Step: n * d, Head: d}
	if batch > 1 { // packed tokens have several sequences in one entry
		f32.Sequence = seq * n * d
	}
	return f32
}

// load returns the vectors of an operand.
func (w *f32Heads) load(h host.Heads, batch, seq, n, d int) host.Heads {
	f32 := w.place(h, batch, seq, n, d)
	if h.Narrow() {
		headsCopyOf(h, f32, batch, seq, n, d).run(w.exec, headsLoadKernel)
	}
	return f32
}

// store rounds what was written to the memory of an operand to the operand.
func (w *f32Heads) store(h, f32 host.Heads, batch, seq, n, d int) {
	if h.Narrow() {
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
	host.Cut
	half, f32 host.Heads
	seq, n, d int
}

var (
	headsLoadKernel  = parallel.NewKernel((*headsCopy).load)
	headsStoreKernel = parallel.NewKernel((*headsCopy).store)
)

func headsCopyOf(half, f32 host.Heads, batch, seq, n, d int) headsCopy {
	return headsCopy{Cut: host.CutItems(batch*seq, n*d), half: half, f32: f32, seq: seq, n: n, d: d}
}

func (c headsCopy) run(e *opregistry.Exec, kernel *parallel.Kernel[headsCopy]) {
	kernel.Run(e.Pool(), c.Parts, c)
}

func (c *headsCopy) load(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		c.half.Widen(c.f32.From(i/c.seq, i%c.seq), i/c.seq, i%c.seq, c.n, c.d)
	}
}

func (c *headsCopy) store(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		c.half.Round(c.f32.From(i/c.seq, i%c.seq), i/c.seq, i%c.seq, c.n, c.d)
	}
}
