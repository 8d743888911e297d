package cpu

import (
	"fmt"

	"github.com/primus-fl/primus/device"
)

// SetDevice makes the device with this index current for the calling OS thread. The caller must
// call runtime.LockOSThread first.
func (b *Backend) SetDevice(index int) error {
	if err := b.checkIndex("set device", index); err != nil {
		return err
	}
	b.threads.Set(index)
	return nil
}

// SetDefaultDevice makes the device with this index current for all OS threads that have not called
// SetDevice.
func (b *Backend) SetDefaultDevice(index int) error {
	if err := b.checkIndex("set default device", index); err != nil {
		return err
	}
	b.threads.SetDefault(index)
	return nil
}

func (b *Backend) checkIndex(op string, index int) error {
	if count := len(b.nodes()); index < 0 || index >= count {
		return fmt.Errorf("cpu: %s %d: want an index from 0 to %d, one for each NUMA node with memory", op, index, count-1)
	}
	return nil
}

// DeviceID returns the index of the calling OS thread's current device, which is
// 0 when none was set. The error is always nil.
func (b *Backend) DeviceID() (int, error) { return b.current(), nil }

// Device returns the calling OS thread's current device. The error is always nil.
func (b *Backend) Device() (device.Device, error) {
	return device.Device{Type: device.TypeCPU, Index: b.current()}, nil
}

// current returns the index of the current device. With one device it does not ask for the thread.
func (b *Backend) current() int {
	if len(b.nodes()) == 1 {
		return 0
	}
	return b.threads.Get()
}
