package model_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
)

// withoutLogits trains on the same batch with and without logits, in two passes of which the second
// adds to the gradients, and returns the calls of ops without.
func withoutLogits(t *testing.T, cfg model.Config, weights []float32, expected bool) map[string]uint64 {
	t.Helper()
	mgr := newManager(t, opregistry.KindFlagos)
	passes := func(m trainable) (losses []float64) {
		if weights != nil {
			b := rowsOf(cfg, nil)
			b.Weights = weights
			for i := range 2 * (cfg.SeqLength + 1) {
				b.Tokens = append(b.Tokens, int32(i*i%250))
			}
			require.NoError(t, m.SetBatch(b))
		}
		m.Drop(5, 6)
		for i := range 2 {
			if expected {
				m.ExpectBackward(0.25, i > 0)
			}
			losses = append(losses, m.loss(t))
			require.NoError(t, m.Backward(0.25, i > 0))
		}
		return append(losses, m.loss(t))
	}
	want := newModel(t, cfg, opregistry.KindFlagos, 2)
	cfg.LinearCrossEntropy = true
	got := newModelOn(t, cfg, mgr, 2)
	tolerance := 1e-4
	if cfg.BF16 {
		tolerance = 0.05
	}
	assert.InDeltaSlice(t, passes(want), passes(got), tolerance, "losses")
	for i, p := range want.Params() {
		if p.Grad == nil {
			continue
		}
		largest := 0.
		for _, v := range p.Grad.Float64s() {
			largest = max(largest, v, -v)
		}
		assert.InDeltaSlice(t, p.Grad.Float64s(), got.Params()[i].Grad.Float64s(), tolerance*largest+1e-7, p.Name)
	}
	calls := map[string]uint64{}
	for _, s := range mgr.Stats() {
		if s.Calls > 0 {
			calls[s.Op] += s.Calls
		}
	}
	return calls
}

func TestLossesWithoutLogitsAreThoseWith(t *testing.T) {
	for name, cfg := range architectures() {
		if cfg.FinalSoftcap != 0 {
			continue // keeps logits
		}
		for _, bf16 := range []bool{false, true} {
			for _, expected := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/bf16=%v/expected=%v", name, bf16, expected), func(t *testing.T) {
					cfg := cfg
					cfg.BF16 = bf16
					calls := withoutLogits(t, cfg, nil, expected)
					assert.EqualValues(t, 3, calls["linear_cross_entropy_fwd"])
					later := 2
					if expected {
						later = 0
					}
					assert.EqualValues(t, later, calls["linear_cross_entropy_bwd"])
					assert.Zero(t, calls["cross_entropy_fwd"]+calls["cross_entropy_bwd"])
				})
			}
		}
	}
}

func TestLossesWithoutLogitsOfWeightedTokens(t *testing.T) {
	cfg := tiny(false)
	weights := make([]float32, 2*cfg.SeqLength)
	for i := range weights {
		weights[i] = float32(i % 3)
	}
	withoutLogits(t, cfg, weights, true)
	withoutLogits(t, cfg, make([]float32, 2*cfg.SeqLength), true)
}

// A loss that needs the logits gets them.
func TestOtherLossesKeepLogits(t *testing.T) {
	cfg := tiny(false)
	cfg.LinearCrossEntropy = true
	mgr := newManager(t, opregistry.KindFlagos)
	m := newModelOn(t, cfg, mgr, 1)
	plain := m.loss(t)
	require.NoError(t, m.Backward(1, false))
	want := m.Params()[0].Grad.Float64s()
	ce := model.CrossEntropy()
	m.SetLoss(model.Loss{
		Forward: func(b *model.LossBatch) (float64, error) {
			assert.NotNil(t, b.Logits)
			assert.Same(t, b.Logits, b.DLogits)
			return ce.Forward(b)
		},
		Backward: func(b *model.LossBatch) error { return ce.Backward(b) },
	})
	m.ExpectBackward(1, false)
	assert.InDelta(t, plain, m.loss(t), 1e-5)
	require.NoError(t, m.Backward(1, false))
	assert.InDeltaSlice(t, want, m.Params()[0].Grad.Float64s(), 1e-5)
	m.SetLoss(ce) // what was expected of the other loss does not count
	m.loss(t)
	require.NoError(t, m.Backward(1, false))
	assert.InDeltaSlice(t, want, m.Params()[0].Grad.Float64s(), 1e-5)
}

func TestAnotherBackwardThanExpected(t *testing.T) {
	cfg := tiny(false)
	cfg.LinearCrossEntropy = true
	m := newModel(t, cfg, opregistry.KindFlagos, 1)
	m.loss(t)
	require.NoError(t, m.Backward(1, false))
	want := m.Params()[0].Grad.Float64s()

	m.ExpectBackward(7, false)
	m.loss(t)
	require.NoError(t, m.Backward(1, false), "what was written is overwritten")
	assert.InDeltaSlice(t, want, m.Params()[0].Grad.Float64s(), 1e-5)

	m.ExpectBackward(7, true)
	m.loss(t)
	assert.ErrorContains(t, m.Backward(1, true), "with the scale 7 that was expected")
}

// Logits take no memory that nothing needs.
func TestMemoryWithoutLogits(t *testing.T) {
	cfg := tiny(false)
	cfg.VocabSize = 4096
	used := func(cfg model.Config) int64 {
		backend := cpu.New()
		m, err := model.New(cfg, backend)
		require.NoError(t, err)
		p, err := m.NewPass(newManager(t, opregistry.KindFlagos), 2, cfg.SeqLength, true)
		require.NoError(t, err)
		bytes := backend.Stats().Bytes
		require.NoError(t, p.Close())
		require.NoError(t, m.Close())
		return int64(bytes)
	}
	with := used(cfg)
	cfg.LinearCrossEntropy = true
	assert.GreaterOrEqual(t, with-used(cfg), int64(2*cfg.SeqLength*cfg.VocabSize*4))
}
