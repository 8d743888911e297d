package native_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every optimizer lowers the loss and goes on bit for bit; none goes on with the state of another.
func TestOptimizersTrainAndResume(t *testing.T) {
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
				assert.ErrorContains(t, err, "optimizer: got adam, and it was trained with sgd")
			}
		})
	}
}
