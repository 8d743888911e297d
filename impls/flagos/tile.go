package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// tileFloats is how many elements of narrow operands are held in f32 at a time; they take half of a
// first-level cache.
const tileFloats = 6144

// tile lets a kernel for rows of f32 work on narrow operands. It goes through the rows a few at a
// time and widens those of narrow operands to scratch for the kernel. Operands of f32 are passed on
// unchanged.
type tile struct {
	exec   *opregistry.Exec
	buf    []float32
	used   int // of buf, for the current rows
	atOnce int
	lo, hi int // the current rows
	end    int
}

// kernelFor returns the kernel for rows of f32, or the one that uses tiles when one of the operands
// is narrow.
func kernelFor[A any](wide, tiles *parallel.Kernel[A], operands ...matrix) *parallel.Kernel[A] {
	for i := range operands {
		if operands[i].narrow() {
			return tiles
		}
	}
	return wide
}

// newTile returns a tile before the first of the rows [lo, hi) of the operands.
func newTile(e *opregistry.Exec, lo, hi int, operands ...matrix) tile {
	width := 0
	for i := range operands {
		if operands[i].narrow() {
			width += operands[i].cols
		}
	}
	t := tile{exec: e, hi: lo, end: hi}
	t.atOnce = min(max(tileFloats/max(width, 1), 1), hi-lo)
	t.buf = e.Scratch(t.atOnce * width)
	return t
}

// next advances to the next rows and reports whether there are any; after the last ones it releases
// the scratch.
func (t *tile) next() bool {
	t.lo, t.used = t.hi, 0
	t.hi = min(t.hi+t.atOnce, t.end)
	if t.lo == t.hi {
		t.exec.Release(t.buf)
		return false
	}
	return true
}

// whole is the cut of a kernel that processes the current rows alone.
func (t *tile) whole() cut { return cut{items: t.hi - t.lo, parts: 1} }

// place returns the memory for the current rows of an operand that the kernel writes.
func (t *tile) place(m matrix) matrix {
	rows := t.hi - t.lo
	if !m.narrow() {
		return m.sub(t.lo, rows)
	}
	at := t.used
	t.used += rows * m.cols
	return matrix{data: t.buf[at:t.used], rows: rows, cols: m.cols, pitch: m.cols}
}

// load returns the current rows of an operand that the kernel reads.
func (t *tile) load(m matrix) matrix {
	w := t.place(m)
	if !m.narrow() {
		return w
	}
	if m.dense() {
		m.half.load(w.data, t.lo*m.cols)
		return w
	}
	for r := range w.rows {
		m.half.load(w.row(r), (t.lo+r)*m.pitch)
	}
	return w
}

// store rounds the current rows, which the kernel has written to w, to their operand.
func (t *tile) store(m, w matrix) {
	if !m.narrow() {
		return
	}
	if m.dense() {
		m.half.store(t.lo*m.cols, w.data)
		return
	}
	for r := range w.rows {
		m.half.store((t.lo+r)*m.pitch, w.row(r))
	}
}
