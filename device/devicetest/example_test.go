package devicetest_test

import (
	"testing"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/device/devicetest"
)

// The test of a backend hands over what makes one.
func Example() {
	_ = func(t *testing.T) { // TestBackend in the package of the backend
		devicetest.Run(t, func(*testing.T) device.Backend { return cpu.New() })
	}
}
