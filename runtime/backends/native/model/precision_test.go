package model_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native/model"
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
