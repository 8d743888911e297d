package native_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/safetensors"
	"github.com/primus-fl/primus/tensor"
)

// Every optimizer lowers the loss and goes on bit for bit; none goes on with the state of another.
func TestOptimizersTrainAndResume(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	for name, params := range map[string][]string{
		"sgd":        {"optimizer=sgd", "lr=0.05", "min_lr=0"},
		"muon":       {"optimizer=muon", "muon_extra_scale_factor=0.2", "muon_use_nesterov=true", "bf16=true"},
		"muon, gpt2": {"optimizer=muon", "muon_extra_scale_factor=0.2", "normalization=LayerNorm", "position_embedding_type=learned_absolute", "activation_func=gelu", "add_bias_linear=true", "num_query_groups=4"},
		"muon, moe":  {"optimizer=muon", "muon_extra_scale_factor=0.2", "num_experts=4"},
		"wsd":        {"lr_decay_style=WSD", "lr_wsd_decay_iters=4", "weight_decay_incr_style=linear", "end_weight_decay=0.3", "decoupled_weight_decay=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			params := append([]string{"eval_interval=0"}, params...)
			require.NoError(t, l.train(t.Context(), "whole", params...))
			whole := l.metrics("whole")
			assert.Less(t, whole[len(whole)-1].Loss, whole[0].Loss)
			require.Error(t, l.interruptAt("parts", 4, params...))
			require.NoError(t, l.train(t.Context(), "parts", params...))
			assert.Equal(t, whole, l.metrics("parts"))
			if params[1] == "optimizer=sgd" {
				err := l.train(t.Context(), "parts", "train_iters=20", "eval_interval=0")
				assert.ErrorContains(t, err, "optimizer: given adam, and it was trained with sgd")
			}
		})
	}
}

// The batch grows with the samples, also over an interruption, and the text is read in the same
// order as without a ramp.
func TestRampOfTheBatchSize(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	params := []string{"eval_interval=0", "global_batch_size=8", "rampup_batch_size=[2, 2, 24]", "train_iters=14"}
	require.NoError(t, l.train(t.Context(), "whole", params...))
	require.Error(t, l.interruptAt("parts", 5, params...))
	require.NoError(t, l.train(t.Context(), "parts", params...))
	assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
	// 4 steps of 2, 2 of 4, 2 of 6, and 6 of 8 sequences.
	var s struct {
		Consumed int `json:"consumed_samples"`
	}
	text, err := os.ReadFile(l.path("whole", "checkpoints", "step-00000014", "trainer_state.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s))
	assert.Equal(t, 4*2+2*4+2*6+6*8, s.Consumed)

	err = l.train(t.Context(), "wrong", "rampup_batch_size=[3, 1, 24]")
	assert.ErrorContains(t, err, "rampup_batch_size[0]: given 3, want a multiple of 2")
}

// A run whose validation loss rises ends, saves its last step and says so; when it is started
// again, it stays as it is.
func TestEarlyStopping(t *testing.T) {
	l := newLab(t)
	params := []string{"eval_interval=1", "early_stopping_patience=3", "early_stopping_threshold=0.001", "optimizer=sgd", "lr=1e-9", "min_lr=0", "save_interval=0"}
	require.NoError(t, l.train(t.Context(), "run", params...))
	assert.Len(t, l.metrics("run"), 4)
	assert.DirExists(t, l.path("run", "checkpoints", "step-00000004"))
	require.NoError(t, l.train(t.Context(), "run", params...))
	assert.Len(t, l.metrics("run"), 4)
	state, err := os.ReadFile(l.path("run", "checkpoints", "step-00000004", "trainer_state.json"))
	require.NoError(t, err)
	assert.Contains(t, string(state), `"since": 3`)

	err = l.train(t.Context(), "never", "early_stopping_patience=3", "eval_interval=0")
	assert.ErrorContains(t, err, "early_stopping_patience: given no evaluation")
}

// The average of the weights is that of the checkpoints of all steps, evaluations use it, and it
// goes on after an interruption.
func TestAverageOfTheWeights(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	params := []string{"train_iters=5", "lr_decay_iters=5", "save_interval=1", "eval_interval=5", "bf16=true", "valid_fraction=0.2"}
	weights := func(run, step, file string) []float64 {
		f, err := safetensors.Open(t.Context(), l.path(run, "checkpoints", step, file))
		require.NoError(t, err)
		defer f.Close()
		const name = "model.layers.1.mlp.down_proj.weight"
		raw, err := f.Bytes(name)
		require.NoError(t, err)
		x, err := tensor.FromBytes(raw, tensor.F32, len(raw)/4)
		require.NoError(t, err)
		return x.Float64s()
	}
	var mean []float64
	for step := 1; step <= 5; step++ {
		require.NoError(t, l.train(t.Context(), "plain", append(params, fmt.Sprintf("train_iters=%d", step))...))
		w := weights("plain", fmt.Sprintf("step-%08d", step), "model.safetensors")
		if mean == nil {
			mean = w
		}
		for i := range mean {
			mean[i] = 0.9*mean[i] + 0.1*w[i]
		}
	}
	params = append(params, "ema_decay=0.9")
	require.NoError(t, l.train(t.Context(), "whole", params...))
	assert.InDeltaSlice(t, mean, weights("whole", "step-00000005", "model_ema.safetensors"), 1e-6)
	assert.Equal(t, weights("plain", "step-00000005", "model.safetensors"), weights("whole", "step-00000005", "model.safetensors"))
	whole, plain := l.metrics("whole"), l.metrics("plain")
	assert.NotEqual(t, *plain[4].ValidLoss, *whole[4].ValidLoss)
	whole[4].ValidLoss = plain[4].ValidLoss
	assert.Equal(t, plain[4], whole[4])

	require.NoError(t, l.train(t.Context(), "parts", append(params, "train_iters=2")...))
	require.NoError(t, l.train(t.Context(), "parts", params...))
	assert.Equal(t, weights("whole", "step-00000005", "model_ema.safetensors"), weights("parts", "step-00000005", "model_ema.safetensors"))
	assert.ErrorContains(t, l.train(t.Context(), "plain", append(params, "train_iters=6")...), "ema_decay: ")
}
