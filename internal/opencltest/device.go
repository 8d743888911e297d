package opencltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opstest"
	"github.com/primus-fl/primus/opstest/ondevice"
)

// Backend returns a backend that is closed at the end of the test, whose scratch memory holds NaNs.
// The test is skipped on a machine without an OpenCL device.
func Backend(t testing.TB) *opencl.Backend {
	b := opencl.New(opencl.Options{PoisonScratch: true})
	if err := b.Usable(); err != nil {
		t.Skipf("there is no OpenCL device: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// Conform runs a conformance kit on impls that serve operands on an OpenCL device, with all of its
// corner cases and one of the sizes of a model for each op. The test is skipped on a machine
// without a device, and under the race detector.
func Conform(t *testing.T, kit opstest.Kit, impls []opregistry.Impl, oracle opregistry.Source, opts ...opstest.Option) {
	primustest.Sequential(t, "it compares results")
	b := Backend(t)
	const all = 1000
	kit.RunAll(t, ondevice.Source(b, opregistry.Source{Name: "opencl", Impls: impls}, nil), oracle, append([]opstest.Option{opstest.Sample(all, 1)}, opts...)...)
}
