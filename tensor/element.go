package tensor

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"
)

// At returns the element at an index of each axis as a float64. It panics when the index is out of
// range and when t lies in memory that the processor cannot read. Integers beyond 2⁵³ are rounded.
func (t *Tensor) At(index ...int) float64 { return t.load(t.element(index)) }

// Set stores v at an index of each axis; it panics where At does. For a float dtype v is rounded
// once to nearest, ties to even. For an integer dtype the fraction is dropped, a v out of range
// becomes the nearest value in range, and NaN becomes 0. For Bool the element becomes whether v is
// not 0.
func (t *Tensor) Set(v float64, index ...int) { t.store(t.element(index), v) }

func (t *Tensor) element(index []int) unsafe.Pointer {
	t.checkHost()
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
	case I16:
		return float64(*(*int16)(p))
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

// store rounds v once: the narrow float formats are encoded from the float64, because going through
// float32 would round twice.
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
		*(*int64)(p) = truncate(v, math.MinInt64, math.MaxInt64)
	case I32:
		*(*int32)(p) = int32(truncate(v, math.MinInt32, math.MaxInt32))
	case I16:
		*(*int16)(p) = int16(truncate(v, math.MinInt16, math.MaxInt16))
	case U8:
		*(*uint8)(p) = uint8(truncate(v, 0, math.MaxUint8))
	case Bool:
		*(*bool)(p) = v != 0
	default:
		panic("BUG: tensor: store to " + t.dtype.String())
	}
}

// truncate drops the fraction of v and limits it to [lo, hi]; NaN becomes 0. Go leaves the
// conversion of values out of range to the processor.
func truncate(v float64, lo, hi int64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v <= float64(lo):
		return lo
	case v >= float64(hi): // MaxInt64 as a float64 is rounded up to 2⁶³
		return hi
	default:
		return int64(v)
	}
}

// Float64s returns a copy of all elements in row-major order, whatever the strides and the dtype.
// It panics when t lies in memory that cannot be copied to the host, or when the copy fails; ToHost
// returns an error instead.
func (t *Tensor) Float64s() []float64 {
	if !t.Readable() {
		t.checkHost()
	}
	t, err := t.ToHost()
	if err != nil {
		panic(err)
	}
	out := make([]float64, t.elems)
	if t.elems == 0 {
		return out
	}
	run, step, shape := 1, 1, t.shape
	if last := len(shape) - 1; last >= 0 {
		run, step, shape = shape[last], t.strides[last], shape[:last]
	}
	base, size, done := t.Pointer(), t.dtype.Size(), 0
	walk(shape, t.strides, t.strides, func(at, _ int) {
		t.loadRun(unsafe.Add(base, at*size), step*size, out[done:done+run])
		done += run
	})
	return out
}

// loadRun loads elements at p and after it, which are stride bytes apart.
func (t *Tensor) loadRun(p unsafe.Pointer, stride int, to []float64) {
	if t.dtype == F32 { // the usual one, without a switch for each element
		for i := range to {
			to[i] = float64(*(*float32)(unsafe.Add(p, i*stride)))
		}
		return
	}
	for i := range to {
		to[i] = t.load(unsafe.Add(p, i*stride))
	}
}

// SetFloat64s stores as many values as t has elements, in row-major order, each
// converted as Set does.
func (t *Tensor) SetFloat64s(v []float64) error {
	if len(v) != t.elems {
		return &Error{Func: "SetFloat64s", Got: fmt.Sprintf("%d values for %v", len(v), t), Want: strconv.Itoa(t.elems)}
	}
	if !t.OnHost() {
		return t.update("SetFloat64s", func(host *Tensor) error { return host.SetFloat64s(v) })
	}
	if t.elems == 0 {
		return nil
	}
	run, step, shape := 1, 1, t.shape
	if last := len(shape) - 1; last >= 0 {
		run, step, shape = shape[last], t.strides[last], shape[:last]
	}
	base, size, done := t.Pointer(), t.dtype.Size(), 0
	walk(shape, t.strides, t.strides, func(at, _ int) {
		t.storeRun(unsafe.Add(base, at*size), step*size, v[done:done+run])
		done += run
	})
	return nil
}

// storeRun stores elements at p and after it, which are stride bytes apart.
func (t *Tensor) storeRun(p unsafe.Pointer, stride int, from []float64) {
	if t.dtype == F32 { // the usual one, without a switch for each element
		for i, v := range from {
			*(*float32)(unsafe.Add(p, i*stride)) = float32(v)
		}
		return
	}
	for i, v := range from {
		t.store(unsafe.Add(p, i*stride), v)
	}
}

// CopyFrom copies the elements of src. Equal dtypes are copied bit for bit; others are converted
// through float64, as Set does. The shapes must be equal, and the views must be disjoint or the
// same. Tensors may lie on devices whose backends are a device.Copier: contiguous ones of one dtype
// are copied at once, others through host memory. Between two tensors on one device the copy is
// queued; all others have finished when CopyFrom returns.
func (t *Tensor) CopyFrom(src *Tensor) error {
	if !t.shape.Equal(src.shape) {
		return &Error{Func: "CopyFrom", Got: fmt.Sprintf("source %v for %v", src, t), Want: "equal shapes"}
	}
	if t.elems == 0 || SameView(t, src) {
		return nil
	}
	if Overlap(t, src) {
		return &Error{Func: "CopyFrom", Got: "overlapping views", Want: "disjoint views or the same"}
	}
	if !t.OnHost() || !src.OnHost() {
		return t.copyAcross(src)
	}
	if t.dtype != src.dtype {
		return t.SetFloat64s(src.Float64s())
	}
	if t.contig && src.contig {
		copy(unsafe.Slice((*byte)(t.Pointer()), t.elems*t.dtype.Size()), unsafe.Slice((*byte)(src.Pointer()), t.elems*t.dtype.Size()))
		return nil
	}
	t.copyElements(src)
	return nil
}

// copyElements copies between two views of one dtype, in runs as long as the last
// axis when that is dense in both.
func (t *Tensor) copyElements(src *Tensor) {
	shape, run := t.shape, t.dtype.Size()
	if last := len(shape) - 1; last >= 0 && t.strides[last] == 1 && src.strides[last] == 1 {
		run *= shape[last]
		shape = shape[:last]
	}
	size := t.dtype.Size()
	walk(shape, t.strides, src.strides, func(to, from int) {
		copy(unsafe.Slice((*byte)(unsafe.Add(t.Pointer(), to*size)), run), unsafe.Slice((*byte)(unsafe.Add(src.Pointer(), from*size)), run))
	})
}

func (t *Tensor) notOnHost(fn string) error {
	return &Error{Func: fn, Got: t.String(), Want: "memory that the processor can read"}
}

// walk calls f for every index of a shape without axes of length 0, in row-major
// order, with the distances from the first element under strides a and b.
func walk(shape Shape, a, b []int, f func(atA, atB int)) {
	index := make([]int, len(shape))
	atA, atB := 0, 0
	for {
		f(atA, atB)
		axis := len(index) - 1
		for ; axis >= 0; axis-- {
			atA += a[axis]
			atB += b[axis]
			if index[axis]++; index[axis] < shape[axis] {
				break
			}
			atA -= a[axis] * shape[axis]
			atB -= b[axis] * shape[axis]
			index[axis] = 0
		}
		if axis < 0 {
			return
		}
	}
}
