package model_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
)

// recomputes are the ways to compute activations again, in a model of five layers.
func recomputes() map[string]architecture.Plan {
	full, selective := architecture.Full, architecture.Selective
	return map[string]architecture.Plan{
		"full":        {Granularity: full},
		"uniform 2":   {Granularity: full, Method: architecture.Uniform, Layers: 2},
		"uniform 5":   {Granularity: full, Method: architecture.Uniform, Layers: 5},
		"block 1":     {Granularity: full, Method: architecture.Block, Layers: 1},
		"block 3":     {Granularity: full, Method: architecture.Block, Layers: 3},
		"block 5":     {Granularity: full, Method: architecture.Block, Layers: 5},
		"core_attn":   {Granularity: selective},
		"layernorm":   {Granularity: selective, Modules: []string{"layernorm"}},
		"mlp and moe": {Granularity: selective, Modules: []string{"mlp", "moe"}},
		"all modules": {Activations: true, Modules: []string{"core_attn", "layernorm", "mlp", "moe"}},
	}
}

// Gradients are the same bit for bit, with dropout, experts and several micro-batches, too, and
// each way takes less memory, as estimated.
func TestRecomputeChangesNothing(t *testing.T) {
	all := adaptedArchitectures()
	maps.Copy(all, architectures())
	for name, cfg := range all {
		for _, bf16 := range []bool{false, true} {
			cfg := cfg
			cfg.NumLayers, cfg.BF16 = 5, bf16
			if !bf16 {
				cfg.HiddenDropout, cfg.AttentionDropout = 0.2, 0.1
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				want := gradients(t, cfg)
				plain, err := model.ActivationBytes(cfg, model.Part{}, newManager(t, opregistry.KindFlagos), 2)
				require.NoError(t, err)
				for way, r := range recomputes() {
					cfg := cfg
					cfg.Plan = r
					assert.Equal(t, want, gradients(t, cfg), way)
					less, err := model.ActivationBytes(cfg, model.Part{}, newManager(t, opregistry.KindFlagos), 2)
					require.NoError(t, err)
					if way == "uniform 5" || way == "block 1" || way == "layernorm" && !cfg.HasPreNorms() {
						assert.LessOrEqual(t, less, plain, way)
					} else {
						assert.Less(t, less, plain, way)
					}
				}
			})
		}
	}
}

// gradients returns the losses and gradients of three micro batches, the last two added up.
func gradients(t *testing.T, cfg model.Config) (all [][]float64) {
	t.Helper()
	m := newModel(t, cfg, opregistry.KindFlagos, 2)
	for i := range 3 {
		m.Drop(9, uint64(i))
		all = append(all, []float64{m.loss(t), m.AuxLoss()})
		require.NoError(t, m.Backward(1, i == 2))
		for _, p := range m.Trained() {
			all = append(all, p.Grad.Float64s())
		}
	}
	return all
}

func TestRecomputeErrors(t *testing.T) {
	for want, r := range map[string]architecture.Plan{
		`recompute_granularity: given "half", want full or selective`:                              {Granularity: "half"},
		`recompute_method: given "rows", want uniform or block`:                                    {Granularity: "full", Method: "rows"},
		"recompute_num_layers: given 3, want a number from 1 to num_layers 2":                      {Granularity: "full", Layers: 3},
		`recompute_granularity: given "", want full with recompute_method or recompute_num_layers`: {Layers: 1},
		`recompute_granularity: given "", want selective with recompute_modules`:                   {Modules: []string{"mlp"}},
		`recompute_modules: given "moe_act", want core_attn or layernorm or mlp or moe`:            {Granularity: "selective", Modules: []string{"moe_act"}},
		"recompute_activations: given true, want false with recompute_granularity full":            {Granularity: "full", Activations: true},
	} {
		cfg := tiny(true)
		cfg.Plan = r
		assert.ErrorContains(t, cfg.Validate(), want)
	}
}
