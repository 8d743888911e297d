package native_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// A run begins with the weights of a folder, and goes on from its own checkpoints later.
func TestRunBeginsWithWeightsOfAFolder(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	first := []string{"qk_layernorm=true", "kv_channels=16", "norm_epsilon=1e-6", "save_initial=true", "save_interval=0", "lr_decay_iters=12"}
	require.NoError(t, l.train(t.Context(), "first", first...))
	want := l.metrics("first")

	l.model = "hf"
	from := []string{"load_hf=" + l.path("first", "checkpoints", "step-00000000"), "init_method_std=0.5", "lr_decay_iters=12"}
	require.NoError(t, l.train(t.Context(), "second", append(from, "train_iters=4")...))
	require.NoError(t, l.train(t.Context(), "second", from...))
	got := l.metrics("second")
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i].Loss, got[i].Loss, "step %d", i+1)
	}
	assert.Contains(t, l.log.String(), "resuming from checkpoint")
}

func TestWeightsOfAFolderThatDoNotFit(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "first", "train_iters=0", "save_initial=true"))
	l.model = "hf"
	folder := "load_hf=" + l.path("first", "checkpoints", "step-00000000")
	err := l.train(t.Context(), "run", folder, "num_layers=3", "window_size=[4,0]")
	assert.ErrorContains(t, err, "num_layers: given 3, want 2 as in config.json of load_hf")
	assert.ErrorContains(t, err, "write model: hf.yaml into the experiment")
	assert.ErrorContains(t, err, "override")
	assert.ErrorContains(t, err, "window_size: given [4 0], want [-1 0]")
	assert.ErrorContains(t, l.train(t.Context(), "run", folder, "make_vocab_size_divisible_by=100"), "want a divisor of the vocabulary of load_hf, 256")
	assert.ErrorContains(t, l.train(t.Context(), "run", folder, "seq_length=64"), "max_position_embeddings: given 32, want at least seq_length 64")
	assert.ErrorContains(t, l.train(t.Context(), "run", "load_hf="+l.path("none")), "load_hf: weights: ")
	assert.NoDirExists(t, l.path("run"))
}

// Weights that are NaN or infinite are refused by name and number, unless they are asked for.
func TestNonFiniteWeightsAreRefused(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "from", "train_iters=2", "save_interval=2"))
	dir := filepath.Join(l.dir, "weights")
	require.NoError(t, os.CopyFS(dir, os.DirFS(l.path("from", "checkpoints", "step-00000002"))))
	require.NoError(t, os.Remove(filepath.Join(dir, "checkpoint.json")))
	file := filepath.Join(dir, "model.safetensors")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for i, v := range []uint32{0x7fc00000, 0xff800000, 0x7f800001} { // NaN, -Inf, NaN
		binary.LittleEndian.PutUint32(text[len(text)-4*(i+1):], v)
	}
	require.NoError(t, os.WriteFile(file, text, 0o644))
	start := []string{"load_hf=" + dir, "train_iters=2", "tokenizer_type=ByteLevel"}
	err = l.train(t.Context(), "run", start...)
	require.ErrorContains(t, err, " has 2 NaN and 1 infinite of ")
	require.ErrorContains(t, err, "allow_nonfinite_weights=true")
	err = l.train(t.Context(), "run", append(start, "allow_nonfinite_weights=true")...)
	require.ErrorContains(t, err, "the loss is NaN", "it was loaded")
	assert.Contains(t, l.log.String(), " has 2 NaN and 1 infinite of ")
}
