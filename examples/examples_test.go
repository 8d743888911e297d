// Package examples_test runs the programs of this folder.
package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCustomOp(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "run", "./custom_op").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "[0.8485278 1.1313704 0.8485281 1.1313708] <nil>\n", string(out))
}

// A module of its own is not part of go test ./... of this one.
func TestOutOfTreeGo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "test", "./...")
	cmd.Dir = "outtree_go"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// A program of its own brings an op, a device, a framework, a patch and a listener, and all of them
// are used.
func TestCustomDistribution(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "acme")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./custom_distribution").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "STEPMESH_BACKEND=acme", "TE_FL_PREFER=vendor", "PRIMUS_WORKSPACE="+t.TempDir(), "TRAIN_DATA=../README.md")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	trained := run("train", "--config", "custom_distribution/acme.yaml", "--configs-dir", "custom_distribution/presets",
		"train_iters=2", "num_layers=1", "hidden_size=32", "ffn_hidden_size=64", "num_attention_heads=4", "num_query_groups=2",
		"seq_length=32", "eval_interval=0")
	assert.Contains(t, trained, "acme serves residual_add")
	assert.Contains(t, trained, "Applied: acme.greeting")
	assert.Regexp(t, `(?m)^residual_add +vendor\.acme +vendor`, trained)
	assert.Regexp(t, `(?m)^steps +2 of 2 `, trained)
	assert.Regexp(t, `(?m)^acme +0\.1\.0 +compiled in +github\.com/primus-fl/primus`, run("plugins", "list"))
	assert.Regexp(t, `(?m)^acme +pretrain +in primus +1 .* trains as native does$`, run("backends", "list"))
}
