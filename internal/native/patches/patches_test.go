package patches_test

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/patches"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newContext returns a context with parameters and with the slots of some points.
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
	s, err := patch.NewSet(patches.All()...)
	require.NoError(t, err)
	require.NoError(t, s.Check([]string{native.Framework}))
	report, err := s.Run(c, patch.Options{StopOnError: true})
	require.NoError(t, err)
	require.Empty(t, report.NoEffect)
	return report
}

// TestZLossGradient compares loss and gradient with the formula, by central differences.
func TestZLossGradient(t *testing.T) {
	const coeff, sequences = 0.05, 2
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
	require.NoError(t, m.Init(7))
	p, err := m.NewPass(mgr, sequences, cfg.SeqLength, true)
	require.NoError(t, err)
	b := model.NewBatch(sequences, cfg.SeqLength)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range b.Tokens {
		b.Tokens[i] = rng.Int32N(256)
	}
	b.Weights = []float32{1, 0, 2, 0.5, 1, 1, 0, 0, 1, 1, 3, 1}
	require.NoError(t, p.SetBatch(b))
	loss := func() float64 {
		l, err := p.Loss()
		require.NoError(t, err)
		return l
	}
	plain := loss()
	p.SetLoss(slot.Func())
	square := (loss() - plain) / coeff
	assert.InDelta(t, math.Pow(math.Log(256), 2), square, 12, "the mean of z² is near that of a uniform model")
	require.NoError(t, p.Backward(1/float32(b.Weight()), false))
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
