package device_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/device"
)

func TestDeviceString(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		give device.Device
		want string
	}{
		{"cpu", device.Device{Type: device.TypeCPU}, "cpu:0"},
		{"cuda", device.Device{Type: device.TypeCUDA, Index: 3}, "cuda:3"},
		{"opencl", device.Device{Type: device.TypeOpenCL, Index: 1}, "opencl:1"},
		{"rocm", device.Device{Type: device.TypeROCM, Index: 1}, "rocm:1"},
		{"unspecified", device.Device{}, "device_type(0):0"},
		{"unnamed", device.Device{Type: 12, Index: 2}, "device_type(12):2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tt.give.String())
		})
	}
}
