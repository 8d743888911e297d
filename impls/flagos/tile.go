package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// tileFloats is how many elements of narrow operands are held in f32 at a time: half
// of a first-level cache.
const tileFloats = 6144

// tile lets a kernel for rows of f32 work on narrow ones: it goes through rows of some
// operands, a few at a time, which the kernel finds in scratch. Operands of f32 are
// handed on as they are.
type tile struct {
	exec   *opregistry.Exec
	room   []float32
	used   int // of room, by the rows at hand
	atOnce int
	lo, hi int // the rows at hand
	end    int
}

// kernelFor returns the kernel that serves rows of f32, or the one that goes through
// tiles when one of the operands is narrow.
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
	t.room = e.Scratch(t.atOnce * width)
	return t
}

// next moves on to the next rows and reports whether there are any; behind the last
// ones it releases the scratch.
func (t *tile) next() bool {
	t.lo, t.used = t.hi, 0
	t.hi = min(t.hi+t.atOnce, t.end)
	if t.lo == t.hi {
		t.exec.Release(t.room)
		return false
	}
	return true
}

// whole is the cut of a kernel that has the rows at hand to itself.
func (t *tile) whole() cut { return cut{items: t.hi - t.lo, parts: 1} }

// place returns the rows at hand of an operand that the kernel writes.
func (t *tile) place(m matrix) matrix {
	rows := t.hi - t.lo
	if !m.narrow() {
		return m.sub(t.lo, rows)
	}
	at := t.used
	t.used += rows * m.cols
	return matrix{data: t.room[at:t.used], rows: rows, cols: m.cols, pitch: m.cols}
}

// load returns the rows at hand of an operand that the kernel reads.
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

// store rounds the rows at hand, which the kernel has written to w, to their operand.
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
