package train_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// onDevice trains the experiment on an OpenCL device in a child.
func onDevice(l *commandtest.Lab, library string, more ...string) commandtest.Outcome {
	l.T.Helper()
	return commandtest.RunChild(l.T, []string{"PRIMUS_OPENCL=" + library}, l.Args(append(more, "device=opencl:0")...)...)
}

// A run on a device says what the device did.
func TestTrainOnADevice(t *testing.T) {
	t.Parallel()
	library := opencltest.NewFaulty(t).Path()
	l := commandtest.NewLab(t)
	got := onDevice(l, library)
	require.Zero(t, got.Code, got.Stderr)
	for _, part := range []string{"host time", "device time", "outside of calls", "device      opencl:0: ", "busy for "} {
		assert.Contains(t, got.Out, part)
	}
	text, err := os.ReadFile(l.Path("dispatch.json"))
	require.NoError(t, err)
	var report struct{ Device backend.DeviceUse }
	require.NoError(t, json.Unmarshal(text, &report))
	assert.Equal(t, "opencl:0", report.Device.Device)
	assert.Positive(t, report.Device.Steps.Busy)
	assert.Positive(t, report.Device.Memory.Peak)
}

// A device without memory ends a run with one error and exit code 1; the same command line goes on
// when there is memory again.
func TestDeviceWithoutMemory(t *testing.T) {
	t.Parallel()
	const allocationFailure = -4
	faults := opencltest.NewFaulty(t)
	library := faults.Path()
	l := commandtest.NewLab(t)
	faults.Fail(t, "clCreateBuffer", allocationFailure, 2, 1<<30)
	got := onDevice(l, library)
	assert.Equal(t, 1, got.Code, got.Stderr)
	line := commandtest.OnlyError(t, got)
	for _, part := range []string{"CL_MEM_OBJECT_ALLOCATION_FAILURE", "opencl:0", "bytes were asked for", "use a smaller batch or model"} {
		assert.Contains(t, line, part)
	}
	steps, err := filepath.Glob(l.Path("checkpoints", "step-*"))
	require.NoError(t, err)
	assert.Empty(t, steps)
	require.NoError(t, os.Remove(library+".fault"))
	got = onDevice(l, library)
	assert.Zero(t, got.Code, got.Stderr)
}
