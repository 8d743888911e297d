package native_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run learns the same with logits and without.
func TestTrainingWithoutLogits(t *testing.T) {
	for name, overrides := range map[string][]string{
		"f32":        nil,
		"untied":     {"untie_embeddings_and_output_weights=true"},
		"bf16":       {"bf16=true"},
		"fp16":       {"fp16=true", "initial_loss_scale=256"},
		"recomputed": {"recompute_granularity=full"},
		"adapters":   {"lora_rank=2"},
		"z-loss":     {"z_loss_coeff=0.01"}, // keeps logits in training
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			train := func(impl string) []record {
				require.NoError(t, l.train(t.Context(), impl, append([]string{"train_iters=3", "eval_interval=3", "cross_entropy_fusion_impl=" + impl}, overrides...)...))
				return l.metrics(impl)
			}
			want, got := train("native"), train("linear")
			tolerance := 1e-5
			if name == "bf16" || name == "fp16" {
				tolerance = 2e-2 // logits of 16 bits
			}
			for i := range want {
				assert.InEpsilon(t, want[i].Loss, got[i].Loss, tolerance, "step %d", i+1)
				assert.InEpsilon(t, want[i].GradNorm, got[i].GradNorm, 10*tolerance, "step %d", i+1)
			}
			assert.InEpsilon(t, *want[2].ValidLoss, *got[2].ValidLoss, tolerance)
			calls := map[string]uint64{}
			for _, s := range l.manager.Stats() {
				calls[s.Op] += s.Calls
			}
			assert.Positive(t, calls["linear_cross_entropy_fwd"])
			assert.Zero(t, calls["linear_cross_entropy_bwd"], "the gradients come with the losses")
			assert.Equal(t, name == "z-loss", calls["cross_entropy_fwd"] > 0)
		})
	}
}

// A form of the loss that was asked for and cannot be had is said.
func TestLogitsThatAreKeptAllTheSame(t *testing.T) {
	for _, impl := range []string{"linear", "native"} {
		l := newLab(t)
		require.NoError(t, l.train(t.Context(), impl, "train_iters=1", "final_logit_softcapping=30", "cross_entropy_fusion_impl="+impl))
		const text = "cross_entropy_fusion_impl=linear has no effect: logits are kept because of final_logit_softcapping 30"
		assert.Equal(t, impl == "linear", strings.Contains(l.log.String(), text), l.log.String())
	}
}

func TestEntropyFusionOfAnotherName(t *testing.T) {
	l := newLab(t)
	err := l.train(t.Context(), "run", "cross_entropy_fusion_impl=liger")
	assert.ErrorContains(t, err, `cross_entropy_fusion_impl: given "liger", want one of linear, native, te`)
}
