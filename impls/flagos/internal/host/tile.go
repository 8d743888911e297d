package host

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
)

// tileFloats is how many elements of narrow operands are held in f32 at a time; they take half of a
// first-level cache.
const tileFloats = 6144

// Tile lets a kernel for rows of f32 work on narrow operands. It goes through the rows a few at a
// time and widens those of narrow operands to scratch for the kernel. Operands of f32 are passed on
// unchanged.
type Tile struct {
	exec   *opregistry.Exec
	buf    []float32
	used   int // of buf, for the current rows
	atOnce int
	Lo, Hi int // the current rows
	end    int
}

// KernelFor returns the kernel for rows of f32, or the one that uses tiles when one of the operands
// is narrow.
func KernelFor[A any](wide, tiles *parallel.Kernel[A], operands ...Matrix) *parallel.Kernel[A] {
	for i := range operands {
		if operands[i].Narrow() {
			return tiles
		}
	}
	return wide
}

// NewTile returns a tile before the first of the rows [lo, hi) of the operands.
func NewTile(e *opregistry.Exec, lo, hi int, operands ...Matrix) Tile {
	width := 0
	for i := range operands {
		if operands[i].Narrow() {
			width += operands[i].Cols
		}
	}
	t := Tile{exec: e, Hi: lo, end: hi}
	t.atOnce = min(max(tileFloats/max(width, 1), 1), hi-lo)
	t.buf = e.Scratch(t.atOnce * width)
	return t
}

// Next advances to the next rows and reports whether there are any; after the last ones it releases
// the scratch.
func (t *Tile) Next() bool {
	t.Lo, t.used = t.Hi, 0
	t.Hi = min(t.Hi+t.atOnce, t.end)
	if t.Lo == t.Hi {
		t.exec.Release(t.buf)
		return false
	}
	return true
}

// Whole is the cut of a kernel that processes the current rows alone.
func (t *Tile) Whole() Cut { return Cut{items: t.Hi - t.Lo, Parts: 1} }

// Place returns the memory for the current rows of an operand that the kernel writes.
func (t *Tile) Place(m Matrix) Matrix {
	rows := t.Hi - t.Lo
	if !m.Narrow() {
		return m.Sub(t.Lo, rows)
	}
	at := t.used
	t.used += rows * m.Cols
	return Matrix{Data: t.buf[at:t.used], Rows: rows, Cols: m.Cols, Pitch: m.Cols}
}

// Load returns the current rows of an operand that the kernel reads.
func (t *Tile) Load(m Matrix) Matrix {
	w := t.Place(m)
	if !m.Narrow() {
		return w
	}
	if m.Dense() {
		m.Half.Load(w.Data, t.Lo*m.Cols)
		return w
	}
	for r := range w.Rows {
		m.Half.Load(w.Row(r), m.At(t.Lo+r))
	}
	return w
}

// Store rounds the current rows, which the kernel has written to w, to their operand.
func (t *Tile) Store(m, w Matrix) {
	if !m.Narrow() {
		return
	}
	if m.Dense() {
		m.Half.Store(t.Lo*m.Cols, w.Data)
		return
	}
	for r := range w.Rows {
		m.Half.Store(m.At(t.Lo+r), w.Row(r))
	}
}
