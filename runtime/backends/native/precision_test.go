package native_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/primustest"
)

// In bf16 the losses stay within 1 % of those in f32, with experts and with patches of the loss,
// too.
func TestLossesInBF16(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
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
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	require.NoError(t, l.train(t.Context(), "whole", "bf16=true"))
	require.NoError(t, l.train(t.Context(), "parts", "bf16=true", "train_iters=4", "lr_decay_iters=12"))
	require.NoError(t, l.train(t.Context(), "parts", "bf16=true", "lr_decay_iters=12"))
	assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
}

// In fp16 the first steps overflow and are skipped; then the losses are those of f32 from its
// beginning, and a run that was interrupted goes on bit for bit.
func TestLossesInFP16(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	params := []string{"train_iters=40", "lr_decay_iters=40", "eval_interval=0", "fp16=true", "loss_scale_window=8", "initial_loss_scale=16777216"}
	require.NoError(t, l.train(t.Context(), "fp16", params...))
	records := l.metrics("fp16")
	skipped := 0
	for i, r := range records {
		if r.Skipped {
			skipped++
			assert.Zero(t, r.GradNorm, "step %d", i+1)
		}
	}
	require.Greater(t, skipped, 1)
	require.Less(t, skipped, 15)
	assert.True(t, records[0].Skipped && records[1].Skipped)
	assert.Equal(t, 8388608., records[1].LossScale, "halved at the second overflow")
	first := slices.IndexFunc(records, func(r record) bool { return !r.Skipped })
	assert.Equal(t, records[0].LR, records[first].LR, "the schedule counts updates")

	require.Error(t, l.interruptAt("parts", 20, params...))
	require.NoError(t, l.train(t.Context(), "parts", params...))
	assert.Equal(t, records, l.metrics("parts"))

	require.NoError(t, l.train(t.Context(), "constant", "train_iters=40", "eval_interval=0", "fp16=true", "loss_scale=256"))
	require.NoError(t, l.train(t.Context(), "f32", "train_iters=40", "eval_interval=0"))
	wide := l.metrics("f32")
	for i, r := range l.metrics("constant") {
		assert.False(t, r.Skipped)
		assert.InEpsilon(t, wide[i].Loss, r.Loss, 0.01, "step %d", i+1)
	}

	err := l.train(t.Context(), "hopeless", "fp16=true", "initial_loss_scale=1e30", "min_loss_scale=1e30")
	assert.ErrorContains(t, err, "the gradient norm is")
}

// With every recipe of fp8 the losses stay within 1 % of those in f32, as means of ten steps.
func TestLossesInFP8(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	params := []string{"train_iters=60", "lr_decay_iters=60", "eval_interval=0", "save_interval=0"}
	require.NoError(t, l.train(t.Context(), "f32", params...))
	wide := l.metrics("f32")
	for _, recipe := range []string{"tensorwise", "delayed", "blockwise", "mxfp8"} {
		require.NoError(t, l.train(t.Context(), recipe, append(params, "bf16=true", "fp8=hybrid", "fp8_recipe="+recipe)...))
		narrow := l.metrics(recipe)
		for i := 10; i < len(wide); i++ {
			want, got := 0.0, 0.0
			for k := i - 10; k < i; k++ {
				want, got = want+wide[k].Loss, got+narrow[k].Loss
			}
			require.InEpsilon(t, want, got, 0.01, "%s, step %d", recipe, i)
		}
	}
}

// A run with delayed scaling goes on bit for bit, whatever is evaluated in between: the scales and
// the history are in the checkpoint.
func TestResumeInFP8(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	params := []string{"bf16=true", "fp8=hybrid", "fp8_amax_history_len=3", "fp8_amax_compute_algo=max", "fp8_margin=1", "ema_decay=0.9", "eval_interval=3"}
	require.NoError(t, l.train(t.Context(), "whole", params...))
	require.Error(t, l.interruptAt("parts", 5, params...))
	require.NoError(t, l.train(t.Context(), "parts", params...))
	assert.Equal(t, l.metrics("whole"), l.metrics("parts"))
	require.ErrorContains(t, l.train(t.Context(), "parts", append(params, "fp8_amax_history_len=4")...), "fp8_amax_history_len")
}
