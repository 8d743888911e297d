package native_test

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// context returns a context with parameters and with the slots of some points.
func newContext(t *testing.T, phase patch.Phase, params map[string]any, points *patch.Points) *patch.Context {
	t.Helper()
	v, err := document.FromGo(params)
	require.NoError(t, err)
	m, _ := v.Map()
	return &patch.Context{Backend: native.Framework, Phase: phase, Params: m, Points: points, Args: backend.NewArgs(m), Log: slog.New(slog.DiscardHandler)}
}

// apply applies the patches of the backend that a context switches on.
func apply(t *testing.T, c *patch.Context) patch.Report {
	t.Helper()
	s, err := patch.NewSet(native.Patches()...)
	require.NoError(t, err)
	require.NoError(t, s.Check([]string{native.Framework}))
	report, err := s.Run(c, patch.Options{StopOnError: true})
	require.NoError(t, err)
	require.Empty(t, report.NoEffect)
	return report
}

// TestZLossGradient compares loss and gradient with the formula, by central differences.
func TestZLossGradient(t *testing.T) {
	const coeff, batch = 0.05, 2
	ps := &patch.Points{}
	slot := patch.Declare(ps, native.LossPoint, model.CrossEntropy())
	report := apply(t, newContext(t, patch.Setup, map[string]any{"z_loss_coeff": coeff}, ps))
	require.Equal(t, []string{"native.z_loss"}, report.Applied)

	cfg := model.Config{
		NumLayers: 1, HiddenSize: 16, FFNHiddenSize: 24, NumAttentionHeads: 4, SeqLength: 6, VocabSize: 256,
		RotaryBase: 10000, NormEpsilon: 1e-5, InitMethodStd: 0.3, Untie: true,
	}
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	defer mgr.Close()
	device := cpu.New()
	m, err := model.New(cfg, device)
	require.NoError(t, err)
	m.Init(7)
	p, err := m.NewPass(mgr, batch, cfg.SeqLength, true)
	require.NoError(t, err)
	rows := make([]int32, batch*(cfg.SeqLength+1))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		rows[i] = rng.Int32N(256)
	}
	require.NoError(t, p.SetBatch(rows))
	loss := func() float64 {
		l, err := p.Loss()
		require.NoError(t, err)
		return l
	}
	plain := loss()
	p.SetLoss(slot.Func())
	square := (loss() - plain) / coeff
	assert.InDelta(t, math.Pow(math.Log(256), 2), square, 12, "the mean of z² is near that of a uniform model")
	require.NoError(t, p.Backward(1/float32(batch*cfg.SeqLength), false))
	for _, w := range m.Params() {
		value, grad := tensor.Data[float32](w.Value), tensor.Data[float32](w.Grad)
		largest := 0.0
		for _, g := range grad {
			largest = max(largest, math.Abs(float64(g)))
		}
		for range 6 {
			i := rng.IntN(len(value))
			old := value[i]
			const step = 1e-2
			value[i] = old + step
			up := loss()
			value[i] = old - step
			down := loss()
			value[i] = old
			assert.InDelta(t, (up-down)/(2*step), float64(grad[i]), 0.02*largest+5e-5, "%s[%d]", w.Name, i)
		}
	}
	require.NoError(t, p.Close())
	require.NoError(t, m.Close())
	require.NoError(t, device.Close())
}

func TestLayerwiseLRDecay(t *testing.T) {
	ps := &patch.Points{}
	slot := patch.Declare(ps, native.LRScalePoint, func(*model.Param) float64 { return 1 })
	apply(t, newContext(t, patch.Setup, map[string]any{"lr_layer_decay": 0.5, "num_layers": 2}, ps))
	for depth, want := range []float64{0.125, 0.25, 0.5, 1} {
		assert.InDelta(t, want, slot.Func()(&model.Param{Depth: depth}), 1e-12, "depth %d", depth)
	}
}

// The noise scale of gradients that are a known vector with known noise.
func TestGradientNoise(t *testing.T) {
	ps := &patch.Points{}
	slot := patch.Declare(ps, native.BackwardStepPoint, func(native.BackwardStep) error { return nil })
	var log strings.Builder
	c := newContext(t, patch.BeforeTrain, map[string]any{
		"log_gradient_noise": true, "micro_batch_size": 2, "global_batch_size": 8, "log_interval": 2,
	}, ps)
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	apply(t, c)
	const trueSquare, variance, small, big = 3.0, 24.0, 2.0, 8.0
	for step := 1; step <= 4; step++ {
		for micro := range 4 {
			calls := 0
			b := native.BackwardStep{Step: step, Micro: micro, Micros: 4, GradNorm: func() (float64, error) {
				calls++
				if micro == 0 { // a fourth of the gradient of the micro batch
					return math.Sqrt(trueSquare+variance/small) / 4, nil
				}
				return math.Sqrt(trueSquare + variance/big), nil
			}}
			require.NoError(t, slot.Func()(b))
			measured := step%2 == 0 && (micro == 0 || micro == 3)
			assert.Equal(t, measured, calls == 1, "step %d micro %d", step, micro)
		}
	}
	assert.Equal(t, 2, strings.Count(log.String(), "gradient noise scale 8.0 sequences"), log.String())
}

func TestPatchesInTraining(t *testing.T) {
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
		require.ErrorContains(t, err, "micro_batch_size: got 0")
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
		assert.ErrorContains(t, l.train(t.Context(), "badz", steps, "z_loss_coeff=-1"), "z_loss_coeff: got -1, want a number >= 0")
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
			patch.Wrap(c, native.DataOrderPoint, func(next func([]int32) error) func([]int32) error {
				return func(batch []int32) error { count("data_order"); return next(batch) }
			}),
			patch.Wrap(c, native.ForwardStepPoint, func(next func([]int32) (float64, error)) func([]int32) (float64, error) {
				return func(rows []int32) (float64, error) { count("forward_step"); return next(rows) }
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
