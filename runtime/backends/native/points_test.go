package native_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatchesInTraining(t *testing.T) {
	primustest.Sequential(t, "it trains again and again")
	l := newLab(t)
	const steps = "train_iters=4"
	require.NoError(t, l.train(t.Context(), "plain", steps))
	plain := l.metrics("plain")

	t.Run("old names", func(t *testing.T) {
		require.NoError(t, l.train(t.Context(), "new", steps, "micro_batch_size=4", "norm_epsilon=1e-2"))
		require.NoError(t, l.train(t.Context(), "old", steps, "batch_size=4", "layernorm_epsilon=1e-2"))
		assert.Equal(t, l.metrics("new"), l.metrics("old"))
		assert.NotContains(t, l.log.String(), "no such parameter")
		assert.Contains(t, l.log.String(), "argument micro_batch_size: patch native.args.old_names keeps 4")
		require.NoError(t, l.train(t.Context(), "refused", steps, "batch_size=4", "accept_old_names=false"))
		assert.Equal(t, plain, l.metrics("refused"))
	})
	t.Run("a wrong value by an old name says who set it", func(t *testing.T) {
		err := l.train(t.Context(), "wrong", steps, "batch_size=0")
		require.ErrorContains(t, err, "micro_batch_size: given 0")
		assert.ErrorContains(t, err, `override 17 "batch_size=0": modules.pre_trainer.micro_batch_size`)
	})
	t.Run("gradient noise does not change training", func(t *testing.T) {
		require.NoError(t, l.train(t.Context(), "noise", steps, "log_gradient_noise=true"))
		assert.Equal(t, plain, l.metrics("noise"))
		assert.Equal(t, 4, strings.Count(l.log.String(), ": gradient noise scale"))
		err := l.train(t.Context(), "noise2", steps, "log_gradient_noise=true", "micro_batch_size=4")
		require.ErrorContains(t, err, `patch "native.gradient_noise": condition: `)
		assert.ErrorContains(t, err, "want a larger global batch")
	})
	t.Run("z-loss is in the loss and not in the validation", func(t *testing.T) {
		require.NoError(t, l.train(t.Context(), "z", steps, "z_loss_coeff=1e-3", "lr=1e-9", "min_lr=0"))
		require.NoError(t, l.train(t.Context(), "noz", steps, "lr=1e-9", "min_lr=0"))
		for i, r := range l.metrics("z") {
			assert.InDelta(t, 1e-3*math.Pow(math.Log(256), 2), r.Loss-l.metrics("noz")[i].Loss, 2e-3)
		}
		assert.InDelta(t, *l.metrics("noz")[3].ValidLoss, *l.metrics("z")[3].ValidLoss, 1e-5)
		assert.ErrorContains(t, l.train(t.Context(), "badz", steps, "z_loss_coeff=-1"), "z_loss_coeff: given -1, want a number >= 0")
	})
	t.Run("layer-wise decay slows training", func(t *testing.T) {
		require.NoError(t, l.train(t.Context(), "slow", steps, "lr_layer_decay=0.01"))
		assert.Equal(t, plain[0].Loss, l.metrics("slow")[0].Loss)
		assert.Greater(t, l.metrics("slow")[3].Loss, plain[3].Loss)
	})
	t.Run("deterministic mode sets the environment of the run", func(t *testing.T) {
		seen := ""
		l.patches = []patch.Patch{{ID: "look", Phase: patch.AfterTrain, Apply: func(c *patch.Context) error {
			seen = c.Environ.Get("MKL_CBWR", "")
			return nil
		}}}
		defer func() { l.patches = nil }()
		require.NoError(t, l.train(t.Context(), "det", steps, "deterministic_mode=true"))
		assert.Equal(t, "COMPATIBLE", seen)
		assert.Equal(t, plain, l.metrics("det"))
	})
}

// Every extension point can be wrapped, and is called as often as it says.
func TestExtensionPoints(t *testing.T) {
	l := newLab(t)
	calls := map[string]int{}
	wrapped := func(c *patch.Context) error {
		count := func(name string) { calls[strings.TrimPrefix(name, "native.")]++ }
		for _, err := range []error{
			patch.Wrap(c, native.LossPoint, func(next model.Loss) model.Loss {
				return model.Loss{
					Forward:  func(b *model.LossBatch) (float64, error) { count("loss"); return next.Forward(b) },
					Backward: next.Backward,
				}
			}),
			patch.Wrap(c, native.SchedulePoint, func(next func(int) float64) func(int) float64 {
				return func(step int) float64 { count("schedule"); return next(step) }
			}),
			patch.Wrap(c, native.OptimizerStepPoint, func(next func(int, float64) error) func(int, float64) error {
				return func(step int, lr float64) error { count("optimizer_step"); return next(step, lr) }
			}),
			patch.Wrap(c, native.DataOrderPoint, func(next func(*model.Batch) error) func(*model.Batch) error {
				return func(batch *model.Batch) error { count("data_order"); return next(batch) }
			}),
			patch.Wrap(c, native.ForwardStepPoint, func(next func(model.Batch) (float64, error)) func(model.Batch) (float64, error) {
				return func(micro model.Batch) (float64, error) { count("forward_step"); return next(micro) }
			}),
			patch.Wrap(c, native.BackwardStepPoint, func(next func(native.BackwardStep) error) func(native.BackwardStep) error {
				return func(b native.BackwardStep) error { count("backward_step"); return next(b) }
			}),
			patch.Wrap(c, native.LRScalePoint, func(next func(*model.Param) float64) func(*model.Param) float64 {
				return func(p *model.Param) float64 { count("lr_scale"); return next(p) }
			}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}
	l.patches = []patch.Patch{{ID: "count", Phase: patch.Setup, Apply: wrapped}}
	require.NoError(t, l.train(t.Context(), "run", "train_iters=3", "eval_interval=1"))
	assert.Equal(t, map[string]int{
		"loss": 6, "schedule": 3, "optimizer_step": 3, "data_order": 3, "forward_step": 6, "backward_step": 6,
		"lr_scale": 2*6 + 3,
	}, calls)
	assert.Contains(t, l.log.String(), "[Patch] extension point native.schedule: count wraps the original")

	l.patches = []patch.Patch{{ID: "constant", Phase: patch.BeforeTrain, Apply: func(c *patch.Context) error {
		return patch.Replace(c, native.SchedulePoint, func(int) float64 { return 0 })
	}}}
	require.NoError(t, l.train(t.Context(), "still", "train_iters=3", "weight_decay=0"))
	losses := fmt.Sprint(l.metrics("still"))
	l.patches = nil
	require.NoError(t, l.train(t.Context(), "moving", "train_iters=3", "weight_decay=0"))
	assert.NotEqual(t, losses, fmt.Sprint(l.metrics("moving")))
}
