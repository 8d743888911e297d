package optim_test

import (
	"math"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSchedule(t *testing.T) {
	base := optim.Schedule{LR: 1, MinLR: 0.1, LRWarmupIters: 10, LRDecayIters: 110, LRWSDDecayIters: 20}
	tests := []struct {
		style optim.Style
		step  int
		want  float64
	}{
		{optim.Cosine, 1, 0.1},
		{optim.Cosine, 10, 1},
		{optim.Cosine, 60, 0.55},
		{optim.Cosine, 35, 0.1 + 0.9*(1+math.Cos(math.Pi/4))/2},
		{optim.Cosine, 110, 0.1},
		{optim.Cosine, 1000, 0.1},
		{optim.Linear, 60, 0.55},
		{optim.Linear, 35, 0.775},
		{optim.Linear, 111, 0.1},
		{optim.Constant, 5, 0.5},
		{optim.Constant, 1000, 1},
		{optim.InverseSquareRoot, 40, 0.5},
		{optim.InverseSquareRoot, 110, math.Sqrt(10. / 110)},
		{optim.InverseSquareRoot, 111, 0.1},
		{optim.WSD, 5, 0.5},
		{optim.WSD, 90, 1},
		{optim.WSD, 100, 0.1 + 0.9*(2*math.Sqrt(0.5)-1)},
		{optim.WSD, 110, 0.1},
	}
	for _, tt := range tests {
		s := base
		s.LRDecayStyle = tt.style
		require.NoError(t, s.Validate())
		assert.InDelta(t, tt.want, s.At(tt.step), 1e-12, "%s at %d", tt.style, tt.step)
	}
	assert.InDelta(t, 0.8, optim.Schedule{LR: 1, LRDecayStyle: optim.Linear, LRDecayIters: 5}.At(1), 1e-12, "no warm-up")
	base.LRDecayStyle, base.LRWarmupInit = optim.WSD, 0.2
	assert.InDelta(t, 0.6, base.At(5), 1e-12, "the warm-up begins at 0.2")
	for style, want := range map[optim.WSDStyle]float64{
		optim.WSDExponential: 2*math.Pow(0.5, 0.25) - 1, optim.WSDLinear: 0.75, optim.WSDCosine: (1 + math.Cos(math.Pi/4)) / 2, optim.WSDMinusSqrt: 0.5,
	} {
		base.LRWSDDecayStyle = style
		require.NoError(t, base.Validate())
		assert.InDelta(t, 0.1+0.9*want, base.At(95), 1e-12, style)
	}
}

func TestWeightDecayOfAStep(t *testing.T) {
	c := config
	assert.InDelta(t, 0.1, c.WeightDecayAt(7, 10), 1e-12)
	c.StartDecay, c.EndDecay, c.DecayStyle = 0.2, 0.6, optim.Linear
	require.NoError(t, c.Validate())
	assert.InDelta(t, 0.3, c.WeightDecayAt(25, 100), 1e-12)
	c.DecayStyle = optim.Cosine
	assert.InDelta(t, 0.2+0.4*(1-math.Cos(math.Pi/4))/2, c.WeightDecayAt(25, 100), 1e-12)
	assert.InDelta(t, 0.6, c.WeightDecayAt(200, 100), 1e-12)
	c.DecayStyle = ""
	assert.ErrorContains(t, c.Validate(), "end_weight_decay: given 0.6, want weight_decay 0.1, or weight_decay_incr_style linear or cosine")
}

func TestScheduleErrors(t *testing.T) {
	good := optim.Schedule{LR: 1, LRDecayStyle: optim.Linear, LRDecayIters: 10}
	tests := map[string]func(*optim.Schedule){
		"lr: given 0":                  func(s *optim.Schedule) { s.LR = 0 },
		"lr: given NaN":                func(s *optim.Schedule) { s.LR = math.NaN() },
		"min_lr: given 2":              func(s *optim.Schedule) { s.MinLR = 2 },
		`lr_decay_style: given "step"`: func(s *optim.Schedule) { s.LRDecayStyle = "step" },
		"lr_warmup_iters: given -1":    func(s *optim.Schedule) { s.LRWarmupIters = -1 },
		"lr_wsd_decay_iters: given 11, want a number from 1 to":      func(s *optim.Schedule) { s.LRDecayStyle, s.LRWSDDecayIters = optim.WSD, 11 },
		`lr_wsd_decay_style: given "step"`:                           func(s *optim.Schedule) { s.LRWSDDecayStyle = "step" },
		"lr_warmup_init: given 2":                                    func(s *optim.Schedule) { s.LRWarmupInit = 2 },
		"lr_decay_iters: given 10, want at least lr_warmup_iters 20": func(s *optim.Schedule) { s.LRWarmupIters = 20 },
	}
	require.NoError(t, good.Validate())
	for want, spoil := range tests {
		s := good
		spoil(&s)
		assert.ErrorContains(t, s.Validate(), want)
	}
}

var config = func() optim.OptimizerConfig {
	c := optim.DefaultConfig()
	c.Beta1, c.Beta2, c.Eps, c.WeightDecay, c.ClipGrad = 0.9, 0.95, 1e-8, 0.1, 1
	return c
}()

func newManager(t *testing.T, prefer opregistry.Kind) *opmanager.Manager {
	t.Helper()
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	require.NoError(t, reg.Register(flagos.Source()))
	policy := oppolicy.Default()
	policy.Prefer = prefer
	m := opmanager.New(reg, policy, opmanager.Settings{})
	t.Cleanup(m.Close)
	return m
}

// newAdam returns an optimizer of one weight with decay and one without.
func newAdam(t *testing.T, cfg optim.OptimizerConfig, prefer opregistry.Kind) (o optim.Optimizer, g *optim.Gradients, values, grads [2][]float32) {
	t.Helper()
	m := newManager(t, prefer)
	values = [2][]float32{{1, -2}, {3}}
	grads = [2][]float32{{0.3, -0.4}, {1.2}}
	var params []optim.Param
	var all []*tensor.Tensor
	for i := range values {
		v, err := tensor.FromSlice(values[i])
		require.NoError(t, err)
		g, err := tensor.FromSlice(grads[i])
		require.NoError(t, err)
		params = append(params, optim.Param{Value: v, Grad: g, Decay: i == 0})
		all = append(all, g)
	}
	backend := cpu.New()
	o, err := optim.New(cfg, params, m, backend)
	require.NoError(t, err)
	g, err = optim.NewGradients(cfg.ClipGrad, all, m, backend)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, o.Close())
		assert.NoError(t, g.Close())
		assert.NoError(t, backend.Close())
	})
	return o, g, values, grads
}

