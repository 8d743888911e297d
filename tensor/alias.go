package tensor

import "slices"

// Overlap reports whether a and b share a byte. A nil or empty tensor overlaps
// nothing. The answer is exact for contiguous views and for views that are runs
// of equal length at one pitch (such as the query part of a fused projection);
// for other strided views whose address ranges meet it errs on the side of true.
func Overlap(a, b *Tensor) bool {
	if a == nil || b == nil {
		return false
	}
	aLo, aHi := a.byteRange()
	bLo, bHi := b.byteRange()
	if aLo >= bHi || bLo >= aHi {
		return false
	}
	if a.contig && b.contig {
		return true
	}
	aRun, aPitch := a.runs()
	bRun, bPitch := b.runs()
	if aPitch == 0 || aPitch != bPitch || aRun > aPitch || bRun > bPitch {
		return true
	}
	ahead := int64(bLo-aLo) % aPitch
	if bLo < aLo {
		ahead = (aPitch - int64(aLo-bLo)%aPitch) % aPitch
	}
	return ahead < aRun || aPitch-ahead < bRun
}

func (t *Tensor) byteRange() (lo, hi uintptr) {
	if t.storage.base == nil {
		return 0, 0
	}
	lo = uintptr(t.Pointer())
	return lo, lo + uintptr(t.span()*t.dtype.Size())
}

// runs describes the view as runs of contiguous bytes at one pitch; the pitch is
// 0 when the view is not of that form.
func (t *Tensor) runs() (run, pitch int64) {
	size := int64(t.dtype.Size())
	elems := 1
	axis := len(t.shape) - 1
	for ; axis >= 0 && (t.shape[axis] == 1 || t.strides[axis] == elems); axis-- {
		elems *= t.shape[axis]
	}
	next := 0
	for ; axis >= 0; axis-- {
		switch {
		case t.shape[axis] == 1:
			continue
		case pitch == 0:
			pitch = int64(t.strides[axis]) * size
		case t.strides[axis] != next:
			return 0, 0
		}
		next = t.strides[axis] * t.shape[axis]
	}
	return int64(elems) * size, pitch
}

// SameView reports whether a and b are the same elements in the same order:
// equal address, dtype, shape and strides.
func SameView(a, b *Tensor) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	return a.Pointer() == b.Pointer() && a.dtype == b.dtype && a.shape.Equal(b.shape) &&
		(a.contig && b.contig || slices.Equal(a.strides, b.strides))
}
