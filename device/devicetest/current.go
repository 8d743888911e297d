package devicetest

import (
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/device"
)

// noSuchDevice is an index that no backend has.
const noSuchDevice = 1 << 12

var deviceChecks = []check{
	{"zero_is_current_at_first", func(t *testing.T, b device.Backend) {
		onFreshThread(b, func() { assert.Equal(t, 0, currentDevice(t, b)) })
	}},
	{"set_device_is_visible", func(t *testing.T, b device.Backend) {
		onFreshThread(b, func() {
			for index := range deviceCount(b) {
				assert.NoError(t, b.SetDevice(index))
				assert.Equal(t, index, currentDevice(t, b))
			}
		})
	}},
	{"device_agrees_with_its_id", func(t *testing.T, b device.Backend) {
		onFreshThread(b, func() {
			for index := range deviceCount(b) {
				assert.NoError(t, b.SetDevice(index))
				d, err := b.Device()
				assert.NoError(t, err)
				assert.Equal(t, index, d.Index)
				assert.NotEqual(t, device.TypeUnspecified, d.Type)
			}
		})
	}},
	{"index_out_of_range_is_an_error", func(t *testing.T, b device.Backend) {
		onFreshThread(b, func() {
			last := deviceCount(b) - 1
			assert.NoError(t, b.SetDevice(last))
			assert.Error(t, b.SetDevice(-1))
			assert.Error(t, b.SetDevice(noSuchDevice))
			assert.Equal(t, last, currentDevice(t, b), "an error leaves the current device as it was")
		})
	}},
	{"current_device_belongs_to_the_thread", func(t *testing.T, b device.Backend) {
		if deviceCount(b) < 2 {
			t.Skip("needs two devices")
		}
		onFreshThread(b, func() {
			assert.NoError(t, b.SetDevice(1))
			onFreshThread(b, func() { assert.Equal(t, 0, currentDevice(t, b)) })
			assert.Equal(t, 1, currentDevice(t, b))
		})
	}},
}

// onFreshThread runs f on an OS thread that does nothing else and ends with f, so that no choice of
// device outlives it.
func onFreshThread(b device.Backend, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		goruntime.LockOSThread()
		defer func() { _ = b.SetDevice(0) }()
		f()
	}()
	<-done
}

// deviceCount returns how many devices b has. It tries indexes, because the contract has no method
// for this.
func deviceCount(b device.Backend) int {
	count := 0
	onFreshThread(b, func() {
		for b.SetDevice(count) == nil && count < noSuchDevice {
			count++
		}
	})
	return count
}

// currentDevice returns the index of the current device; after an error it returns an index that no
// device has.
func currentDevice(t *testing.T, b device.Backend) int {
	t.Helper()
	index, err := b.DeviceID()
	if !assert.NoError(t, err) {
		return -1
	}
	return index
}
