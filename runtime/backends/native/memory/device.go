package memory

import "github.com/primus-fl/primus/device"

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
