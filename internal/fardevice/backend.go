package fardevice

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// Type is the type of the devices: a number that DLPack keeps for extensions.
const Type device.Type = 12

// Backend gives access to one far device. It is safe for concurrent use.
type Backend struct {
	index int

	mu       sync.Mutex
	blocks   map[uintptr][]byte // the content of each block, by its address
	copies   Copies
	failFrom int // copies from this number on fail; 0 means none
}

// Copies counts what was copied.
type Copies struct{ In, Out, BytesIn, BytesOut int }

// New returns the backend of the device with an index.
func New(index int) *Backend { return &Backend{index: index, blocks: map[uintptr][]byte{}} }

// Copies returns what was copied so far.
func (b *Backend) Copies() Copies {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copies
}

// FailFrom makes the nth copy from now on and all later ones fail; 0 lets all succeed again.
func (b *Backend) FailFrom(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failFrom = n
	if n > 0 {
		b.failFrom += b.copies.In + b.copies.Out
	}
}

// Blocks returns how many blocks are allocated.
func (b *Backend) Blocks() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.blocks)
}

// At returns the content of size bytes of device memory, for the kernels of tests.
func (b *Backend) At(p unsafe.Pointer, size int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	for base, content := range b.blocks {
		if at := uintptr(p) - base; at < uintptr(len(content)) && int(at)+size <= len(content) {
			return content[at : int(at)+size]
		}
	}
	panic(fmt.Sprintf("BUG: fardevice: no block holds %d bytes at %#x", size, uintptr(p)))
}

// Floats returns the elements of a contiguous tensor of f32 in memory of the device.
func (b *Backend) Floats(t *tensor.Tensor) []float32 {
	raw := b.At(t.Pointer(), t.NumElements()*4)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(raw))), t.NumElements())
}

// Name returns FAR.
func (b *Backend) Name() string { return "FAR" }

// Usable returns nil.
func (b *Backend) Usable() error { return nil }

// SetDevice accepts the index of the device only.
func (b *Backend) SetDevice(index int) error {
	if index != b.index {
		return fmt.Errorf("fardevice: given device %d, want %d", index, b.index)
	}
	return nil
}

// DeviceID returns the index of the device.
func (b *Backend) DeviceID() (int, error) { return b.index, nil }

// Device returns the device.
func (b *Backend) Device() (device.Device, error) {
	return device.Device{Type: Type, Index: b.index}, nil
}

// Alloc returns zeroed memory.
func (b *Backend) Alloc(size uint64) (unsafe.Pointer, error) {
	p, err := reserve(int(size))
	if err != nil {
		return nil, fmt.Errorf("fardevice: reserve %d bytes: %w", size, err)
	}
	words := make([]uint64, (size+7)/8)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocks[uintptr(p)] = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	return p, nil
}

// Free returns memory.
func (b *Backend) Free(p unsafe.Pointer) error {
	b.mu.Lock()
	content, ok := b.blocks[uintptr(p)]
	delete(b.blocks, uintptr(p))
	b.mu.Unlock()
	if !ok {
		return fmt.Errorf("fardevice: free: %#x is not the address of a block", uintptr(p))
	}
	return release(p, len(content))
}

// CopyIn copies from the host.
func (b *Backend) CopyIn(dst unsafe.Pointer, src []byte, _ device.Stream) error {
	if err := b.count(func(c *Copies) { c.In++; c.BytesIn += len(src) }); err != nil {
		return err
	}
	copy(b.At(dst, len(src)), src)
	return nil
}

// CopyOut copies to the host.
func (b *Backend) CopyOut(dst []byte, src unsafe.Pointer, _ device.Stream) error {
	if err := b.count(func(c *Copies) { c.Out++; c.BytesOut += len(dst) }); err != nil {
		return err
	}
	copy(dst, b.At(src, len(dst)))
	return nil
}

// CopyOn copies on the device.
func (b *Backend) CopyOn(dst, src unsafe.Pointer, size uint64, _ device.Stream) error {
	copy(b.At(dst, int(size)), b.At(src, int(size)))
	return nil
}

// Zero clears memory.
func (b *Backend) Zero(p unsafe.Pointer, size uint64, _ device.Stream) error {
	clear(b.At(p, int(size)))
	return nil
}

func (b *Backend) count(add func(*Copies)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	add(&b.copies)
	if b.failFrom > 0 && b.copies.In+b.copies.Out >= b.failFrom {
		return fmt.Errorf("fardevice: the device is lost")
	}
	return nil
}

// CreateEvent returns an event that has happened.
func (b *Backend) CreateEvent() (device.Event, error) { return 1, nil }

// FreeEvent does nothing.
func (b *Backend) FreeEvent(device.Event) error { return nil }

// RecordEvent does nothing: nothing is queued.
func (b *Backend) RecordEvent(device.Event, device.Stream) error { return nil }

// SyncEvent does nothing.
func (b *Backend) SyncEvent(device.Event) error { return nil }

// NativeMemory returns the address of the content of the block that an address lies in, for C code
// of tests.
func (b *Backend) NativeMemory(p unsafe.Pointer) (handle uintptr, offset uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for base, content := range b.blocks {
		if at := uintptr(p) - base; at < uintptr(len(content)) {
			return uintptr(unsafe.Pointer(unsafe.SliceData(content))), uint64(at), true
		}
	}
	return 0, 0, false
}

// NativeStream calls f with handles that are numbers.
func (b *Backend) NativeStream(index int, s device.Stream, f func(device.Handles) error) error {
	if err := b.SetDevice(index); err != nil {
		return err
	}
	return f(device.Handles{Context: 100, Device: 200 + uintptr(index), Stream: 300 + uintptr(s)})
}

// NativeScratch lends memory.
func (b *Backend) NativeScratch(_ int, _ device.Stream, size uint64) (p unsafe.Pointer, release func(), err error) {
	p, err = b.Alloc(size)
	return p, func() { _ = b.Free(p) }, err
}

var _ device.Backend = (*Backend)(nil)
var _ device.Native = (*Backend)(nil)
