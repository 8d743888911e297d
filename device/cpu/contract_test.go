package cpu

import (
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/devicetest"
)

func TestContract(t *testing.T) {
	tests := []struct {
		name string
		new  func() *Backend
	}{
		{"as it is", New},
		{"several nodes", func() *Backend { return newBackend(newSystemPager(), func() []int { return []int{0, 1, 8} }) }},
		{"memory from the go heap", func() *Backend { return newBackend(heapPager{}, func() []int { return []int{0} }) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			devicetest.Run(t, func(*testing.T) device.Backend { return tt.new() })
		})
	}
}
