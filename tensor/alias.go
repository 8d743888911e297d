package tensor

// Overlap reports whether a and b share a byte. A nil or empty tensor overlaps nothing.
//
// Overlap never misses a shared byte. The answer is exact when each view, in any order of its axes,
// is one run of bytes or equal runs at one pitch, and the two pitches are equal or one view is a
// single run: contiguous tensors, rows with padding, the parts of a fused projection. For other
// views whose address ranges meet, it may return true although no byte is shared.
func Overlap(a, b *Tensor) bool {
	if a == nil || b == nil || a.elems == 0 || b.elems == 0 {
		return false
	}
	aLo, aHi := a.ByteRange()
	bLo, bHi := b.ByteRange()
	if aLo >= bHi || bLo >= aHi {
		return false
	}
	if a.contig && b.contig {
		return true
	}
	aRuns, aOK := a.runs()
	bRuns, bOK := b.runs()
	switch {
	case !aOK || !bOK:
		return true
	case aRuns.pitch == 0 && bRuns.pitch == 0:
		return true
	case aRuns.pitch == 0:
		return bRuns.meet(bLo, aLo, aHi)
	case bRuns.pitch == 0:
		return aRuns.meet(aLo, bLo, bHi)
	case aRuns.pitch != bRuns.pitch:
		return true
	}
	pitch := aRuns.pitch
	ahead := (bLo - aLo) % pitch
	if bLo < aLo {
		ahead = (pitch - (aLo-bLo)%pitch) % pitch
	}
	return ahead < aRuns.length || pitch-ahead < bRuns.length
}

// ByteRange returns the addresses from the first byte of t, inclusive, to its last one, exclusive;
// two zeros for a tensor without elements. Tensors whose ranges do not meet do not overlap; for the
// others call Overlap.
func (t *Tensor) ByteRange() (lo, hi uintptr) {
	if t.elems == 0 {
		return 0, 0
	}
	size := t.dtype.Size()
	lo = uintptr(t.storage.base) + uintptr(t.offset*size)
	return lo, lo + uintptr(t.span()*size)
}

// runs describes a view as runs of equal length at one pitch, both in bytes; the pitch is 0 when
// there is one run. Runs longer than the pitch leave no gap.
type runs struct {
	length, pitch uintptr
}

// meet reports whether any run, the first of which begins at first, reaches into [lo, hi). The
// range must meet the one from the first run to the last.
func (r runs) meet(first, lo, hi uintptr) bool {
	return lo < first || (lo-first)%r.pitch < r.length || (hi-1-first)/r.pitch != (lo-first)/r.pitch
}

// maxOrderedAxes bounds the number of axes that runs can describe, so that it needs no heap.
const maxOrderedAxes = 8

// runs returns the description of a view with elements, or false when the view does not have that
// form.
func (t *Tensor) runs() (runs, bool) {
	size := uintptr(t.dtype.Size())
	if t.contig {
		return runs{length: uintptr(t.elems) * size}, true
	}
	// These are the axes that matter, ordered by stride: an axis with a length of 1 or a stride of
	// 0 adds no address, and a set of addresses has no order.
	var lengths, strides [maxOrderedAxes]int
	axes := 0
	for i, n := range t.shape {
		if n == 1 || t.strides[i] == 0 {
			continue
		}
		if axes == maxOrderedAxes {
			return runs{}, false
		}
		at := axes
		for ; at > 0 && strides[at-1] > t.strides[i]; at-- {
			lengths[at], strides[at] = lengths[at-1], strides[at-1]
		}
		lengths[at], strides[at] = n, t.strides[i]
		axes++
	}
	run, axis := 1, 0
	for axis < axes && strides[axis] == run {
		run *= lengths[axis]
		axis++
	}
	r := runs{length: uintptr(run) * size}
	if axis == axes {
		return r, true
	}
	pitch, next := strides[axis], strides[axis]
	for ; axis < axes; axis++ {
		if strides[axis] != next {
			return runs{}, false
		}
		next *= lengths[axis]
	}
	r.pitch = uintptr(pitch) * size
	return r, true
}

// SameView reports whether a and b are the same elements in the same order: equal address, dtype,
// shape and strides, where the stride of an axis of length 1 does not matter.
func SameView(a, b *Tensor) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	return a.Pointer() == b.Pointer() && a.dtype == b.dtype && a.shape.Equal(b.shape) &&
		(a.contig && b.contig || sameStrides(a, b))
}

func sameStrides(a, b *Tensor) bool {
	for i, n := range a.shape {
		if n > 1 && a.strides[i] != b.strides[i] {
			return false
		}
	}
	return true
}
