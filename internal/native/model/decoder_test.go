package model_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Sequences that take turns, in chunks of any length, have the logits of a pass over each of them
// alone.
func TestDecoderAgreesWithAPass(t *testing.T) {
	all := architectures()
	for name, narrow := range maps.Clone(all) {
		narrow.BF16 = true
		all[name+" in bf16"] = narrow
	}
	for name, cfg := range all {
		tolerance := 2e-4
		if cfg.BF16 {
			tolerance = 0.02
		}
		for _, kind := range []opregistry.Kind{opregistry.KindReference, opregistry.KindFlagos} {
			t.Run(name+" "+kind.String(), func(t *testing.T) {
				cfg.SeqLength, cfg.MaxPositionEmbeddings = 40, 0
				mgr := newManager(t, kind)
				backend := cpu.New()
				m, err := model.New(cfg, backend)
				require.NoError(t, err)
				require.NoError(t, m.Init(3))
				pass, err := m.NewPass(mgr, 1, cfg.SeqLength, false)
				require.NoError(t, err)
				const slots = 3
				d, err := m.NewDecoder(mgr, model.DecoderSettings{Slots: slots, Rows: 32})
				require.NoError(t, err)
				defer func() {
					assert.NoError(t, d.Close())
					assert.NoError(t, pass.Close())
					assert.NoError(t, m.Close())
					assert.NoError(t, backend.Close())
				}()
				rng := rand.New(rand.NewPCG(5, 6))
				var texts [slots][]int32
				for range 12 {
					var chunks []model.Chunk
					left := 32
					for slot := range slots {
						n := min([]int{0, 1, 1, 5, 11}[rng.IntN(5)], left)
						if n == 0 || d.Length(slot)+n > cfg.SeqLength {
							continue
						}
						left -= n
						c := model.Chunk{Slot: slot, From: rng.IntN(n + 1)}
						for range n {
							c.Tokens = append(c.Tokens, rng.Int32N(256))
						}
						chunks = append(chunks, c)
					}
					if chunks == nil {
						slot := rng.IntN(slots)
						n := rng.IntN(d.Length(slot) + 1)
						d.Truncate(slot, n)
						texts[slot] = texts[slot][:n]
						continue
					}
					logits, err := d.Step(chunks)
					require.NoError(t, err)
					row := 0
					for _, c := range chunks {
						first := len(texts[c.Slot])
						texts[c.Slot] = append(slices.Clip(texts[c.Slot]), c.Tokens...)
						for i := c.From; i < len(c.Tokens); i++ {
							want, err := pass.Logits(texts[c.Slot][:first+i+1], first+i)
							require.NoError(t, err)
							got := tensor.Data[float32](logits)[row*cfg.VocabSize:][:cfg.VocabSize]
							assert.InDeltaSlice(t, want, got, tolerance)
							row++
						}
					}
					assert.Equal(t, row, logits.Shape()[0])
				}
			})
		}
	}
}
