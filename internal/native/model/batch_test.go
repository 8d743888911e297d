package model_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/internal/native/model"
)

const eod = 9

func rows() model.Batch {
	b := model.NewBatch(2, 5)
	copy(b.Tokens, []int32{1, eod, 2, 3, eod, 4, eod, 5, 6, 7, 8, eod})
	return b
}

func TestMasks(t *testing.T) {
	t.Parallel()
	b := rows()
	model.MaskConfig{ResetPositions: true, ResetAttention: true, MaskLoss: true}.Apply(&b, eod)
	assert.Equal(t, []int32{0, 0, 1, 1, 1, 0, 1, 1, 1, 1}, b.Segments)
	assert.Equal(t, []int32{0, 1, 0, 1, 2, 0, 0, 1, 2, 3}, b.Positions)
	assert.Equal(t, []float32{1, 0, 1, 1, 0, 0, 1, 1, 1, 1}, b.Weights)
	assert.Equal(t, 7.0, b.Weight())
	require.NoError(t, b.Check(2, 5))

	second := b.Slice(1, 2)
	assert.Equal(t, model.Batch{
		Seq: 5, Tokens: []int32{eod, 5, 6, 7, 8, eod}, Weights: []float32{0, 1, 1, 1, 1}, Segments: []int32{0, 1, 1, 1, 1}, Positions: []int32{0, 0, 1, 2, 3},
	}, second)

	model.MaskConfig{MaskLoss: true}.Apply(&b, 5)
	assert.Nil(t, b.Segments)
	assert.Nil(t, b.Positions)
	assert.Equal(t, 9.0, b.Weight())
}

func TestApplyAllocatesOnce(t *testing.T) {
	b, c := rows(), model.MaskConfig{ResetPositions: true, ResetAttention: true, MaskLoss: true}
	c.Apply(&b, eod)
	assert.Zero(t, testing.AllocsPerRun(10, func() { c.Apply(&b, eod) }))
}

func TestPlainBatch(t *testing.T) {
	t.Parallel()
	b := rows()
	assert.Equal(t, 2, b.Rows())
	assert.Equal(t, 10.0, b.Weight())
	assert.False(t, model.MaskConfig{}.Any())
	require.NoError(t, b.Check(2, 5))
	assert.Equal(t, 1, b.Slice(0, 1).Rows())
	assert.Zero(t, model.Batch{}.Rows())
}

func TestBadBatches(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(*model.Batch)
		want string
	}{
		{"rows", func(b *model.Batch) { b.Tokens = b.Tokens[:6] }, "want 2 sequences of 5"},
		{"sequence", func(b *model.Batch) { b.Seq = 2 }, "sequences of 2"},
		{"weights", func(b *model.Batch) { b.Weights = []float32{1} }, "given 1 weights, want none or 10"},
		{"negative weight", func(b *model.Batch) { b.Weights = []float32{1, 1, 1, 1, 1, 1, -1, 1, 1, 1} }, "weight -1 of target 1 of row 1"},
		{"segments", func(b *model.Batch) { b.Segments = []int32{} }, "given 0 segments"},
		{"segment goes back", func(b *model.Batch) { b.Segments = []int32{0, 1, 0, 1, 1, 0, 0, 0, 0, 0} }, "segment 0 of token 2 of row 0 after segment 1"},
		{"position at the beginning", func(b *model.Batch) { b.Positions = []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} }, "position 5 of token 0 of row 1"},
		{"position jumps", func(b *model.Batch) { b.Positions = []int32{0, 2, 3, 4, 5, 0, 1, 2, 3, 4} }, "position 2 of token 1 of row 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := rows()
			tt.edit(&b)
			require.ErrorContains(t, b.Check(2, 5), tt.want)
		})
	}
}
