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
	// CopyIn copies src to the device after the work that is in the stream now, and before the work
	// that any stream is given when it has returned. src may change then.
	CopyIn(dst unsafe.Pointer, src []byte, s Stream) error

	// CopyOut copies from the device to dst after the work that is in the stream now. It has
	// finished when it returns.
	CopyOut(dst []byte, src unsafe.Pointer, s Stream) error

	// CopyOn queues a copy between two blocks of the backend, which must not overlap.
	CopyOn(dst, src unsafe.Pointer, size uint64, s Stream) error

	// Zero queues that size bytes become 0.
	Zero(p unsafe.Pointer, size uint64, s Stream) error
}

// LateReader is the optional ability of a Copier to copy from the device while its caller queues
// more work.
type LateReader interface {
	// ReadLater queues a copy of size bytes, at least 1, from the device after the work that is in
	// the stream now. wait returns the copy when it has been made; work that the stream is given
	// later does not change it. It need not be called.
	ReadLater(src unsafe.Pointer, size uint64, s Stream) (wait func() ([]byte, error), err error)
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
	Allocated uint64 `json:"allocated"` // in blocks that are allocated
	Peak      uint64 `json:"peak"`      // the most that Allocated has been
	Reserved  uint64 `json:"reserved"`  // taken from the device: in blocks, and kept for reuse
	Total     uint64 `json:"total"`     // that the device has; 0 when it is unknown
}

// Meter is the optional ability of a backend to count what its devices do.
type Meter interface {
	// MemoryUse returns the use of the memory of the device with this index.
	MemoryUse(index int) (MemoryUse, error)
}

// Handles are a device and one of its streams as the device's own interface knows them: a
// cl_context, a cl_device_id and a cl_command_queue in OpenCL.
type Handles struct {
	Context, Device, Stream uintptr
}

// Native is the optional ability of a backend to let libraries that are written for the device's
// own interface work on its memory and in its streams.
type Native interface {
	// NativeMemory returns the handle of the memory object that an address of Alloc lies in, such
	// as a cl_mem, and the offset of the address in it in bytes. In an interface without such
	// objects the handle is the address. ok is false for an address of something else.
	NativeMemory(p unsafe.Pointer) (handle uintptr, offset uint64, ok bool)

	// NativeStream calls f with the handles of the device with this index and of one of its
	// streams; the zero Stream is the default stream of the device. f may queue work in the stream.
	// The handle of the stream is valid until f returns.
	NativeStream(index int, s Stream, f func(Handles) error) error

	// NativeScratch lends size bytes of undefined content to work that is queued in a stream until
	// release is called. Others who ask for scratch of the stream wait for release.
	NativeScratch(index int, s Stream, size uint64) (p unsafe.Pointer, release func(), err error)
}

// Description says what a device is.
type Description struct {
	Name   string `json:"name"`   // as its driver has it
	Driver string `json:"driver"` // with its version
	Memory uint64 `json:"memory"` // in bytes
}

// Describer is the optional ability of a backend to say what its devices are.
type Describer interface {
	// Describe describes the device with this index.
	Describe(index int) (Description, error)
}

// Profiler is the optional ability of a backend to measure the commands that are queued to a
// device: kernels, copies and zeroing.
type Profiler interface {
	// Profile measures the commands that are queued to the device with this index from now on,
	// until the Profile is closed. A device has at most one at a time.
	Profile(index int) (Profile, error)
}

// Profile measures the commands of a device. It is safe for concurrent use.
type Profile interface {
	// Label gives a label to the commands that were queued since the last call of Label.
	Label(label int)

	// Take returns what is known of the commands that have completed, by label, and forgets them.
	// It does not wait for others. Commands without a label have the label 0.
	Take() (map[int]Work, error)

	// Close ends measuring. Closing twice has no effect.
	Close() error
}

// Work is what is known of commands that have completed, by the clock of the device.
type Work struct {
	Commands int           `json:"commands"`
	Busy     time.Duration `json:"busy_nanos"`   // from the beginning of each command to its end
	Queued   time.Duration `json:"queued_nanos"` // from the moment at which each was queued to its beginning
}

// Add adds other commands.
func (w *Work) Add(o Work) {
	w.Commands += o.Commands
	w.Busy += o.Busy
	w.Queued += o.Queued
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
