package tensor

import (
	"fmt"
	"unsafe"
)

// At returns the element at an index of each axis as a float64. It panics when
// the index is out of range. Integers beyond 2⁵³ are rounded.
func (t *Tensor) At(index ...int) float64 { return t.load(t.element(index)) }

// Set stores v, rounded to nearest, at an index of each axis. It panics when the
// index is out of range.
func (t *Tensor) Set(v float64, index ...int) { t.store(t.element(index), v) }

func (t *Tensor) element(index []int) unsafe.Pointer {
	if len(index) != len(t.shape) {
		panic(fmt.Sprintf("BUG: tensor: %d indexes for shape %v", len(index), t.shape))
	}
	at := t.offset
	for i, k := range index {
		if k < 0 || k >= t.shape[i] {
			panic(fmt.Sprintf("BUG: tensor: index %v for shape %v", index, t.shape))
		}
		at += k * t.strides[i]
	}
	return unsafe.Add(t.storage.base, at*t.dtype.Size())
}

func (t *Tensor) load(p unsafe.Pointer) float64 {
	switch t.dtype {
	case F64:
		return *(*float64)(p)
	case F32:
		return float64(*(*float32)(p))
	case BF16:
		return float64((*(*BFloat16)(p)).Float32())
	case F16:
		return float64((*(*Float16)(p)).Float32())
	case F8E4M3:
		return float64((*(*Float8E4M3)(p)).Float32())
	case F8E5M2:
		return float64((*(*Float8E5M2)(p)).Float32())
	case I64:
		return float64(*(*int64)(p))
	case I32:
		return float64(*(*int32)(p))
	case U8:
		return float64(*(*uint8)(p))
	case Bool:
		if *(*uint8)(p) != 0 {
			return 1
		}
		return 0
	default:
		panic("BUG: tensor: load of " + t.dtype.String())
	}
}

// store rounds once, from v: the narrow float formats are encoded from the
// float64 so that no second rounding creeps in through float32.
func (t *Tensor) store(p unsafe.Pointer, v float64) {
	switch t.dtype {
	case F64:
		*(*float64)(p) = v
	case F32:
		*(*float32)(p) = float32(v)
	case BF16:
		*(*BFloat16)(p) = BFloat16(bfloat16.encode(v))
	case F16:
		*(*Float16)(p) = Float16(binary16.encode(v))
	case F8E4M3:
		*(*Float8E4M3)(p) = Float8E4M3(e4m3.encode(v))
	case F8E5M2:
		*(*Float8E5M2)(p) = Float8E5M2(e5m2.encode(v))
	case I64:
		*(*int64)(p) = int64(v)
	case I32:
		*(*int32)(p) = int32(v)
	case U8:
		*(*uint8)(p) = uint8(v)
	case Bool:
		*(*bool)(p) = v != 0
	default:
		panic("BUG: tensor: store to " + t.dtype.String())
	}
}

// Float64s returns a copy of all elements in row-major order, whatever the
// strides and the dtype.
func (t *Tensor) Float64s() []float64 {
	out := make([]float64, 0, t.NumElements())
	t.each(func(p unsafe.Pointer) { out = append(out, t.load(p)) })
	return out
}

// SetFloat64s stores as many values as t has elements, in row-major order, each
// rounded once to t's dtype.
func (t *Tensor) SetFloat64s(v []float64) error {
	if len(v) != t.NumElements() {
		return &Error{Func: "SetFloat64s", Got: fmt.Sprintf("%d values for %v", len(v), t), Want: fmt.Sprintf("%d", t.NumElements())}
	}
	i := 0
	t.each(func(p unsafe.Pointer) {
		t.store(p, v[i])
		i++
	})
	return nil
}

// CopyFrom copies the elements of src, converting when the dtypes differ. The
// shapes must be equal and the views disjoint or the same.
func (t *Tensor) CopyFrom(src *Tensor) error {
	if !t.shape.Equal(src.shape) {
		return &Error{Func: "CopyFrom", Got: fmt.Sprintf("source %v for %v", src, t), Want: "equal shapes"}
	}
	if SameView(t, src) {
		return nil
	}
	if Overlap(t, src) {
		return &Error{Func: "CopyFrom", Got: "overlapping views", Want: "disjoint views or the same"}
	}
	if t.dtype == src.dtype && t.contig && src.contig {
		if t.storage.base != nil {
			n := t.NumElements() * t.dtype.Size()
			copy(unsafe.Slice((*byte)(t.Pointer()), n), unsafe.Slice((*byte)(src.Pointer()), n))
		}
		return nil
	}
	return t.SetFloat64s(src.Float64s())
}

// each calls f with the address of every element in row-major order.
func (t *Tensor) each(f func(unsafe.Pointer)) {
	if t.NumElements() == 0 {
		return
	}
	size := t.dtype.Size()
	index := make([]int, len(t.shape))
	at := t.offset
	for {
		f(unsafe.Add(t.storage.base, at*size))
		axis := len(index) - 1
		for ; axis >= 0; axis-- {
			at += t.strides[axis]
			if index[axis]++; index[axis] < t.shape[axis] {
				break
			}
			at -= t.strides[axis] * t.shape[axis]
			index[axis] = 0
		}
		if axis < 0 {
			return
		}
	}
}
