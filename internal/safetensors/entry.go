package safetensors

import (
	"fmt"
	"io"
	"math"
	"slices"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Entry is one tensor to be written: made by FromTensor, FromSlice or Stream.
type Entry struct {
	name  string
	dtype tensor.DType
	shape tensor.Shape
	size  int64
	data  []byte
	write func(io.Writer) error // nil when data holds the bytes
}

// FromTensor returns an entry that borrows t's memory until it was written. t must be contiguous
// and lie in host memory, or on a device from which it can be copied.
func FromTensor(name string, t *tensor.Tensor) (Entry, error) {
	data, err := contentOf(t)
	if err != nil {
		return Entry{}, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	return Entry{name: name, dtype: t.DType(), shape: t.Shape(), size: int64(len(data)), data: data}, nil
}

// FromSlice returns an entry that borrows s until it was written. Without a
// shape the tensor is a vector; else the slice must hold as many elements.
func FromSlice[T tensor.Element](name string, s []T, shape ...int) (Entry, error) {
	t, err := tensor.FromSlice(s, shape...)
	if err != nil {
		return Entry{}, fmt.Errorf("safetensors: tensor %q: %w", name, err)
	}
	return FromTensor(name, t)
}

// Stream returns an entry whose bytes write produces when the entry's turn has
// come: the elements in row-major order, little-endian. Producing another number
// of bytes than dtype and shape ask for is an error of Write.
func Stream(name string, d tensor.DType, shape []int, write func(w io.Writer) error) (Entry, error) {
	if write == nil {
		return Entry{}, fmt.Errorf("safetensors: tensor %q: given a nil write function", name)
	}
	size, ok := byteSize(d, shape)
	if !ok {
		return Entry{}, fmt.Errorf("safetensors: tensor %q: given dtype %v and shape %v, want a valid dtype and axes >= 0 whose product fits in 63 bits", name, d, tensor.Shape(shape))
	}
	return Entry{name: name, dtype: d, shape: slices.Clone(shape), size: size, write: write}, nil
}

// Name returns the name under which the tensor is written.
func (e Entry) Name() string { return e.name }

// Size returns the number of bytes of the tensor's data.
func (e Entry) Size() int64 { return e.size }

// Data returns the bytes of the tensor, nil for an entry of Stream.
func (e Entry) Data() []byte { return e.data }

// byteSize returns the bytes of a tensor; false for an invalid dtype, a negative
// axis or a product that does not fit.
func byteSize(d tensor.DType, shape []int) (int64, bool) {
	if !d.Valid() {
		return 0, false
	}
	size := int64(d.Size())
	empty := false
	for _, n := range shape {
		if n < 0 {
			return 0, false
		}
		empty = empty || n == 0
	}
	if empty {
		return 0, true
	}
	for _, n := range shape {
		if size > math.MaxInt64/int64(n) {
			return 0, false
		}
		size *= int64(n)
	}
	return size, true
}

// contentOf returns the bytes of a contiguous tensor: its memory, or a copy from a device.
func contentOf(t *tensor.Tensor) ([]byte, error) {
	if t != nil && !t.OnHost() && t.Readable() {
		host, err := t.ToHost()
		if err != nil {
			return nil, err
		}
		t = host
	}
	return hostBytes(t)
}

// hostBytes returns the memory of a contiguous host tensor.
func hostBytes(t *tensor.Tensor) ([]byte, error) {
	switch {
	case t == nil:
		return nil, fmt.Errorf("given a nil tensor")
	case !t.IsContiguous():
		return nil, fmt.Errorf("given %v, want a contiguous tensor: copy it first", t)
	case t.Device().Type != device.TypeCPU:
		return nil, fmt.Errorf("given %v, want host memory: copy it to the cpu first", t)
	case t.Pointer() == nil:
		return nil, nil
	}
	return unsafe.Slice((*byte)(t.Pointer()), t.NumElements()*t.DType().Size()), nil
}
