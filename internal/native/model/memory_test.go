//go:build !invariants

package model_test

import (
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/collective"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The estimates are what a device is asked for, also with more layers than are built to count. The
// guards of invariants are not estimated.
func TestMemory(t *testing.T) {
	t.Parallel()
	const batch = 3
	all := architectures()
	for name, cfg := range architectures() {
		all[name+" in bf16"] = inPrecisions(cfg)["bf16"]
	}
	for name, cfg := range all {
		for _, layers := range []int{1, 2, 5} {
			cfg.NumLayers = layers
			backend, mgr := cpu.New(), newManager(t, opregistry.KindFlagos)
			m, err := model.New(cfg, backend)
			require.NoError(t, err, name)
			copies := 0.0
			for _, p := range m.Params() {
				rows, columns := p.Rounded()
				if rows != nil {
					copies += float64(rows.NumElements() * rows.DType().Size())
				}
				if columns != rows {
					copies += float64(columns.NumElements() * columns.DType().Size())
				}
			}
			assert.Equal(t, cfg.BF16, copies > 0)
			weights := float64(backend.Stats().Bytes) - copies
			between := 2 * 4 * float64(model.FlatSlack+16*len(m.Params()))
			assert.InDelta(t, weights, cfg.WeightBytes()+between/2, between/2, "%s, %d layers", name, layers)

			training, err := m.NewPass(mgr, batch, cfg.SeqLength, true)
			require.NoError(t, err, name)
			writing := write(t, m, mgr)
			got, err := model.ActivationBytes(cfg, model.Part{}, mgr, batch)
			require.NoError(t, err, name)
			assert.Equal(t, float64(backend.Stats().Bytes)-weights, got, "%s, %d layers", name, layers)
			assert.NoError(t, writing.Close())
			assert.NoError(t, training.Close())
			assert.NoError(t, m.Close())
			assert.NoError(t, backend.Close())
		}
	}
}

// write returns a decoder that has written a text.
func write(t *testing.T, m *model.Model, mgr *opmanager.Manager) *model.Decoder {
	t.Helper()
	d, err := m.NewDecoder(mgr, model.DecoderSettings{Slots: 1})
	require.NoError(t, err)
	for _, n := range []int{m.Config().SeqLength, 1} {
		d.Truncate(0, 0)
		_, err = d.Step([]model.Chunk{{Tokens: make([]int32, n)}})
		require.NoError(t, err)
	}
	return d
}

// What is estimated with recomputation is what a pass takes.
func TestMemoryOfRecompute(t *testing.T) {
	t.Parallel()
	mgr := newManager(t, opregistry.KindFlagos)
	for name, cfg := range map[string]model.Config{"llama": tiny(false), "mixtral": mixtral(), "mixed": mixed()} {
		for way, r := range recomputes() {
			for _, layers := range []int{5, 7} {
				cfg.NumLayers, cfg.Plan = layers, r
				backend := cpu.New()
				m, err := model.New(cfg, backend)
				require.NoError(t, err)
				weights := backend.Stats().Bytes
				training, err := m.NewPass(mgr, 2, cfg.SeqLength, true)
				require.NoError(t, err)
				writing := write(t, m, mgr)
				got, err := model.ActivationBytes(cfg, model.Part{}, mgr, 2)
				require.NoError(t, err)
				assert.Equal(t, float64(backend.Stats().Bytes-weights), got, "%s, %s, %d layers", name, way, layers)
				assert.NoError(t, writing.Close())
				assert.NoError(t, training.Close())
				assert.NoError(t, m.Close())
			}
		}
	}
}

// What is estimated for a rank that has some of the tokens of each sequence is what its pass takes,
// which is less than that of all tokens.
func TestMemoryOfContext(t *testing.T) {
	t.Parallel()
	mgr := newManager(t, opregistry.KindFlagos)
	for name, cfg := range architectures() {
		cfg.NumLayers, cfg.SeqLength, cfg.MaxPositionEmbeddings = 5, 32, 32
		whole, err := model.ActivationBytes(cfg, model.Part{}, mgr, 2)
		require.NoError(t, err)
		for _, ring := range []bool{false, true} {
			ranks := &world.World{Group: collective.Group{Rank: 1, Ranks: 4}}
			part, backend := model.Part{Context: ranks, Rows: ranks, Ring: ring}, cpu.New()
			m, err := model.NewPart(cfg, backend, part)
			require.NoError(t, err)
			weights := backend.Stats().Bytes
			training, err := m.NewPass(mgr, 2, cfg.SeqLength, true)
			require.NoError(t, err)
			writing := write(t, m, mgr)
			got, err := model.ActivationBytes(cfg, part, mgr, 2)
			require.NoError(t, err)
			assert.Equal(t, float64(backend.Stats().Bytes-weights), got, "%s, ring %v", name, ring)
			assert.Less(t, got, whole, name)
			_, err = m.NewPass(mgr, 2, 12, true)
			assert.ErrorContains(t, err, "context_parallel_size: given 4, want 1, or a seq_length in place of 12 that is a multiple of 8")
			assert.NoError(t, writing.Close())
			assert.NoError(t, training.Close())
			assert.NoError(t, m.Close())
		}
	}
}

// What is estimated for a stage of a pipeline is what its passes take, and the stages together have
// the weights of the model. A stage makes nothing that needs all layers.
func TestMemoryOfStages(t *testing.T) {
	t.Parallel()
	mgr := newManager(t, opregistry.KindFlagos)
	plans := [][]model.Stretch{
		{{Layers: model.Range{Lo: 0, Hi: 2}, First: true}, {Layers: model.Range{Lo: 4, Hi: 5}, Last: true}},
		{{Layers: model.Range{Lo: 2, Hi: 3}}, {Layers: model.Range{Lo: 3, Hi: 4}}},
	}
	for name, cfg := range architectures() {
		cfg.NumLayers = 5
		for _, apart := range []bool{false, true} {
			parameters := 0.0
			for _, own := range plans {
				part, backend := model.Part{Stretches: own}, cpu.New()
				m, err := model.NewPart(cfg, backend, part)
				require.NoError(t, err)
				weights := backend.Stats().Bytes
				counts := []int{3, 2}
				for stretch, n := range counts {
					for range n {
						p, err := m.NewStagePass(mgr, stretch, 2, cfg.SeqLength, apart)
						require.NoError(t, err)
						defer p.Close()
					}
				}
				got, err := model.StageBytes(cfg, part, counts, apart, mgr, 2)
				require.NoError(t, err)
				assert.Equal(t, float64(backend.Stats().Bytes-weights), got, name)
				_, trained, err := model.PartSizes(cfg, part)
				require.NoError(t, err)
				parameters += trained
				_, err = m.NewPass(mgr, 2, cfg.SeqLength, true)
				assert.ErrorContains(t, err, "the model is a stage of a pipeline")
				_, err = m.NewDecoder(mgr, model.DecoderSettings{Slots: 1})
				assert.ErrorContains(t, err, "the model is a stage of a pipeline")
				defer m.Close()
			}
			assert.Equal(t, float64(cfg.NumParameters()), parameters, name)
		}
	}
}
