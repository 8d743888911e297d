package host

import (
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// Heads is a tensor viewed as vectors by sequence, position in the sequence and head. Its elements
// are f32, in Data, or narrow, in Half.
type Heads struct {
	Data []float32
	Half
	Sequence, Step, Head int // distances
}

// From returns the elements from the first head of a step on.
func (h *Heads) From(sequence, step int) []float32 { return h.Data[sequence*h.Sequence+step*h.Step:] }

// Shift returns the vectors that begin n elements after these.
func (h Heads) Shift(n int) Heads {
	if h.Narrow() {
		h.Half = h.Half.From(n)
	} else {
		h.Data = h.Data[n:]
	}
	return h
}

// at returns the index of the first element of a vector.
func (h *Heads) at(sequence, step, head int) int {
	return sequence*h.Sequence + step*h.Step + head*h.Head
}

// Widen copies the n vectors of d elements of a step to dst.
func (h *Heads) Widen(dst []float32, sequence, step, n, d int) {
	if h.Head == d {
		n, d = 1, n*d
	}
	for i := range n {
		h.Load(dst[i*d:][:d], h.at(sequence, step, i))
	}
}

// Round copies src to the n vectors of d elements of a step.
func (h *Heads) Round(src []float32, sequence, step, n, d int) {
	if h.Head == d {
		n, d = 1, n*d
	}
	for i := range n {
		h.Store(h.at(sequence, step, i), src[i*d:][:d])
	}
}

// Vector copies a vector of the length of dst to dst.
func (h *Heads) Vector(dst []float32, sequence, step, head int) {
	if at := h.at(sequence, step, head); h.Narrow() {
		h.Load(dst, at)
	} else if len(dst) > 0 {
		copy(dst, h.Data[at:])
	}
}

// Piece returns a vector of the length of buf: its memory, which Settle leaves as it is, or a
// widened copy in buf, which Settle rounds and stores.
func (h *Heads) Piece(sequence, step, head int, buf []float32) []float32 {
	at := h.at(sequence, step, head)
	if h.Narrow() {
		h.Load(buf, at)
		return buf
	}
	if len(buf) == 0 {
		return nil
	}
	return h.Data[at:][:len(buf)]
}

// Settle stores a vector that Piece returned and that has changed.
func (h *Heads) Settle(sequence, step, head int, x []float32) {
	if h.Narrow() {
		h.Store(h.at(sequence, step, head), x)
	}
}

// Put stores a vector.
func (h *Heads) Put(sequence, step, head int, x []float32) {
	if at := h.at(sequence, step, head); h.Narrow() {
		h.Store(at, x)
	} else if len(x) > 0 {
		copy(h.Data[at:][:len(x)], x)
	}
}

// Take copies a vector of d elements of the same dtype.
func (h *Heads) Take(sequence, step, head int, from *Heads, fromSequence, fromStep, fromHead, d int) {
	to, at := h.at(sequence, step, head), from.at(fromSequence, fromStep, fromHead)
	if h.Narrow() {
		copy(h.bits[to:][:d], from.bits[at:][:d])
	} else {
		copy(h.Data[to:][:d], from.Data[at:][:d])
	}
}

// Heads requires a dense last axis.
func (v *Views) Heads(name string, t *tensor.Tensor, format attention.QKVFormat) Heads {
	if !v.Stored(name, t) {
		return Heads{}
	}
	strides := t.Strides()
	last := len(strides) - 1
	if t.Shape()[last] > 1 && strides[last] != 1 {
		v.Decline("strides %v of %s %v, this impl serves a dense last axis", strides, name, t.Shape())
		return Heads{}
	}
	h := Heads{Head: strides[last-1]}
	h.Data, h.Half = ElementsOf(t)
	switch format {
	case attention.SBHD:
		h.Step, h.Sequence = strides[0], strides[1]
	case attention.BSHD:
		h.Sequence, h.Step = strides[0], strides[1]
	default:
		h.Step = strides[0]
	}
	return h
}
