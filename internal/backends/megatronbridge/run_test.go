package megatronbridge_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRun runs a recipe of a package of the shape of Megatron-Bridge.
func TestRun(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	const params = `
recipe: shaped.llama
flavor: pretrain_config
train_iters: 3
mock: true
seq_length: 16
eval_interval: 5
log_interval: 2
skip_save: true
tag: mine
optimizer: {lr: 0.5, unknown: 1}
train: {global_batch_size: 16, eval_iters: many}
`
	for stage, want := range map[string]string{"pretrain": "mine", "sft": "mine-updated"} {
		t.Run(stage, func(t *testing.T) {
			l := newLab(strings.TrimPrefix(params, "\n") + "stage: " + stage + "\n")
			l.BackendPath, err = filepath.Abs(filepath.Join("testdata", "Megatron-Bridge"))
			require.NoError(t, err)
			l.Launch = launch.Options{PerNode: 1, Python: python, Ranks: "all"}
			require.NoError(t, l.Run(t), l.Log.String())
			text, err := os.ReadFile(filepath.Join(l.Dir, "g", "u", "e", "ranks", "rank-0.log"))
			require.NoError(t, err)
			line, _, _ := strings.Cut(string(text), "\n")
			var config struct {
				Tag                                  string
				Train, Logger, Checkpoint, Optimizer map[string]any
			}
			require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "config ")), &config), line)
			assert.Equal(t, want, config.Tag)
			assert.Equal(t, map[string]any{"train_iters": 3.0, "global_batch_size": 16.0, "eval_interval": 5.0, "eval_iters": 2.0}, config.Train)
			assert.Equal(t, map[string]any{"log_interval": 2.0}, config.Logger)
			assert.Equal(t, map[string]any{"save": nil, "save_interval": 0.0}, config.Checkpoint)
			assert.Equal(t, map[string]any{"lr": 0.5}, config.Optimizer)
			metrics, err := os.ReadFile(filepath.Join(l.Dir, "g", "u", "e", "metrics.jsonl"))
			require.NoError(t, err)
			assert.Equal(t, 3, strings.Count(string(metrics), "\n"))
			assert.Contains(t, l.Log.String(), "parameter seq_length has no effect")
			assert.Contains(t, l.Log.String(), "parameter train.eval_iters has no effect")
		})
	}

	l := newLab("recipe: shaped.llama\nflavor: absent\n")
	l.BackendPath, l.Launch = filepath.Join("testdata", "Megatron-Bridge"), launch.Options{PerNode: 1, Python: python}
	assert.ErrorContains(t, l.Run(t), "recipe 'shaped.llama' has no flavor 'absent': looked in primus.backends.megatron_bridge.recipes.shaped.llama")
}
