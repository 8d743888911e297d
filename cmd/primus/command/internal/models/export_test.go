package models_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
)

// What is trained is exported, and the folder continues texts as the checkpoint does.
func TestExport(t *testing.T) {
	l := commandtest.NewLab(t)
	require.Zero(t, l.Train("train_iters=2", "ema_decay=0.9").Code)
	dir, file := filepath.Join(l.Dir, "model"), filepath.Join(l.Dir, "model.gguf")
	got := commandtest.Run(t, "export", "--checkpoint", l.Path(), "-o", dir)
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `^\S+/model: llama, \d+ parameters, f32\n$`, got.Out)
	assert.FileExists(t, filepath.Join(dir, "tokenizer.json"))
	want := commandtest.Run(t, "generate", "--checkpoint", l.Path(), "--prompt", "func", "--max-tokens", "8", "--quiet")
	again := commandtest.Run(t, "generate", "--checkpoint", dir, "--prompt", "func", "--max-tokens", "8", "--quiet")
	require.Zero(t, again.Code, again.Stderr)
	assert.Equal(t, want.Out, again.Out)

	got = commandtest.Run(t, "export", "--checkpoint", dir, "--format", "gguf", "--dtype", "q8_0", "-o", file)
	require.Zero(t, got.Code, got.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "GGUF\x03\x00\x00\x00", string(text[:8]))

	averages := filepath.Join(l.Dir, "averages")
	got = commandtest.Run(t, "export", "--checkpoint", l.Path(), "--ema", "--dtype", "bf16", "-o", averages)
	require.Zero(t, got.Code, got.Stderr)
	assert.Regexp(t, `^\S+/averages: llama, \d+ parameters, bf16\n$`, got.Out)
	got = commandtest.Run(t, "export", "--checkpoint", averages, "-o", filepath.Join(l.Dir, "copy"))
	assert.Regexp(t, `^\S+/copy: llama, \d+ parameters, bf16\n$`, got.Out)
	for _, command := range [][]string{{"export", "-o", filepath.Join(l.Dir, "none")}, {"generate", "--prompt", "func"}} {
		got = commandtest.Run(t, append(command, "--checkpoint", averages, "--ema")...)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stderr, "no model_ema.safetensors, which a run with ema_decay saves")
	}

	got = commandtest.Run(t, "export", "--checkpoint", dir, "-o", dir)
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "exists and is not empty")
}

func TestFlagsThatAreWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"no model given":                                                    {"-o", "x"},
		"no place for the result given":                                     {"--checkpoint", "x"},
		`--format: given "onnx", want hf or gguf`:                           {"--checkpoint", "x", "-o", "y", "--format", "onnx"},
		`--dtype: given "q8_0", want keep, f32, bf16, f16 with --format hf`: {"--checkpoint", "x", "-o", "y", "--dtype", "q8_0"},
		"want a name that ends with .gguf":                                  {"--checkpoint", "x", "-o", "y", "--format", "gguf"},
		"a gguf file is not split":                                          {"--checkpoint", "x", "-o", "y.gguf", "--format", "gguf", "--max-shard-size", "1GB"},
		`--max-shard-size: given "5"`:                                       {"--checkpoint", "x", "-o", "y", "--max-shard-size", "5"},
	} {
		got := commandtest.Run(t, append([]string{"export"}, args...)...)
		assert.Equal(t, 2, got.Code, want)
		assert.Contains(t, got.Stderr, want)
	}
}
