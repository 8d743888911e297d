package memory

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
)

// StandIn takes the place of a device where its memory shall not be used: tensors have the place of
// the device, and their memory is reserved on the host. Close releases what is left of it.
type StandIn struct {
	*cpu.Backend
	at device.Device
}

// NewStandIn returns a StandIn for the current device of a backend.
func NewStandIn(of device.Backend) (StandIn, error) {
	at, err := of.Device()
	if err != nil {
		return StandIn{}, fmt.Errorf("device: %w", err)
	}
	return StandIn{cpu.New(), at}, nil
}

// Device returns the device whose place is taken.
func (s StandIn) Device() (device.Device, error) { return s.at, nil }

// CopyIn is that of device.Copier.
func (s StandIn) CopyIn(dst unsafe.Pointer, src []byte, _ device.Stream) error {
	copy(unsafe.Slice((*byte)(dst), len(src)), src)
	return nil
}

// CopyOut is that of device.Copier.
func (s StandIn) CopyOut(dst []byte, src unsafe.Pointer, _ device.Stream) error {
	copy(dst, unsafe.Slice((*byte)(src), len(dst)))
	return nil
}

// CopyOn is that of device.Copier.
func (s StandIn) CopyOn(dst, src unsafe.Pointer, size uint64, _ device.Stream) error {
	copy(unsafe.Slice((*byte)(dst), size), unsafe.Slice((*byte)(src), size))
	return nil
}

// Zero is that of device.Copier.
func (s StandIn) Zero(p unsafe.Pointer, size uint64, _ device.Stream) error {
	clear(unsafe.Slice((*byte)(p), size))
	return nil
}

var _ device.Copier = StandIn{}
