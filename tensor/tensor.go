package tensor

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/primus-fl/primus/device"
)

// Storage is one block of memory on one device. Tensors are views of it.
type Storage struct {
	base     unsafe.Pointer
	size     int
	device   device.Device
	place    device.Place   // of device
	backend  device.Backend // nil for Go memory and for memory of another framework
	release  func()         // nil unless the memory must be returned to another framework
	released atomic.Bool
}

// Size returns the size of the block in bytes.
func (s *Storage) Size() int { return s.size }

// Backend returns what the block was allocated from; nil for Go memory and for memory of another
// framework.
func (s *Storage) Backend() device.Backend { return s.backend }

// Device returns where the block lies.
func (s *Storage) Device() device.Device { return s.device }

// Tensor is a typed, strided view of a Storage. Its zero value is not usable:
// tensors are made by New, FromSlice and the view methods.
type Tensor struct {
	storage *Storage
	dtype   DType
	shape   Shape
	strides []int
	offset  int
	elems   int
	class   uint64
	contig  bool
	known   *Tensor // its elements in host memory; nil if they are not known
}

// New returns a zero-filled contiguous tensor in memory of the backend's current device. The caller
// owns the memory and returns it with Release.
func New(b device.Backend, d DType, shape ...int) (*Tensor, error) {
	size, err := Shape(shape).byteSize("New", d)
	if err != nil {
		return nil, err
	}
	dev, err := b.Device()
	if err != nil {
		return nil, fmt.Errorf("tensor: New: %w", err)
	}
	st := &Storage{size: size, device: dev, place: dev.Place()}
	if size > 0 {
		if st.base, err = b.Alloc(uint64(size)); err != nil {
			return nil, fmt.Errorf("tensor: New: shape %v of %v: %w", Shape(shape), d, err)
		}
		st.backend = b
	}
	return contiguous(st, d, slices.Clone(shape)), nil
}

// FromSlice returns a contiguous tensor over s without a copy. The slice must
// hold exactly as many elements as the shape; without a shape the tensor is a
// vector. The garbage collector keeps the slice alive as long as the tensor.
func FromSlice[T Element](s []T, shape ...int) (*Tensor, error) {
	if len(shape) == 0 {
		shape = []int{len(s)}
	}
	d := DTypeOf[T]()
	if _, err := Shape(shape).byteSize("FromSlice", d); err != nil {
		return nil, err
	}
	if n := Shape(shape).NumElements(); n != len(s) {
		return nil, &Error{Func: "FromSlice", Got: fmt.Sprintf("%d elements for shape %v", len(s), Shape(shape)), Want: fmt.Sprintf("%d", n)}
	}
	st := &Storage{base: unsafe.Pointer(unsafe.SliceData(s)), size: len(s) * d.Size(), device: device.Device{Type: device.TypeCPU}, place: device.PlaceHost}
	return contiguous(st, d, slices.Clone(shape)), nil
}

// FromBytes returns a contiguous tensor over raw Go memory without a copy. The bytes must be
// aligned for the dtype, and there must be exactly as many as the shape needs.
func FromBytes(raw []byte, d DType, shape ...int) (*Tensor, error) {
	size, err := Shape(shape).byteSize("FromBytes", d)
	if err != nil {
		return nil, err
	}
	base := unsafe.Pointer(unsafe.SliceData(raw))
	switch {
	case len(raw) != size:
		return nil, &Error{Func: "FromBytes", Got: fmt.Sprintf("%d bytes for shape %v of %v", len(raw), Shape(shape), d), Want: fmt.Sprintf("%d", size)}
	case uintptr(base)%uintptr(d.Size()) != 0:
		return nil, &Error{Func: "FromBytes", Got: fmt.Sprintf("bytes at address %#x", uintptr(base)), Want: fmt.Sprintf("alignment to %d bytes", d.Size())}
	}
	st := &Storage{base: base, size: size, device: device.Device{Type: device.TypeCPU}, place: device.PlaceHost}
	return contiguous(st, d, slices.Clone(shape)), nil
}

func contiguous(st *Storage, d DType, shape Shape) *Tensor {
	return &Tensor{storage: st, dtype: d, shape: shape, strides: shape.rowMajor(), elems: shape.NumElements(), class: classOf(d, shape, true), contig: true}
}

// DType returns the type of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the axes. The caller must not change them.
func (t *Tensor) Shape() Shape { return t.shape }

// Strides returns the distance in elements between neighbours of each axis. The
// caller must not change them.
func (t *Tensor) Strides() []int { return t.strides }

// Offset returns the distance in elements from the start of the Storage to the first element.
func (t *Tensor) Offset() int { return t.offset }

// Storage returns the memory that the tensor views.
func (t *Tensor) Storage() *Storage { return t.storage }

// Device returns where the data lies.
func (t *Tensor) Device() device.Device { return t.storage.device }

// Place returns where the data lies, in a form for comparisons.
func (t *Tensor) Place() device.Place { return t.storage.place }

// NumElements returns the number of elements.
func (t *Tensor) NumElements() int { return t.elems }

// IsContiguous reports whether the elements lie in row-major order without gaps.
func (t *Tensor) IsContiguous() bool { return t.contig }

// Pointer returns the address of the first element; nil for a tensor without elements.
func (t *Tensor) Pointer() unsafe.Pointer {
	if t.elems == 0 {
		return nil
	}
	return unsafe.Add(t.storage.base, t.offset*t.dtype.Size())
}

// String describes the tensor without its data.
func (t *Tensor) String() string {
	if t == nil {
		return "nil tensor"
	}
	s := fmt.Sprintf("%v%v on %v", t.dtype, t.shape, t.storage.device)
	if !t.contig {
		s += fmt.Sprintf(" strides %v", t.strides)
	}
	return s
}

// Release returns the memory of the tensor's Storage to its backend, or to the framework that it
// came from. No view of the Storage may be used afterwards. A second Release is an error; releasing
// Go memory does nothing.
func (t *Tensor) Release() error {
	st := t.storage
	if st.backend == nil && st.release == nil {
		return nil
	}
	if st.released.Swap(true) {
		return &Error{Func: "Release", Got: "a storage that was released before", Want: "one Release a storage"}
	}
	if st.release != nil {
		st.release()
		return nil
	}
	if err := st.backend.Free(st.base); err != nil {
		return fmt.Errorf("tensor: Release: %w", err)
	}
	return nil
}

// Data returns the elements of t as a Go slice without a copy: element i of the slice is the
// element at distance i from the first one, so for a contiguous tensor the slice holds all elements
// in row-major order. It panics when T is not the Go type of t's dtype.
func Data[T Element](t *Tensor) []T {
	if d := DTypeOf[T](); d != t.dtype {
		panic(fmt.Sprintf("BUG: tensor: Data[%v] of a tensor of %v", d, t.dtype))
	}
	t.checkHost()
	if t.elems == 0 {
		return nil
	}
	return unsafe.Slice((*T)(t.Pointer()), t.span())
}

// span returns the number of elements from the first to the last one, gaps included.
func (t *Tensor) span() int {
	if t.contig {
		return t.elems
	}
	last := 0
	for i, n := range t.shape {
		last += (n - 1) * t.strides[i]
	}
	return last + 1
}

// OnHost reports whether the processor can read the memory of t.
func (t *Tensor) OnHost() bool { return t.storage.device.Type == device.TypeCPU }

func (t *Tensor) checkHost() {
	if !t.OnHost() {
		panic(fmt.Sprintf("BUG: tensor: the processor cannot access %v", t))
	}
}
