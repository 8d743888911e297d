package devicetest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/device/devicetest"
)

func TestRunAcceptsSoundBackend(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Backend { return cpu.New() })
}

// envFault names the broken promise of the backend in TestFaultyBackend.
const envFault = "DEVICETEST_FAULT"

// TestRunRejectsFaultyBackends runs the kit on backends with one fault each, in
// child processes because the kit must fail there.
func TestRunRejectsFaultyBackends(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), exe, "-test.run=^TestFaultyBackend$/^"+f.section+"$/^"+f.check+"$", "-test.timeout=1m")
			child.Env = append(os.Environ(), envFault+"="+name)
			output, err := child.CombinedOutput()
			require.Errorf(t, err, "the kit does not notice:\n%s", output)
			assert.Contains(t, string(output), "--- FAIL: TestFaultyBackend/"+f.section+"/"+f.check)
		})
	}
}

func TestFaultyBackend(t *testing.T) {
	f, ok := faults[os.Getenv(envFault)]
	if !ok {
		t.Skip("run by TestRunRejectsFaultyBackends")
	}
	devicetest.Run(t, func(*testing.T) device.Backend { return f.inject(cpu.New()) })
}

func TestRunSkipsUnusableBackend(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), exe, "-test.run=^TestUnusableBackend$", "-test.v")
	child.Env = append(os.Environ(), envFault+"=unusable")
	output, err := child.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	assert.Contains(t, string(output), "backend CPU is not usable here: device: backend is closed")
	assert.Contains(t, string(output), "--- SKIP: TestUnusableBackend/memory/blocks_are_aligned")
}

func TestUnusableBackend(t *testing.T) {
	if os.Getenv(envFault) != "unusable" {
		t.Skip("run by TestRunSkipsUnusableBackend")
	}
	devicetest.Run(t, func(t *testing.T) device.Backend {
		b := cpu.New()
		require.NoError(t, b.Close())
		return b
	})
}

// TestBackendWithoutStreams shows that the ability to make streams is optional.
func TestBackendWithoutStreams(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Backend {
		b := cpu.New()
		t.Cleanup(func() { assert.NoError(t, b.Close()) })
		return struct{ device.Backend }{b}
	})
}
