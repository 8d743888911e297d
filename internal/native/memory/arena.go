package memory

import (
	"errors"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Arena allocates tensors that are freed together. After the first error, new returns nil tensors,
// so that the owner can check err once at the end.
type Arena struct {
	Backend device.Backend
	tensors []*tensor.Tensor
	Err     error
	guards  guards
}

// New allocates a tensor of undefined content, nil after an error.
func (a *Arena) New(d tensor.DType, shape ...int) *tensor.Tensor {
	if a.Err != nil {
		return nil
	}
	t, err := a.guards.allocate(a.Backend, d, shape...)
	if err != nil {
		a.Err = err
		return nil
	}
	a.tensors = append(a.tensors, t)
	return t
}

// Check panics, in builds with the tag invariants, when something has written beside a tensor.
func (a *Arena) Check() { a.guards.check() }

// Fail frees the memory and returns the first error.
func (a *Arena) Fail() error { return errors.Join(a.Err, a.Close()) }

// Close frees the memory.
func (a *Arena) Close() error {
	a.guards.check()
	var faults []error
	for _, t := range a.tensors {
		faults = append(faults, t.Release())
	}
	a.tensors = nil
	return errors.Join(faults...)
}

// Pool hands out tensors to a sequence of equal blocks, which ask for them in the same order. Each
// block gets tensors of its own or, if the pool is shared, those of the block before, whose content
// is then lost. A nil pool returns nil tensors.
type Pool struct {
	Arena  *Arena
	Shared bool
	taken  []*tensor.Tensor
	next   int
}

// New returns the next tensor of a block.
func (m *Pool) New(d tensor.DType, shape ...int) *tensor.Tensor {
	if m == nil {
		return nil
	}
	if m.next == len(m.taken) {
		m.taken = append(m.taken, m.Arena.New(d, shape...))
	}
	m.next++
	return m.taken[m.next-1]
}

// F32 is New for f32.
func (m *Pool) F32(shape ...int) *tensor.Tensor { return m.New(tensor.F32, shape...) }

// Rewind starts the next block.
func (m *Pool) Rewind() {
	if m == nil {
		return
	}
	m.next = 0
	if !m.Shared {
		m.taken = nil
	}
}

// The view functions below are for shapes that the package itself has computed. For a nil tensor,
// from a nil pool or after a failed allocation, they return nil.

// Must returns t; an error is a fault of the caller and panics.
func Must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

// Rows returns the rows lo to hi.
func Rows(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return Must(t.Slice(0, lo, hi))
}

// Columns returns the columns lo to hi of a matrix.
func Columns(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return Must(t.Slice(1, lo, hi))
}

// Heads returns the heads lo to hi of a matrix of rows of heads of d elements, as [batch, seq,
// heads, d].
func Heads(t *tensor.Tensor, batch, seq, d, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	all := Must(t.Reshape(batch, seq, t.Shape().Cols()/d, d))
	return Must(all.Slice(2, lo, hi))
}

// PackedHeads returns the heads lo to hi of a matrix of rows of heads of d elements, as [T, heads,
// d].
func PackedHeads(t *tensor.Tensor, d, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return Must(Must(t.Reshape(t.Shape()[0], t.Shape().Cols()/d, d)).Slice(1, lo, hi))
}

// Counter is a device that counts allocations and returns memory that cannot be used.
type Counter struct {
	device.Backend
	Bytes float64
	place [1]byte
}

// Device implements device.Backend.
func (*Counter) Device() (device.Device, error) { return device.Device{Type: device.TypeCPU}, nil }

// Alloc implements device.Backend.
func (c *Counter) Alloc(size uint64) (unsafe.Pointer, error) {
	c.Bytes += float64(size)
	return unsafe.Pointer(&c.place), nil
}

// Free implements device.Backend.
func (*Counter) Free(unsafe.Pointer) error { return nil }

var _ device.Backend = (*Counter)(nil)
