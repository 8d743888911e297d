package models_test

import (
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A device continues a text as the CPU does and finds texts as likely, without the host.
func TestGenerateAndEvaluateOnADevice(t *testing.T) {
	opencltest.Backend(t)
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=4").Code)
	for _, args := range [][]string{
		{"generate", "--checkpoint", l.Path(), "--prompt", "func f1(", "--max-tokens", "12", "--temperature", "0", "--quiet"},
		{"evaluate", "--checkpoint", l.Path(), "--data", l.Text, "--max-bytes", "300"},
	} {
		host := commandtest.Run(t, args...)
		require.Zero(t, host.Code, host.Stderr)
		device := commandtest.RunChild(t, nil, append(args, "--device", "opencl:0", "--cross-device", "error")...)
		require.Zero(t, device.Code, device.Stderr)
		assert.Equal(t, host.Out, device.Out)
		assert.Empty(t, device.Stderr)
	}
}

// What runs on the host although a device was asked for is told.
func TestGenerateBesideADevice(t *testing.T) {
	opencltest.Backend(t)
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=4").Code)
	args := []string{"generate", "--checkpoint", l.Path(), "--prompt", "x", "--max-tokens", "1", "--device", "opencl:0", "--per-op", "rmsnorm_fwd=flagos"}
	got := commandtest.RunChild(t, nil, args...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Stderr, "Op 'rmsnorm_fwd' runs on the host by 'default.flagos'")
}

func TestGenerateWithoutADevice(t *testing.T) {
	for give, want := range map[string]struct {
		code int
		text string
	}{
		"chip":     {2, `no such backend: --device="chip"`},
		"opencl:0": {1, `--device="opencl:0"`},
	} {
		for _, args := range [][]string{{"generate", "--prompt", "x"}, {"evaluate", "--data", "x"}} {
			got := commandtest.Run(t, append(args, "--checkpoint", t.TempDir(), "--device", give)...)
			assert.Equal(t, want.code, got.Code, give)
			assert.Contains(t, got.Stderr, want.text)
		}
	}
}
