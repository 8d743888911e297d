package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
)

// A checkpoint of TorchTitan becomes a folder that continues texts.
func TestImport(t *testing.T) {
	foreign, err := filepath.Abs("../../../../../internal/native/weights/testdata/foreign")
	require.NoError(t, err)
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=1").Code)
	like, dir := filepath.Join(l.Dir, "like"), filepath.Join(l.Dir, "model")
	require.Zero(t, commandtest.Run(t, "export", "--checkpoint", l.Path(), "-o", like).Code)
	config, err := os.ReadFile(filepath.Join(foreign, "hf", "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(like, "config.json"), config, 0o644))

	checkpoint := filepath.Join(foreign, "torchtitan")
	got := commandtest.Run(t, "import", "--checkpoint", checkpoint, "--like", like, "-o", dir)
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `^\S+/model: llama, \d+ parameters, bf16\n$`, got.Out)
	assert.Zero(t, commandtest.Run(t, "generate", "--checkpoint", dir, "--prompt", "func", "--max-tokens", "4", "--quiet").Code)

	for want, args := range map[string][]string{
		"exists and is not empty":                     {"--checkpoint", checkpoint, "--like", like, "-o", dir},
		"want --like DIR":                             {"--checkpoint", checkpoint, "-o", "x"},
		"want --checkpoint DIR":                       {"--like", like, "-o", "x"},
		`--dtype: given "q8_0", want keep, f32`:       {"--checkpoint", checkpoint, "--like", like, "-o", "x", "--dtype", "q8_0"},
		"want a checkpoint of TorchTitan or Megatron": {"--checkpoint", like, "--like", like, "-o", "x"},
	} {
		got := commandtest.Run(t, append([]string{"import"}, args...)...)
		assert.NotZero(t, got.Code)
		assert.Contains(t, got.Stderr, want)
	}
}