func TestClipAndStep(t *testing.T) {
	for _, kind := range []opregistry.Kind{opregistry.KindReference, opregistry.KindFlagos} {
		o, g, values, grads := newAdam(t, config, kind)
		norm, err := g.Clip()
		require.NoError(t, err)
		assert.InDelta(t, 1.3, norm, 1e-6)
		assert.InDelta(t, 0.3/1.3, grads[0][0], 1e-6)
		require.NoError(t, o.Step(optim.Update{Step: 1, LR: 0.01, WeightDecay: 0.1}))
		// After the first step m/c1 = g and √(v/c2) = |g|: the update is the sign of g.
		assert.InDelta(t, 1-0.01*(1+0.1*1), values[0][0], 1e-6)
		assert.InDelta(t, -2+0.01*(1+0.1*2), values[0][1], 1e-6)
		assert.InDelta(t, 3-0.01, values[1][0], 1e-6, "no weight decay")
	}
}

func TestLRScale(t *testing.T) {
	m := newManager(t, opregistry.KindReference)
	backend := cpu.New()
	var params []optim.Param
	scales := []float64{0, 0.5, 1, 0.5}
	for i, scale := range scales {
		v, err := tensor.FromSlice([]float32{1})
		require.NoError(t, err)
		g, err := tensor.FromSlice([]float32{1})
		require.NoError(t, err)
		params = append(params, optim.Param{Value: v, Grad: g, Decay: i > 1, LRScale: scale})
	}
	a, err := optim.New(config, params, m, backend)
	require.NoError(t, err)
	require.NoError(t, a.Step(optim.Update{Step: 1, LR: 0.01, WeightDecay: 0.1}))
	for i, want := range []float64{1 - 0.01, 1 - 0.005, 1 - 0.01*1.1, 1 - 0.005*1.1} {
		assert.InDelta(t, want, tensor.Data[float32](params[i].Value)[0], 1e-6, "weight %d", i)
	}
	assert.NoError(t, a.Close())
	assert.NoError(t, backend.Close())
}

func TestClipLeavesSmallGradients(t *testing.T) {
	for _, limit := range []float64{0, 2} {
		cfg := config
		cfg.ClipGrad = limit
		_, g, _, grads := newAdam(t, cfg, opregistry.KindFlagos)
		norm, err := g.Clip()
		require.NoError(t, err)
		assert.InDelta(t, 1.3, norm, 1e-6)
		assert.Equal(t, float32(1.2), grads[1][0])
	}
}

