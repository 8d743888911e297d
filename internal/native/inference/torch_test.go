package inference_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// save writes a folder of weights as Hugging Face's transformers does.
func save(t *testing.T, m *model.Model, dir string) {
	t.Helper()
	var entries []safetensors.Entry
	for _, n := range m.Tensors() {
		e, err := safetensors.FromTensor(n.Name, n.Tensor)
		require.NoError(t, err)
		entries = append(entries, e)
	}
	require.NoError(t, safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), entries, nil))
	text, err := json.Marshal(m.Config().HFConfig())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
}

// Greedy text is that of PyTorch, which computes the whole text again for each of the 200 tokens.
// Several prompts of different lengths are continued at once.
func TestGreedyTextEqualsPyTorch(t *testing.T) {
	python := primustest.Python(t, "torch", "numpy")
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			const count = 200
			cfg.SeqLength, cfg.InitMethodStd = 240, 0.4
			backend := cpu.New()
			m, err := model.NewFrozen(cfg, backend)
			require.NoError(t, err)
			require.NoError(t, m.Init(6))
			dir := t.TempDir()
			save(t, m, dir)
			prompts := [][]int32{{255, 7}, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 50, 60, 70, 80, 90, 100, 110}}
			input, err := json.Marshal(prompts)
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "greedy.py"), dir, strconv.Itoa(count))
			cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1") // idle threads would spin beside other tests
			cmd.Stdin = bytes.NewReader(input)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			var want []struct {
				IDs    []int32
				Margin float64
			}
			require.NoError(t, json.Unmarshal(out, &want))
			require.Len(t, want, len(prompts))

			e := newEngine(t, m, inference.Settings{Slots: 2, Rows: 8})
			var all sync.WaitGroup
			for i, prompt := range prompts {
				all.Go(func() {
					got, err := e.Generate(t.Context(), inference.Request{Prompt: prompt, MaxTokens: count}, nil)
					assert.NoError(t, err)
					assert.Greater(t, want[i].Margin, 1e-4, "rounding could decide; choose another seed")
					assert.Equal(t, want[i].IDs, got.IDs)
					assert.Equal(t, inference.FinishLength, got.Finish)
				})
			}
			all.Wait()
			require.NoError(t, e.Close())
			require.NoError(t, m.Close())
			require.NoError(t, backend.Close())
		})
	}
}
