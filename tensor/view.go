package tensor

import (
	"fmt"
	"slices"
)

// view returns a tensor over t's Storage. The offset of a view without elements has no meaning; it
// is set to t's offset, so that it never lies outside the Storage.
func (t *Tensor) view(shape Shape, strides []int, offset int) *Tensor {
	elems := shape.NumElements()
	if elems == 0 {
		offset = t.offset
	}
	contig := elems == 0 || isRowMajor(shape, strides)
	return &Tensor{
		storage: t.storage, dtype: t.dtype, shape: shape, strides: strides, offset: offset,
		elems: elems, class: classOf(t.dtype, shape, contig), contig: contig,
	}
}

// isRowMajor reports whether the strides are those of a contiguous tensor with
// elements; the stride of an axis of length 1 does not matter.
func isRowMajor(shape Shape, strides []int) bool {
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != step {
			return false
		}
		step *= shape[i]
	}
	return true
}

func (t *Tensor) checkAxis(fn string, axis int) error {
	if axis < 0 || axis >= len(t.shape) {
		return &Error{Func: fn, Got: fmt.Sprintf("axis %d of shape %v", axis, t.shape), Want: fmt.Sprintf("0 <= axis < %d", len(t.shape))}
	}
	return nil
}

// Slice returns the view of the elements lo ≤ i < hi along an axis.
func (t *Tensor) Slice(axis, lo, hi int) (*Tensor, error) {
	if err := t.checkAxis("Slice", axis); err != nil {
		return nil, err
	}
	if lo < 0 || hi < lo || hi > t.shape[axis] {
		return nil, &Error{Func: "Slice", Got: fmt.Sprintf("range [%d, %d) of axis %d with length %d", lo, hi, axis, t.shape[axis]), Want: "0 <= lo <= hi <= length"}
	}
	shape := slices.Clone(t.shape)
	shape[axis] = hi - lo
	return t.view(shape, t.strides, t.offset+lo*t.strides[axis]), nil
}

// Select returns the view at index i of an axis, without that axis.
func (t *Tensor) Select(axis, i int) (*Tensor, error) {
	if err := t.checkAxis("Select", axis); err != nil {
		return nil, err
	}
	if i < 0 || i >= t.shape[axis] {
		return nil, &Error{Func: "Select", Got: fmt.Sprintf("index %d of axis %d with length %d", i, axis, t.shape[axis]), Want: "0 <= index < length"}
	}
	shape := slices.Delete(slices.Clone(t.shape), axis, axis+1)
	strides := slices.Delete(slices.Clone(t.strides), axis, axis+1)
	return t.view(shape, strides, t.offset+i*t.strides[axis]), nil
}

// Transpose returns the view with two axes exchanged.
func (t *Tensor) Transpose(a, b int) (*Tensor, error) {
	if err := t.checkAxis("Transpose", a); err != nil {
		return nil, err
	}
	if err := t.checkAxis("Transpose", b); err != nil {
		return nil, err
	}
	shape, strides := slices.Clone(t.shape), slices.Clone(t.strides)
	shape[a], shape[b] = shape[b], shape[a]
	strides[a], strides[b] = strides[b], strides[a]
	return t.view(shape, strides, t.offset), nil
}

// Reshape returns a view of a contiguous tensor with another shape and the same number of elements.
// One axis may be -1: its length is what the other axes leave.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	if !t.contig {
		return nil, &Error{Func: "Reshape", Got: t.String(), Want: "a contiguous tensor"}
	}
	out := Shape(slices.Clone(shape))
	free := slices.Index(out, -1)
	if free >= 0 {
		out[free] = 1
	}
	if slices.ContainsFunc(out, func(n int) bool { return n < 0 }) {
		return nil, &Error{Func: "Reshape", Got: fmt.Sprintf("shape %v", Shape(shape)), Want: "axes >= 0, at most one of them -1"}
	}
	if _, err := out.byteSize("Reshape", t.dtype); err != nil {
		return nil, err
	}
	rest := out.NumElements()
	if free >= 0 {
		if rest == 0 || t.elems%rest != 0 {
			return nil, &Error{Func: "Reshape", Got: fmt.Sprintf("shape %v for %d elements", Shape(shape), t.elems), Want: "axes that divide them"}
		}
		out[free] = t.elems / rest
		rest = t.elems
	}
	if rest != t.elems {
		return nil, &Error{Func: "Reshape", Got: fmt.Sprintf("shape %v for %d elements", out, t.elems), Want: "as many elements"}
	}
	return t.view(out, out.rowMajor(), t.offset), nil
}

// AsStrided returns the view of t's Storage with this shape, strides and offset in elements. Every
// element must lie inside the Storage, and strides must not be negative.
func (t *Tensor) AsStrided(shape, strides []int, offset int) (*Tensor, error) {
	fail := func(want string) (*Tensor, error) {
		return nil, &Error{Func: "AsStrided", Got: fmt.Sprintf("shape %v, strides %v, offset %d in %d bytes of %v", Shape(shape), strides, offset, t.storage.size, t.dtype), Want: want}
	}
	if len(shape) != len(strides) {
		return fail("as many strides as axes")
	}
	if _, err := Shape(shape).byteSize("AsStrided", t.dtype); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(strides, func(stride int) bool { return stride < 0 }) {
		return fail("strides >= 0")
	}
	available := t.storage.size / t.dtype.Size()
	if offset < 0 || offset > available {
		return fail("an offset inside the storage")
	}
	if Shape(shape).NumElements() > 0 && !fits(shape, strides, available-offset) {
		return fail("every element inside the storage")
	}
	return t.view(slices.Clone(shape), slices.Clone(strides), offset), nil
}

// fits reports whether a view with elements ends within the given number of elements, counted from
// its first one.
func fits(shape, strides []int, available int) bool {
	if available < 1 {
		return false
	}
	left := available - 1
	for i, n := range shape {
		if n == 1 {
			continue
		}
		if strides[i] > left/(n-1) {
			return false
		}
		left -= (n - 1) * strides[i]
	}
	return true
}
