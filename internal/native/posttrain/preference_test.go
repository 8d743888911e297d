package posttrain_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// The loss begins at log 2, its gradients are those of central differences, and a step along them
// makes chosen answers more likely than rejected ones.
func TestPreference(t *testing.T) {
	t.Parallel()
	cfg := model.Config{
		NumLayers: 1, HiddenSize: 16, FFNHiddenSize: 24, NumAttentionHeads: 2, SeqLength: 16, VocabSize: 256, RotaryBase: 1e4, NormEpsilon: 1e-5, InitMethodStd: 0.2,
	}
	reg := opregistry.NewRegistry()
	require.NoError(t, reg.Register(reference.Source()))
	mgr := opmanager.New(reg, oppolicy.Default(), opmanager.Settings{})
	t.Cleanup(mgr.Close)
	backend := cpu.New()
	t.Cleanup(func() { assert.NoError(t, backend.Close()) })
	newPass := func(train bool) (*model.Model, *model.Pass) {
		m, err := model.New(cfg, backend)
		require.NoError(t, err)
		require.NoError(t, m.Init(3))
		p, err := m.NewPass(mgr, 4, cfg.SeqLength, train)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, p.Close()); assert.NoError(t, m.Close()) })
		return m, p
	}
	m, pass := newPass(true)
	_, frozen := newPass(false)
	s, err := read(t, posttrain.Tuning{}, true, `{"prompt": "a", "chosen": "yes", "rejected": "no"}`, `{"prompt": "b", "chosen": "on", "rejected": "off it"}`)
	require.NoError(t, err)
	set, err := posttrain.NewSet(s, posttrain.SetConfig{SeqLength: cfg.SeqLength})
	require.NoError(t, err)
	b := model.NewBatch(4, cfg.SeqLength)
	require.NoError(t, posttrain.NewSampler(set).Batch(&b))
	p := posttrain.Preference{Beta: 2, Reference: frozen}
	pass.SetLoss(p.Loss())
	require.NoError(t, pass.SetBatch(b))
	loss := func() float64 {
		v, err := pass.Loss()
		require.NoError(t, err)
		return v
	}
	assert.InDelta(t, math.Ln2, loss(), 1e-6)

	params := m.Params()
	for i := range tensor.Data[float32](params[3].Value) { // away from the reference
		tensor.Data[float32](params[3].Value)[i] += 0.02 * float32(math.Sin(float64(i)))
	}
	before := loss()
	require.NoError(t, pass.Backward(1/float32(b.Weight()), false))
	grads := map[string][]float32{}
	for _, w := range params {
		grads[w.Name] = append([]float32{}, tensor.Data[float32](w.Grad)...)
	}
	for _, w := range params {
		value, largest := tensor.Data[float32](w.Value), 0.0
		for _, g := range grads[w.Name] {
			largest = max(largest, math.Abs(float64(g)))
		}
		for i := 0; i < len(value); i += 1 + len(value)/4 {
			old := value[i]
			const step = 5e-3
			value[i] = old + step
			up := loss()
			value[i] = old - step
			down := loss()
			value[i] = old
			assert.InDelta(t, (up-down)/(2*step), float64(grads[w.Name][i]), 0.03*largest+2e-4, "%s[%d]", w.Name, i)
		}
	}
	for _, w := range params {
		for i, g := range grads[w.Name] {
			tensor.Data[float32](w.Value)[i] -= 0.02 * g
		}
	}
	assert.Less(t, loss(), before)
}
