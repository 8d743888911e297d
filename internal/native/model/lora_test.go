package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

func adapted(c model.Config, dropout float64, targets ...string) model.Config {
	c.LoRA = model.LoRA{Rank: 3, Alpha: 6, Dropout: dropout, Targets: targets}
	return c
}

func adaptedArchitectures() map[string]model.Config {
	dropout := adapted(mixed(), 0.3)
	dropout.AttentionDropout = 0 // whose gradient only the reference has with these masks
	return map[string]model.Config{
		"llama": adapted(tiny(false), 0), "some projections": adapted(tiny(true), 0, "k_proj", "gate_proj", "down_proj"),
		"gpt2": adapted(gpt2(), 0), "dropout": dropout, "gelu": adapted(plain(), 0.2),
	}
}

// stir gives the adapters numbers, since their B are zero at first.
func stir(m *model.Model) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, p := range m.Trained() {
		for i := range tensor.Data[float32](p.Value) {
			tensor.Data[float32](p.Value)[i] += float32(rng.NormFloat64() * 0.1)
		}
	}
}

func TestAdapterGradients(t *testing.T) {
	for _, kind := range []opregistry.Kind{opregistry.KindReference, opregistry.KindFlagos} {
		for name, cfg := range adaptedArchitectures() {
			t.Run(fmt.Sprintf("%v %s", kind, name), func(t *testing.T) {
				m := newModel(t, cfg, kind, 2)
				stir(m.Model)
				m.Drop(5, 6)
				m.checkGradients(t, 2*cfg.SeqLength)
				for _, p := range m.Params() {
					assert.Nil(t, p.Grad, "%s is not trained", p.Name)
				}
			})
		}
	}
}

// Adapters change nothing at first, and then what the weights with their products change.
func TestAdaptersAreMerged(t *testing.T) {
	for name, cfg := range adaptedArchitectures() {
		t.Run(name, func(t *testing.T) {
			without := cfg
			without.LoRA = model.LoRA{}
			mgr := newManager(t, opregistry.KindFlagos)
			plain, m := newModelOn(t, without, mgr, 2), newModelOn(t, cfg, mgr, 2)
			first := plain.loss(t)
			assert.Equal(t, first, m.loss(t))
			stir(m.Model)
			merged, release, err := m.Merged(mgr)
			require.NoError(t, err)
			defer func() { assert.NoError(t, release()) }()
			into := plain.Tensors()
			require.Len(t, merged, len(into))
			for i, n := range merged {
				require.Equal(t, into[i].Name, n.Name)
				copy(tensor.Data[float32](into[i].Tensor), tensor.Data[float32](n.Tensor))
			}
			want, got := plain.loss(t), m.loss(t)
			assert.InEpsilon(t, want, got, 1e-5)
			assert.Greater(t, math.Abs(want-first), 1e-3)

			forward, err := m.NewPass(mgr, 2, cfg.SeqLength, false)
			require.NoError(t, err)
			defer func() { assert.NoError(t, forward.Close()) }()
			require.NoError(t, forward.SetBatch(rowsOf(cfg, make([]int32, 2*(cfg.SeqLength+1)))))
			require.NoError(t, m.SetBatch(rowsOf(cfg, make([]int32, 2*(cfg.SeqLength+1)))))
			loss, err := forward.Loss()
			require.NoError(t, err)
			assert.Equal(t, m.loss(t), loss, "a forward-only pass")
		})
	}
}

func TestAdapterNames(t *testing.T) {
	m := newModel(t, adapted(tiny(false), 0, "q_proj", "down_proj"), opregistry.KindReference, 1)
	shapes := map[string]tensor.Shape{}
	size := 0
	for _, n := range m.Adapters() {
		shapes[n.Name] = n.Tensor.Shape()
		size += n.Tensor.NumElements()
	}
	assert.Len(t, shapes, 8)
	assert.Equal(t, tensor.Shape{3, 16}, shapes["model.layers.1.self_attn.q_proj.lora_A.weight"])
	assert.Equal(t, tensor.Shape{16, 3}, shapes["model.layers.1.self_attn.q_proj.lora_B.weight"])
	assert.Equal(t, tensor.Shape{3, 24}, shapes["model.layers.0.mlp.down_proj.lora_A.weight"])
	for name, cfg := range adaptedArchitectures() {
		m, err := model.New(cfg, cpu.New())
		require.NoError(t, err)
		trained := 0
		for _, p := range m.Trained() {
			trained += p.Value.NumElements()
		}
		assert.Equal(t, cfg.TrainedParameters(), float64(trained), name)
		flat := m.Flats()[0]
		assert.Len(t, flat.Params, len(m.Trained()), name)
		assert.Equal(t, flat.Used+model.FlatSlack, flat.Grads.NumElements(), "only adapters have gradients")
		require.NoError(t, m.Close())
	}
}

func TestAdapterErrors(t *testing.T) {
	for want, edit := range map[string]func(*model.Config){
		"lora_rank: given -1":                func(c *model.Config) { c.LoRA.Rank = -1 },
		"lora_alpha: given -1":               func(c *model.Config) { c.LoRA.Alpha = -1 },
		"lora_dropout: given 1,":             func(c *model.Config) { c.LoRA.Dropout = 1 },
		`lora_target_modules: given "qproj"`: func(c *model.Config) { c.LoRA.Targets = []string{"qproj"} },
		"experts have no adapters":           func(c *model.Config) { *c = adapted(mixtral(), 0) },
	} {
		c := adapted(tiny(false), 0)
		edit(&c)
		assert.ErrorContains(t, c.Validate(), want)
	}
}
