package ops_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/opencltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The conformance kit runs on a device, and coverage has a column for its impls.
func TestOpsVerifyOnADevice(t *testing.T) {
	opencltest.Backend(t)
	got := commandtest.RunChild(t, nil, "ops", "verify", "residual_add", "--device", "opencl:0", "--dtype", "f32,bf16", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var results []struct {
		Impl_id, DType string
		Served         int
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &results))
	require.Len(t, results, 2)
	for _, r := range results {
		assert.Equal(t, "vendor.opencl", r.Impl_id)
		assert.Positive(t, r.Served, r.DType)
	}
	got = commandtest.RunChild(t, nil, "ops", "coverage", "residual_add", "--dtype", "f32", "--device", "opencl:0")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "| op | default.flagos | reference.go | vendor.opencl |\n|---|---|---|---|\n| `residual_add` | f32 ")
}

func TestOpsVerifyWithoutADevice(t *testing.T) {
	got := commandtest.Run(t, "ops", "verify", "residual_add", "--device", "opencl:0")
	assert.Equal(t, 1, got.Code)
	for _, part := range []string{`--device="opencl:0"`, commandtest.Absent, "apt install pocl-opencl-icd"} {
		assert.Contains(t, got.Stderr, part)
	}
	got = commandtest.Run(t, "ops", "verify", "residual_add", "--device", "chip")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "OPENCL")
}
