package native_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In bf16 the losses stay within 1 % of those in f32, with experts and with patches of the loss,
// too.
func TestLossesInBF16(t *testing.T) {
	for name, params := range map[string][]string{
		"llama":   nil,
		"experts": {"num_experts=4", "moe_aux_loss_coeff=0.1"},
		"gpt2":    {"normalization=LayerNorm", "position_embedding_type=learned_absolute", "activation_func=gelu", "add_bias_linear=true", "num_query_groups=4"},
		"z_loss":  {"z_loss_coeff=0.001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			params := append([]string{"train_iters=40", "eval_interval=40", "save_interval=0"}, params...)
			require.NoError(t, l.train(t.Context(), "f32", params...))
			require.NoError(t, l.train(t.Context(), "bf16", append(params, "bf16=true")...))
			wide, narrow := l.metrics("f32"), l.metrics("bf16")
			require.Len(t, narrow, len(wide))
			for i := range wide {
				assert.InEpsilon(t, wide[i].Loss, narrow[i].Loss, 0.01, "step %d", i+1)
			}
			assert.NotEqual(t, wide, narrow)
		})
	}
}

// A run in bf16 goes on bit for bit, since checkpoints hold the weights in f32.
func TestResumeInBF16(t *testing.T) {
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "whole", "bf16=true"))
	require.NoError(t, l.train(t.Context(), "parts", "bf16=true", "train_iters=4", "lr_decay_iters=12"))
	require.NoError(t, l.train(t.Context(), "parts", "bf16=true", "lr_decay_iters=12"))
	assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
}
