package opencl_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/devicetest"
	"github.com/primus-fl/primus/device/opencl"
)

// TestMain asks PoCL for two devices, which it reads once per process.
func TestMain(m *testing.M) {
	if err := os.Setenv("POCL_DEVICES", "pthread pthread"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// open returns a backend that is closed at the end of the test, or skips the test.
func open(t *testing.T) *opencl.Backend {
	t.Helper()
	b := opencl.New(opencl.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	if err := b.Usable(); err != nil {
		t.Skip(err)
	}
	return b
}

func TestContract(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Backend { return opencl.New(opencl.Options{}) })
}
