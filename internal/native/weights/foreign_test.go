package weights_test

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/weights"
)

// hfFolder has the weights of the checkpoints beside it, which testdata/foreign.py wrote.
const hfFolder = "testdata/foreign/hf"

// contents returns the weights of a folder by name, in bytes.
func contents(t *testing.T, f *weights.Folder) map[string]string {
	t.Helper()
	tensors, err := f.Tensors()
	require.NoError(t, err)
	all := map[string]string{}
	for _, x := range tensors {
		text, err := io.ReadAll(x.Data)
		require.NoError(t, err, x.Name)
		all[x.Name] = x.DType.String() + string(text)
	}
	return all
}

func TestImport(t *testing.T) {
	t.Parallel()
	for checkpoint, like := range map[string]string{
		"torchtitan": "hf", "megatron": "hf", "megatron/iter_0000003": "hf", "legacy": "hf", "experts/torchtitan": "experts/hf", "experts/megatron": "experts/hf",
	} {
		like = filepath.Join("testdata/foreign", like)
		want, err := weights.Open(t.Context(), like, weights.Settings{})
		require.NoError(t, err)
		defer want.Close()
		got, err := weights.Import(t.Context(), filepath.Join("testdata/foreign", checkpoint), like)
		require.NoError(t, err, checkpoint)
		assert.Equal(t, contents(t, want), contents(t, got), checkpoint)
		require.NoError(t, got.Close())
		require.NoError(t, got.Close(), "again")
	}
}

// Who takes such a checkpoint for a folder of weights is told what to do.
func TestOpenNamesForeignCheckpoints(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"torchtitan", "megatron", "legacy", "legacy/iter_0000003"} {
		_, err := weights.Open(t.Context(), filepath.Join("testdata/foreign", dir), weights.Settings{})
		assert.ErrorContains(t, err, "a checkpoint of TorchTitan or Megatron, want a folder of weights: make one of it with primus import", dir)
	}
}

// What is missing, cut short or of another model is named.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	source := "testdata/foreign/torchtitan"
	for want, spoil := range map[string]func(t *testing.T, checkpoint, like string){
		"no such file": func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.Remove(filepath.Join(checkpoint, "__1_0.distcp")))
		},
		"want 38856 as .metadata says: the file is cut short": func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.Truncate(filepath.Join(checkpoint, "__1_0.distcp"), 38855))
		},
		"the file is cut short": func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.Truncate(filepath.Join(checkpoint, ".metadata"), 900))
		},
		"want the Metadata of torch.distributed.checkpoint": func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(checkpoint, ".metadata"), []byte("\x80\x04N."), 0o644))
		},
		`given the class "posix.system"`: func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(checkpoint, ".metadata"), []byte("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."), 0o644))
		},
		`tensor "layers.0.feed_forward.w2.weight" has the shape [16 24], want [16 32] as config.json says`: func(t *testing.T, _, like string) {
			replace(t, filepath.Join(like, "config.json"), `"intermediate_size": 24`, `"intermediate_size": 32`)
		},
		`no tensor "model.layers.2.self_attn.q_proj.weight"`: func(t *testing.T, _, like string) {
			replace(t, filepath.Join(like, "config.json"), `"num_hidden_layers": 2`, `"num_hidden_layers": 3`)
		},
		`tensor "layers.1.ffn_norm.weight" is not part of the model`: func(t *testing.T, _, like string) {
			replace(t, filepath.Join(like, "config.json"), `"num_hidden_layers": 2`, `"num_hidden_layers": 1`)
		},
		"given the parts of 2 ranks (mp_rank_*), want one": func(t *testing.T, checkpoint, _ string) {
			for _, rank := range []string{"mp_rank_00", "mp_rank_01"} {
				require.NoError(t, os.MkdirAll(filepath.Join(checkpoint, "iter_0000009", rank), 0o755))
			}
		},
		"no mp_rank_00 and no directories step-N or iter_N": func(t *testing.T, checkpoint, _ string) {
			require.NoError(t, os.Remove(filepath.Join(checkpoint, ".metadata")))
		},
		"config.json: no such file or directory; want a folder of Hugging Face": func(t *testing.T, _, like string) {
			require.NoError(t, os.Remove(filepath.Join(like, "config.json")))
		},
	} {
		checkpoint, like := filepath.Join(t.TempDir(), "step-1"), filepath.Join(t.TempDir(), "hf")
		require.NoError(t, os.CopyFS(checkpoint, os.DirFS(source)))
		require.NoError(t, os.CopyFS(like, os.DirFS(hfFolder)))
		spoil(t, checkpoint, like)
		f, err := weights.Import(t.Context(), checkpoint, like)
		if err == nil {
			_, err = f.Tensors()
			assert.NoError(t, f.Close())
		}
		assert.ErrorContains(t, err, want)
	}
}

func replace(t *testing.T, path, old, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), old, to, 1)), 0o644))
}

// A checkpoint in which a byte has changed loads or is refused.
func TestImportOfDamagedCheckpoints(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(root, os.DirFS("testdata/foreign")))
	for name, stride := range map[string]int{
		"torchtitan/.metadata": 29, "torchtitan/__0_0.distcp": 499, "megatron/iter_0000003/.metadata": 53, "legacy/iter_0000003/mp_rank_00/model_optim_rng.pt": 499,
	} {
		dir, path := filepath.Join(root, strings.SplitN(name, "/", 2)[0]), filepath.Join(root, name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		for at := 0; at < len(whole); at += stride {
			text := slices.Clone(whole)
			text[at] ^= byte(1 + at%255)
			require.NoError(t, os.WriteFile(path, text, 0o644))
			f, err := weights.Import(t.Context(), dir, hfFolder)
			if err != nil {
				continue
			}
			if tensors, err := f.Tensors(); err == nil {
				for _, x := range tensors {
					_, _ = io.Copy(io.Discard, x.Data) // it may be refused here, too
				}
			}
			require.NoError(t, f.Close())
		}
		require.NoError(t, os.WriteFile(path, whole, 0o644))
	}
}
