// Package examples_test runs the programs of this folder.
package examples_test

import (
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain reads every folder of the module. The tests run go in child processes, whose reading the
// test cache does not see; with this it knows that a change of any file of the module makes its
// results stale.
func TestMain(m *testing.M) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "dist", "output"}, entry.Name()) {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
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
	assert.Regexp(t, `(?m)^acme +pretrain, sft, dpo +in primus +1 .* trains as native does$`, run("backends", "list"))
}
