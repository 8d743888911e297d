package device

import (
	"time"
	"unsafe"
)

// StreamQueue is the optional ability of a backend to create streams and to run Go functions in
// them.
type StreamQueue interface {
	// CreateStream returns a new empty stream on the current device.
	CreateStream() (Stream, error)

	// FreeStream waits for the work in the stream and releases it. The default stream cannot be
	// freed.
	FreeStream(s Stream) error

	// Submit queues f after the work that is in the stream now and returns.
	Submit(s Stream, f func()) error
}

// Copier is the optional ability of a backend whose memory the processor cannot access. Addresses
// are those that Alloc returned or lie inside such a block, sizes are in bytes, and a copy that
// does not lie inside one block is an error. The zero Stream is the default stream of the block's
// device.
type Copier interface {
	// CopyIn copies src to the device after the work that is in the stream now. It has finished
	// when it returns.
	CopyIn(dst unsafe.Pointer, src []byte, s Stream) error

	// CopyOut copies from the device to dst after the work that is in the stream now. It has
	// finished when it returns.
	CopyOut(dst []byte, src unsafe.Pointer, s Stream) error

	// CopyOn queues a copy between two blocks of the backend, which must not overlap.
	CopyOn(dst, src unsafe.Pointer, size uint64, s Stream) error

	// Zero queues that size bytes become 0.
	Zero(p unsafe.Pointer, size uint64, s Stream) error
}

// Timer is the optional ability of a backend to tell how long a device worked.
type Timer interface {
	// Elapsed returns the time on the device between two events, which were recorded in one stream
	// and have completed.
	Elapsed(from, to Event) (time.Duration, error)
}

// Numbered is the optional ability of a backend to let a program choose one of several devices.
type Numbered interface {
	// SetDefaultDevice makes the device with this index current for all OS threads that have not
	// called SetDevice.
	SetDefaultDevice(index int) error
}

// MemoryUse describes the memory of one device in bytes.
type MemoryUse struct {
	Allocated uint64 // in blocks that are allocated
	Peak      uint64 // the most that Allocated has been
	Reserved  uint64 // taken from the device: in blocks, and kept for reuse
	Total     uint64 // that the device has; 0 when it is unknown
}

// Meter is the optional ability of a backend to count what its devices do.
type Meter interface {
	// MemoryUse returns the use of the memory of the device with this index.
	MemoryUse(index int) (MemoryUse, error)
}

// As returns b as a T, for a backend that wraps another one also the first T among those that it
// wraps. A wrapper has a method Unwrap that returns the wrapped Backend.
func As[T any](b Backend) (T, bool) {
	for b != nil {
		if v, ok := b.(T); ok {
			return v, true
		}
		w, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			break
		}
		b = w.Unwrap()
	}
	var none T
	return none, false
}
