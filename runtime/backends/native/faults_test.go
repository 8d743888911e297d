package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/vendors/opencl"
)

// The codes of OpenCL that the tests use.
const (
	deviceNotAvailable = -2
	allocationFailure  = -4
	outOfResources     = -5
	buildFailure       = -11
	always             = 1 << 30
)

// A device that has no memory left while a run is set up ends the run, which releases what it had.
func TestAllocationOnDeviceFails(t *testing.T) {
	for _, n := range []int{0, 1, 4} {
		faults := opencltest.NewFaulty(t)
		l := newLab(t)
		l.sources = []opregistry.Source{opencl.Source()}
		dev := faults.Backend(t)
		l.device = dev
		faults.Fail(t, "clCreateBuffer", allocationFailure, n, always)
		err := l.train(t.Context(), "run", "train_iters=2")
		require.ErrorIs(t, err, device.ErrOutOfMemory)
		for _, part := range []string{"clCreateBuffer", "opencl:0", "bytes were asked for", "use a smaller batch or model"} {
			require.ErrorContains(t, err, part)
		}
		use, err := dev.MemoryUse(0)
		require.NoError(t, err)
		assert.Zero(t, use.Allocated, "everything is released")
		steps, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
		require.NoError(t, err)
		assert.Empty(t, steps)
	}
}

// What ends a run in the middle of a step leaves the last checkpoint whole, and another run goes on
// from it with the same bits.
func TestFaultsOfADevice(t *testing.T) {
	tests := map[string]struct {
		function   string
		code       int
		want       error // nil for any
		text       string
		checkpoint string // that remains
	}{
		"the device is lost":    {"*", deviceNotAvailable, device.ErrLost, "resume from the last checkpoint", "step-00000004"},
		"kernels are not taken": {"clEnqueueNDRangeKernel", outOfResources, device.ErrOutOfMemory, "clEnqueueNDRangeKernel", ""},
		"nothing is read":       {"clEnqueueReadBuffer", outOfResources, device.ErrOutOfMemory, "clEnqueueReadBuffer", "step-00000004"},
	}
	whole := newLab(t)
	whole.sources, whole.device = []opregistry.Source{opencl.Source()}, opencltest.Backend(t)
	require.NoError(t, whole.train(t.Context(), "whole", "train_iters=8"))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			faults := opencltest.NewFaulty(t)
			l := newLab(t)
			l.sources, l.device = []opregistry.Source{opencl.Source()}, faults.Backend(t)
			l.observer = onStep{do: func(s backend.Step) {
				if s.Step == 6 {
					faults.Fail(t, tt.function, tt.code, 20, always)
				}
			}}
			err := l.train(t.Context(), "run", "train_iters=8")
			require.ErrorContains(t, err, tt.text)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
			steps, err := filepath.Glob(l.path("run", "checkpoints", "step-*"))
			require.NoError(t, err)
			require.NotEmpty(t, steps)
			assert.Equal(t, name == "the device is lost", strings.Contains(l.log.String(), "is lost with the device"))
			if tt.checkpoint != "" {
				assert.Contains(t, steps[len(steps)-1], tt.checkpoint)
			}
			l.device, l.observer = opencltest.Backend(t), backend.Observers{}
			require.NoError(t, l.train(t.Context(), "run", "train_iters=8"))
			want, got := whole.metrics("whole"), l.metrics("run")
			require.Len(t, got, len(want))
			for i := range want {
				assert.Equal(t, want[i].Loss, got[i].Loss, i)
			}
			assert.Equal(t, weightsOf(t, whole, "whole"), weightsOf(t, l, "run"))
		})
	}
}

// A kernel that fails once is made up for by the host, which the log says.
func TestOneFaultOfADevice(t *testing.T) {
	faults := opencltest.NewFaulty(t)
	l := newLab(t)
	l.sources, l.device = []opregistry.Source{opencl.Source()}, faults.Backend(t)
	l.observer = onStep{do: func(s backend.Step) {
		if s.Step == 1 {
			faults.Fail(t, "clEnqueueNDRangeKernel", outOfResources, 1, 1)
		}
	}}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=3"))
	failed := 0
	for _, s := range l.manager.Stats() {
		failed += int(s.Errors)
	}
	assert.Equal(t, 1, failed)
}

// A driver whose compiler fails ends the run with what it said.
func TestBuildOnDeviceFails(t *testing.T) {
	faults := opencltest.NewFaulty(t)
	l := newLab(t)
	l.sources, l.device = []opregistry.Source{opencl.Source()}, faults.Backend(t)
	faults.Fail(t, "clBuildProgram", buildFailure, 0, always)
	err := l.train(t.Context(), "run", "train_iters=2")
	require.ErrorContains(t, err, "nonsense")
	assert.Less(t, len(err.Error()), 1<<14, "%v", err)
}
