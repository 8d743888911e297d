package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Documents packed into one row, with attention and positions of their own, have the losses and
// the gradients that they have in rows of their own.
func TestPackedDocuments(t *testing.T) {
	const eod = 0
	lengths := []int{3, 1, 4, 4}
	for _, kind := range []opregistry.Kind{opregistry.KindReference, opregistry.KindFlagos} {
		for name, cfg := range architectures() {
			cfg.HiddenDropout, cfg.AttentionDropout, cfg.AuxLossCoeff = 0, 0, 0
			t.Run(fmt.Sprintf("%v %s", kind, name), func(t *testing.T) {
				cfg.SeqLength, cfg.MaxPositionEmbeddings = 12, 0
				mgr := newManager(t, kind)
				packed := newModelOn(t, cfg, mgr, 1)
				whole := model.NewBatch(1, cfg.SeqLength)
				rng := rand.New(rand.NewPCG(8, 9))
				at := 0
				for _, n := range lengths {
					for i := range n {
						whole.Tokens[at+i] = 1 + rng.Int32N(255)
					}
					whole.Tokens[at+n-1] = eod
					at += n
				}
				whole.Tokens[cfg.SeqLength] = 7
				model.MaskConfig{ResetPositions: true, ResetAttention: true, MaskLoss: true}.Apply(&whole, eod)
				require.NoError(t, packed.SetBatch(whole))
				loss := packed.loss(t)
				require.NoError(t, packed.Backward(1/float32(whole.Weight()), false))
				assert.Equal(t, 8.0, whole.Weight())

				sum, at := 0.0, 0
				apart := newModelOn(t, cfg, mgr, 1)
				for i, n := range lengths {
					one := model.NewBatch(1, cfg.SeqLength)
					copy(one.Tokens, whole.Tokens[at:at+n])
					one.Weights = make([]float32, cfg.SeqLength)
					for j := range n - 1 {
						one.Weights[j] = 1
					}
					require.NoError(t, apart.SetBatch(one))
					sum += apart.loss(t) * one.Weight()
					require.NoError(t, apart.Backward(1/float32(whole.Weight()), i > 0))
					at += n
				}
				assert.InEpsilon(t, sum/whole.Weight(), loss, 1e-6)
				for i, p := range packed.Params() {
					want, got := tensor.Data[float32](apart.Params()[i].Grad), tensor.Data[float32](p.Grad)
					for j := range got {
						require.InDelta(t, want[j], got[j], 1e-5, "%s[%d]", p.Name, j)
					}
				}
			})
		}
	}
}

// A pass that has seen documents goes back to whole rows.
func TestWholeRowsAfterDocuments(t *testing.T) {
	m := newModel(t, tiny(false), opregistry.KindFlagos, 1)
	b := rowsOf(tiny(false), []int32{1, 2, 3, 4, 5, 6, 7})
	require.NoError(t, m.SetBatch(b))
	want := m.loss(t)
	model.MaskConfig{ResetPositions: true, ResetAttention: true, MaskLoss: true}.Apply(&b, 3)
	require.NoError(t, m.SetBatch(b))
	assert.NotEqual(t, want, m.loss(t))
	require.NoError(t, m.SetBatch(rowsOf(tiny(false), b.Tokens)))
	assert.Equal(t, want, m.loss(t))
	b.Weights = make([]float32, b.Seq)
	require.NoError(t, m.SetBatch(b))
	assert.Zero(t, m.loss(t), "nothing counts")
}

// The dropout of packed documents is a function of seed and batch, and has gradients.
func TestDropoutOfPackedDocuments(t *testing.T) {
	cfg := mixed()
	m := newModel(t, cfg, opregistry.KindReference, 1)
	b := rowsOf(cfg, []int32{1, 2, 3, 4, 5, 6, 7}[:cfg.SeqLength+1])
	model.MaskConfig{ResetAttention: true}.Apply(&b, 3)
	require.NoError(t, m.SetBatch(b))
	m.Drop(1, 1)
	first := m.loss(t)
	require.NoError(t, m.Backward(1, false))
	assert.Equal(t, first, m.loss(t))
	m.Drop(1, 2)
	assert.NotEqual(t, first, m.loss(t))
}
