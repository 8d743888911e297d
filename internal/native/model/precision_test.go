package model_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// inPrecisions returns an architecture in each type of activations of 16 bits.
func inPrecisions(cfg model.Config) map[string]model.Config {
	brain, half := cfg, cfg
	brain.BF16, half.FP16 = true, true
	return map[string]model.Config{"bf16": brain, "fp16": half}
}

// Losses and gradients in 16 bits are those of f32 but for rounding, whichever impls run.
func TestPrecisionsAgree(t *testing.T) {
	for name, cfg := range architectures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wide := newModel(t, cfg, opregistry.KindReference, 2)
			want := wide.loss(t)
			require.NoError(t, wide.Backward(1, false))
			for precision, cfg := range inPrecisions(cfg) {
				for _, kind := range []opregistry.Kind{opregistry.KindFlagos, opregistry.KindReference} {
					m := newModel(t, cfg, kind, 2)
					assert.InEpsilon(t, want, m.loss(t), 0.01, "%s %v", precision, kind)
					require.NoError(t, m.Backward(1, false))
					for i, p := range m.Params() {
						assert.Equal(t, tensor.F32, p.Grad.DType(), p.Name)
						assert.Less(t, distance(wide.Params()[i].Grad, p.Grad), 0.08, "%s %v: gradient of %s", precision, kind, p.Name)
					}
				}
			}
		})
	}
}

// distance is ‖got − want‖ / ‖want‖.
func distance(want, got *tensor.Tensor) float64 {
	sum, norm := 0.0, 0.0
	other := got.Float64s()
	for i, w := range want.Float64s() {
		sum += (other[i] - w) * (other[i] - w)
		norm += w * w
	}
	return math.Sqrt(sum / max(norm, 1e-12))
}

// The copies of weights follow the weights once they are said to have changed, and not before.
func TestWeightsChanged(t *testing.T) {
	cfg := tiny(false)
	cfg.BF16 = true
	m := newModel(t, cfg, opregistry.KindFlagos, 2)
	before := m.loss(t)
	embedding := tensor.Data[float32](m.Params()[0].Value)
	for i := range embedding {
		embedding[i] *= 2
	}
	assert.Equal(t, before, m.loss(t))
	m.WeightsChanged()
	assert.NotEqual(t, before, m.loss(t))
}

// An op at fault is found in 16 bits, too.
func TestNonFiniteIsFoundInSixteenBits(t *testing.T) {
	cfg := tiny(false)
	cfg.FP16 = true
	m := newModel(t, cfg, opregistry.KindFlagos, 2)
	tensor.Data[float32](m.Params()[0].Value)[0] = 1e6
	m.CheckFinite(true)
	_, err := m.Loss()
	var found *model.NonFiniteError
	require.ErrorAs(t, err, &found)
	assert.Equal(t, "multi_tensor_scale", found.Op)
}

// With fp8 the operands of products are rounded to it: losses stay near, and the gradient of a
// matrix is the product of what was rounded, whatever is computed again.
func TestFP8(t *testing.T) {
	for name, cfg := range map[string]model.Config{"llama": tiny(true), "gpt2": gpt2(), "dropout": mixed()} {
		for _, recipe := range []fp8.Recipe{fp8.Delayed, fp8.Tensorwise, fp8.Blockwise, fp8.MXFP8} {
			for _, format := range []fp8.Format{fp8.E4M3, fp8.Hybrid} {
				t.Run(name+" "+string(recipe)+" "+string(format), func(t *testing.T) {
					t.Parallel()
					cfg := cfg
					cfg.BF16 = true
					narrow := newModel(t, cfg, opregistry.KindFlagos, 2)
					want := narrow.loss(t)
					require.NoError(t, narrow.Backward(1, false))
					cfg.Format, cfg.Recipe = format, recipe
					m := newModel(t, cfg, opregistry.KindFlagos, 2)
					m.calibrate(t)
					got := m.loss(t)
					assert.InEpsilon(t, want, got, 0.02)
					assert.NotEqual(t, want, got)
					require.NoError(t, m.Backward(1, false))
					for i, p := range m.Params() {
						assert.Less(t, distance(narrow.Params()[i].Grad, p.Grad), 0.45, "gradient of %s", p.Name)
					}

					all := gradients(t, cfg)
					cfg.Granularity = architecture.Full
					assert.Equal(t, all, gradients(t, cfg))
					cfg.Granularity, cfg.FirstLast = "", true // no layer is left
					m = newModel(t, cfg, opregistry.KindFlagos, 2)
					assert.Equal(t, want, m.loss(t))
				})
			}
		}
	}
}

// calibrate computes the delayed scales of a first step.
func (m trainable) calibrate(t *testing.T) {
	t.Helper()
	m.RecordScales(true)
	m.loss(t)
	require.NoError(t, m.Backward(1, false))
	m.RecordScales(false)
	require.NoError(t, m.UpdateScales(func([]float64) error { return nil }))
}

func TestFP8Errors(t *testing.T) {
	for want, edit := range map[string]func(*model.Config){
		`fp8: given "e5m2", want e4m3 or hybrid`:                             func(c *model.Config) { c.Format = "e5m2" },
		"fp8: given hybrid, want null without bf16 or fp16":                  func(c *model.Config) { c.BF16 = false },
		`fp8_recipe: given "custom", want delayed or tensorwise or`:          func(c *model.Config) { c.Recipe = "custom" },
		`fp8_amax_compute_algo: given "mean", want most_recent or max`:       func(c *model.Config) { c.Algo = "mean" },
		"fp8_amax_history_len: given -1, want a number >= 1":                 func(c *model.Config) { c.HistoryLen = -1 },
		"fp8_margin: given 300, want a number from -64 to 64":                func(c *model.Config) { c.Margin = 300 },
		"fp8: given hybrid, want null with num_experts":                      func(c *model.Config) { c.Experts = mixtral().Experts },
		"num_layers_at_start_in_bf16 and num_layers_at_end_in_bf16: given -": func(c *model.Config) { c.Start = -1 },
	} {
		cfg := tiny(true)
		cfg.BF16, cfg.Format, cfg.Recipe = true, fp8.Hybrid, fp8.Tensorwise
		require.NoError(t, cfg.Validate())
		edit(&cfg)
		assert.ErrorContains(t, cfg.Validate(), want)
	}
}
