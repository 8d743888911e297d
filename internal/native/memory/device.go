package memory

import (
	"fmt"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/sysmem"
)

// Limit returns the memory that a run can have: that of the device, or what this process can have
// for a run in host memory. Owner says so in errors: "the device has".
func Limit(dev device.Backend) (limit sysmem.Limit, owner string, err error) {
	d, at, ok := describer(dev)
	if !ok {
		limit, err = sysmem.Read()
		return limit, "this process can have", err
	}
	about, err := d.Describe(at.Index)
	return sysmem.Limit{Bytes: about.Memory, Source: fmt.Sprintf("%v, %s", at, about.Name)}, "the device has", err
}

// Known reports whether the memory of the current device of a backend is known. It is not that of
// the host.
func Known(dev device.Backend) bool {
	_, _, ok := describer(dev)
	return ok
}

// describer returns a backend that describes its current device, which is not the host.
func describer(dev device.Backend) (device.Describer, device.Device, bool) {
	at, err := dev.Device()
	if err != nil || at.Type == device.TypeCPU {
		return nil, at, false
	}
	d, ok := device.As[device.Describer](dev)
	return d, at, ok
}

// InUse returns how many bytes are allocated on the current device of a backend, 0 if the backend
// does not count them.
func InUse(b device.Backend) int64 {
	meter, ok := device.As[device.Meter](b)
	if !ok {
		return 0
	}
	index, err := b.DeviceID()
	if err != nil {
		return 0
	}
	use, err := meter.MemoryUse(index)
	if err != nil {
		return 0
	}
	return int64(use.Allocated)
}
