package native_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/safetensors"

	"github.com/primus-fl/primus/internal/primustest"
)

// Adapters are trained beside weights of another run that stay as they are; a run goes on as if it
// had not stopped, and its checkpoints are models by themselves.
func TestAdapters(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "base"))
	base := l.path("base")
	lora := []string{"load_hf=" + base, "lora_rank=4", "lora_alpha=8", "lora_dropout=0.1", "lora_target_modules=['q_proj','v_proj','down_proj']", "lr=1e-2"}
	require.NoError(t, l.train(t.Context(), "whole", lora...))
	require.NoError(t, l.train(t.Context(), "parts", append([]string{"train_iters=8", "lr_decay_iters=12"}, lora...)...))
	require.NoError(t, l.train(t.Context(), "parts", append([]string{"lr_decay_iters=12"}, lora...)...))
	last := func(run, file string) string { return l.path(run, "checkpoints", "step-00000012", file) }
	for _, file := range []string{"adapter_model.safetensors", "model.safetensors", "optimizer.safetensors"} {
		want, err := os.ReadFile(last("whole", file))
		require.NoError(t, err)
		got, err := os.ReadFile(last("parts", file))
		require.NoError(t, err)
		assert.Equal(t, want, got, file)
	}
	before, after := l.metrics("base"), l.metrics("whole")
	assert.Less(t, after[len(after)-1].Loss, before[len(before)-1].Loss, "adapters make the model better")

	var config map[string]any
	text, err := os.ReadFile(last("whole", "adapter_config.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &config))
	assert.Equal(t, base, config["base_model_name_or_path"])
	assert.Equal(t, []any{"down_proj", "q_proj", "v_proj"}, config["target_modules"])
	assert.InDelta(t, 8, config["lora_alpha"], 0)

	f, err := safetensors.Open(t.Context(), last("whole", "adapter_model.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	assert.Len(t, f.Names(), 2*3*2)
	assert.Contains(t, f.Names(), "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight")
	optimizer, err := os.Stat(last("whole", "optimizer.safetensors"))
	require.NoError(t, err)
	weights, err := os.Stat(last("whole", "model.safetensors"))
	require.NoError(t, err)
	assert.Less(t, optimizer.Size(), weights.Size()/4, "the weights of the other run have no moments")

	require.NoError(t, l.train(t.Context(), "merged", "load_hf="+filepath.Dir(last("whole", "x")), "train_iters=1", "eval_interval=1"))
	assert.InDelta(t, after[len(after)-1].Loss, l.metrics("merged")[0].Loss, 0.5, "the merged weights")

	err = l.train(t.Context(), "whole", "train_iters=14")
	assert.ErrorContains(t, err, "has adapters, and lora_rank is 0")
	err = l.train(t.Context(), "base", "train_iters=14", "lora_rank=2")
	assert.ErrorContains(t, err, "has weights without adapters, and lora_rank is 2: begin with load_hf=")
	err = l.train(t.Context(), "whole", append([]string{"train_iters=14", "lora_rank=2"}, lora[2:]...)...)
	assert.ErrorContains(t, err, "lora_A.weight")
	err = l.train(t.Context(), "other", "lora_rank=2", "lora_target_modules=['qproj']")
	assert.ErrorContains(t, err, `lora_target_modules: given "qproj", want q_proj or k_proj`)
}