func TestClipOfInfinityChangesNothing(t *testing.T) {
	_, g, _, grads := newAdam(t, config, opregistry.KindFlagos)
	grads[0][0] = float32(math.Inf(1))
	norm, err := g.Clip()
	require.NoError(t, err)
	assert.True(t, math.IsInf(norm, 1))
	assert.Equal(t, float32(1.2), grads[1][0])
}

func TestConfigErrors(t *testing.T) {
	err := optim.OptimizerConfig{Beta1: 1, Beta2: -1, Eps: 0, WeightDecay: -1, ClipGrad: math.NaN()}.Validate()
	for _, key := range []string{"adam_beta1", "adam_beta2", "adam_eps", "weight_decay", "clip_grad"} {
		assert.ErrorContains(t, err, key)
	}
	err = optim.OptimizerConfig{Optimizer: "muon", SGDMomentum: 1, MuonConfig: optim.MuonConfig{Momentum: 1, Scale: "none"}}.Validate()
	for _, want := range []string{"sgd_momentum", "muon_momentum", "muon_num_ns_steps", "muon_extra_scale_factor", `muon_scale_mode: given "none", want spectral or`} {
		assert.ErrorContains(t, err, want)
	}
	assert.ErrorContains(t, optim.OptimizerConfig{Optimizer: "lion"}.Validate(), `optimizer: given "lion", want adam or sgd or muon`)
	assert.NoError(t, config.Validate())
}

// The factor is halved at the second overflow and each further one, doubles after a window, and
// stops at its minimum.
func TestLossScale(t *testing.T) {
	cfg := optim.LossScaleConfig{Initial: 16, Min: 2, Window: 3, Hysteresis: 2}
	require.NoError(t, cfg.Validate())
	l := optim.NewLossScale(cfg)
	for i, tt := range []struct {
		finite bool
		want   float64
	}{
		{false, 16}, {false, 8}, {true, 8}, {false, 4}, {true, 4}, {true, 4}, {true, 8}, {false, 8}, {false, 4}, {false, 2}, {false, 2},
	} {
		before := *l
		l.Update(tt.finite)
		assert.InDelta(t, tt.want, l.Scale, 0, "update %d", i+1)
		again := optim.NewLossScale(cfg)
		again.Restore(before)
		again.Update(tt.finite)
		assert.Equal(t, l, again)
	}
	assert.Equal(t, 7, l.Skipped)
	assert.True(t, l.Exhausted())

	cfg.LossScale = 64
	l = optim.NewLossScale(cfg)
	for range 5 {
		l.Update(false)
	}
	assert.InDelta(t, 64., l.Scale, 0)
	assert.False(t, l.Exhausted())
	err := optim.LossScaleConfig{LossScale: -1, Initial: -2, Min: -1}.Validate()
	for _, key := range []string{"loss_scale", "min_loss_scale", "initial_loss_scale", "loss_scale_window", "hysteresis"} {
		assert.ErrorContains(t, err, key+": given ")
	}
}

// Gradients that are scaled are divided, and the norm is that of the true ones.
func TestClipOfScaledGradients(t *testing.T) {
	_, g, _, grads := newAdam(t, config, opregistry.KindFlagos)
	g.Scaled(0.5)
	norm, err := g.Clip()
	require.NoError(t, err)
	assert.InDelta(t, 2.6, norm, 1e-6)
	assert.InDelta(t, 1.2/1.3, grads[1][0], 1e-6)
}

func TestBatchRamp(t *testing.T) {
	r := optim.BatchRamp{16, 8, 300}
	require.NoError(t, r.Validate(32, 8))
	for consumed, want := range map[uint64]int{0: 16, 149: 16, 150: 24, 299: 24, 300: 32, 301: 32, 1 << 40: 32} {
		assert.Equal(t, want, r.At(consumed, 32), consumed)
	}
	assert.Equal(t, 32, optim.BatchRamp(nil).At(0, 32))
	for want, r := range map[string]optim.BatchRamp{
		"rampup_batch_size: given [1 2], want three numbers": {1, 2},
		"rampup_batch_size[0]: given 12, want a multiple of": {12, 8, 10},
		"rampup_batch_size[1]: given 0":                      {16, 0, 10},
		"rampup_batch_size[2]: given 0":                      {16, 8, 0},
	} {
		assert.ErrorContains(t, r.Validate(32, 8), want)
	}
}
