//go:build invariants

package memory

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// guardBytes is the memory before and after each tensor that must keep its value, a multiple of the
// alignment of tensors.
const guardBytes = 128

const guardByte = 0xa5

// guards are the tensors of an arena with a guard on both sides, so that an op which writes beside
// its operands is found.
type guards struct{ backend *guardedBackend }

func (g *guards) allocate(b device.Backend, d tensor.DType, shape ...int) (*tensor.Tensor, error) {
	if _, counts := b.(*Counter); counts { // it has no memory
		return tensor.New(b, d, shape...)
	}
	if at, err := b.Device(); err != nil || at.Type != device.TypeCPU { // the guards are read and written on the host
		return tensor.New(b, d, shape...)
	}
	if g.backend == nil {
		g.backend = &guardedBackend{Backend: b, sizes: map[unsafe.Pointer]uint64{}}
	}
	return tensor.New(g.backend, d, shape...)
}

// check panics when something has written beside a tensor.
func (g *guards) check() {
	if g.backend == nil {
		return
	}
	for p, size := range g.backend.sizes {
		for i, b := range guarded(p, size) {
			if b != guardByte && (i < guardBytes || i >= guardBytes+int(size)) {
				panic(fmt.Sprintf("BUG: memory: a tensor of %d bytes was written at byte %d", size, i-guardBytes))
			}
		}
	}
}

// guarded returns the memory of a tensor with its guards.
func guarded(p unsafe.Pointer, size uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(p, -guardBytes)), size+2*guardBytes)
}

// guardedBackend allocates with guards.
type guardedBackend struct {
	device.Backend
	sizes map[unsafe.Pointer]uint64
}

// Alloc implements device.Backend.
func (b *guardedBackend) Alloc(size uint64) (unsafe.Pointer, error) {
	p, err := b.Backend.Alloc(size + 2*guardBytes)
	if err != nil {
		return nil, err
	}
	p = unsafe.Add(p, guardBytes)
	memory := guarded(p, size)
	for i := range guardBytes {
		memory[i], memory[len(memory)-1-i] = guardByte, guardByte
	}
	b.sizes[p] = size
	return p, nil
}

// Free implements device.Backend.
func (b *guardedBackend) Free(p unsafe.Pointer) error {
	delete(b.sizes, p)
	return b.Backend.Free(unsafe.Add(p, -guardBytes))
}
