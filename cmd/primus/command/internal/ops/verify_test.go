package ops_test

import (
	"encoding/json"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpsVerify(t *testing.T) {
	got := commandtest.Run(t, "ops", "verify", "residual_add", "swiglu", "--dtype", "f32,f16", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var results []struct {
		Op, Impl_id, DType string
		Served, Declined   int
		Failures           []any
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &results))
	require.Len(t, results, 4)
	for _, r := range results {
		assert.Equal(t, "default.flagos", r.Impl_id)
		assert.Empty(t, r.Failures)
		assert.Positive(t, r.Served+r.Declined)
	}

	got = commandtest.Run(t, "ops", "verify", "--op", "residual_*", "--impl", "reference.*", "--dtype", "f32")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "pass")

	for want, args := range map[string][]string{
		"no impl that runs on this machine matches":  {"--impl", "vendor.none"},
		`--dtype: given "f33", want one of f64, f32`: {"--dtype", "f33"},
		`op "swigul"`: {"swigul"},
		"want a file of a call, or a directory with some":  {"--recording", "none"},
		"--failures: given -1, want a number from 0":       {"--failures", "-1"},
		`--impl: given "[", want a name in which * stands`: {"--impl", "["},
	} {
		got := commandtest.Run(t, append([]string{"ops", "verify"}, args...)...)
		assert.Equal(t, 2, got.Code, want)
		assert.Contains(t, got.Stderr, want)
	}
}

func TestOpsCoverage(t *testing.T) {
	got := commandtest.Run(t, "ops", "coverage", "residual_add", "--dtype", "f32")
	require.Zero(t, got.Code, got.Stderr)
	assert.Contains(t, got.Out, "| op | default.flagos | reference.go |\n|---|---|---|\n| `residual_add` | f32 ")

	got = commandtest.Run(t, "ops", "coverage", "--op", "residual_add", "--impl", "reference.*", "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var c struct{ Results []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(got.Out), &c))
	assert.Len(t, c.Results, 4, "one a dtype")
	assert.Equal(t, 2, commandtest.Run(t, "ops", "coverage", "-o", "yaml").Code)
}
