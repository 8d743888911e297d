package tensor

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

// maxAxes is more than the number of axes that any framework allows.
const maxAxes = 64

// FromDLPack returns a tensor over memory that another framework describes, without copying it. The
// struct, its shape and its strides are copied. Strides of nil mean a contiguous tensor. Negative
// strides, vector types, dtypes that DTypes does not list and data that is not aligned to its dtype
// are errors.
//
// The memory must stay valid until Release, which calls release to give it back; release may be
// nil. After an error release is not called and the memory still belongs to the caller.
func FromDLPack(d *DLTensor, release func()) (*Tensor, error) {
	fail := func(want, format string, args ...any) (*Tensor, error) {
		return nil, &Error{Func: "FromDLPack", Got: fmt.Sprintf(format, args...), Want: want}
	}
	if d == nil {
		return fail("a DLTensor", "nil")
	}
	dtype, ok := fromDLPack(d.DType)
	if !ok {
		return fail("a dtype of tensors", "type code %d with %d bits and %d lanes", d.DType.Code, d.DType.Bits, d.DType.Lanes)
	}
	if d.NDim < 0 || d.NDim > maxAxes || d.NDim > 0 && d.Shape == nil {
		return fail(fmt.Sprintf("0 to %d axes with a shape", maxAxes), "%d axes, shape at %p", d.NDim, d.Shape)
	}
	shape, err := ints(d.Shape, d.NDim)
	if err != nil {
		return nil, err
	}
	if _, err := Shape(shape).byteSize("FromDLPack", dtype); err != nil {
		return nil, err
	}
	strides := Shape(shape).rowMajor()
	if d.Strides != nil {
		if strides, err = ints(d.Strides, d.NDim); err != nil {
			return nil, err
		}
	}
	on := device.Device{Type: device.Type(d.Device.Type), Index: int(d.Device.Index)}
	t := &Tensor{storage: &Storage{device: on, place: on.Place(), release: release}, dtype: dtype}
	t = t.view(shape, strides, 0)
	switch {
	case t.elems == 0:
		return t, nil
	case slices.ContainsFunc(strides, func(s int) bool { return s < 0 }):
		return fail("strides >= 0", "strides %v", strides)
	case !fits(shape, strides, math.MaxInt/dtype.Size()):
		return fail("a size that fits in an int", "shape %v, strides %v of %v", Shape(shape), strides, dtype)
	}
	if err := t.locate(d); err != nil {
		return nil, err
	}
	t.storage.size = t.span() * dtype.Size()
	return t, nil
}

// locate puts a tensor in the memory that d describes, which it has to itself.
func (t *Tensor) locate(d *DLTensor) error {
	size := t.dtype.Size()
	fail := func(want, format string, args ...any) error {
		return &Error{Func: "FromDLPack", Got: fmt.Sprintf(format, args...), Want: want}
	}
	switch {
	case t.elems == 0:
		return nil
	case d.Data == nil:
		return fail("the address of the data", "nil for shape %v", t.shape)
	case d.ByteOffset > math.MaxInt:
		return fail("an offset that fits in an int", "byte offset %d", d.ByteOffset)
	case (uintptr(d.Data)+uintptr(d.ByteOffset))%uintptr(size) != 0:
		return fail(fmt.Sprintf("alignment to %d bytes", size), "data at %p with byte offset %d", d.Data, d.ByteOffset)
	}
	t.storage.base = unsafe.Add(d.Data, d.ByteOffset)
	return nil
}

// equal compares numbers of a C array.
func equal(p *int64, with []int) bool {
	for i, v := range unsafe.Slice(p, len(with)) {
		if v != int64(with[i]) {
			return false
		}
	}
	return true
}

// fromDLPack returns the dtype that matches DLPack's description.
func fromDLPack(d DLDataType) (DType, bool) {
	for _, t := range DTypes() {
		if t.DLPack() == d {
			return t, true
		}
	}
	return Unspecified, false
}

// ints copies n numbers of a C array.
func ints(p *int64, n int32) ([]int, error) {
	out := make([]int, n)
	for i, v := range unsafe.Slice(p, int(n)) {
		if int64(int(v)) != v {
			return nil, &Error{Func: "FromDLPack", Got: fmt.Sprintf("%d in a shape or strides", v), Want: "numbers that fit in an int"}
		}
		out[i] = int(v)
	}
	return out, nil
}
