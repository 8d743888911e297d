package device

import (
	"fmt"
	"unsafe"
)

// Type numbers a kind of device as DLPack does, so that tensors can be exchanged with other
// frameworks without a translation table.
type Type int32

// The device types of DLPack 1.x that the project names.
const (
	TypeUnspecified Type = 0
	TypeCPU         Type = 1
	TypeCUDA        Type = 2
	TypeOpenCL      Type = 4
	TypeROCM        Type = 10
)

// String returns the name that frameworks print for the type.
func (t Type) String() string {
	switch t {
	case TypeCPU:
		return "cpu"
	case TypeCUDA:
		return "cuda"
	case TypeOpenCL:
		return "opencl"
	case TypeROCM:
		return "rocm"
	default:
		return fmt.Sprintf("device_type(%d)", int32(t))
	}
}

// Device names one device: a type and an index within that type.
type Device struct {
	Type  Type
	Index int
}

// String returns the device in the form "cpu:0".
func (d Device) String() string { return fmt.Sprintf("%s:%d", d.Type, d.Index) }

// Stream is a backend's handle of an ordered queue of work. The zero Stream is
// the default stream of the current device.
type Stream uintptr

// DefaultStream is the stream that is used when none is named.
const DefaultStream Stream = 0

// Event is a backend's handle of a point in a stream. The zero Event is invalid.
type Event uintptr

// Backend gives access to the devices of one kind: their memory, streams and events. It is the
// contract of StepMesh's abstract backend class, with errors in place of status codes.
//
// A Backend is safe for concurrent use. The current device belongs to an OS
// thread: a goroutine that calls SetDevice pins itself with
// runtime.LockOSThread first, for as long as the choice matters.
type Backend interface {
	// Name returns the name under which the backend is registered, in upper case.
	Name() string

	// Usable returns nil when the backend can be used on this machine, else why not.
	Usable() error

	// SetDevice makes the device with this index current for the calling OS thread.
	SetDevice(index int) error

	// DeviceID returns the index of the calling OS thread's current device; 0 when none was set.
	DeviceID() (int, error)

	// Device returns the calling OS thread's current device.
	Device() (Device, error)

	// Alloc returns size bytes of zeroed memory on the current device, aligned to at least 64
	// bytes. The memory lies outside the Go heap and stays valid until Free. A size of 0 is an
	// error.
	Alloc(size uint64) (unsafe.Pointer, error)

	// Free returns memory to the device. p must come from Alloc of this backend
	// and must not have been freed before.
	Free(p unsafe.Pointer) error

	// CreateEvent returns a new event that has not been recorded.
	CreateEvent() (Event, error)

	// FreeEvent releases an event. Freeing it twice is an error.
	FreeEvent(e Event) error

	// RecordEvent places the event after the work that is in the stream now; the event completes
	// when that work is done. Recording again moves the event.
	RecordEvent(e Event, s Stream) error

	// SyncEvent waits until the event has completed. An event that was never recorded is an error.
	SyncEvent(e Event) error
}
