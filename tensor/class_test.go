package tensor_test

import (
	"testing"

	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClass(t *testing.T) {
	t.Parallel()
	of := func(shape ...int) *tensor.Tensor {
		x, err := tensor.FromSlice(make([]float32, tensor.Shape(shape).NumElements()), shape...)
		require.NoError(t, err)
		return x
	}
	base := of(64, 32)
	assert.NotZero(t, of(0).Class())
	assert.Equal(t, base.Class(), of(64, 32).Class())
	assert.Equal(t, base.Class(), of(67, 33).Class(), "the first four digits are the same")
	turned, err := base.Transpose(0, 1)
	require.NoError(t, err)
	back, err := turned.Transpose(0, 1)
	require.NoError(t, err)
	assert.Equal(t, base.Class(), back.Class())
	flat, err := base.Reshape(2048)
	require.NoError(t, err)
	seen := map[uint64]bool{base.Class(): true}
	for _, other := range []*tensor.Tensor{turned, flat, of(32, 64), of(72, 32), of(64, 32, 1)} {
		assert.False(t, seen[other.Class()], other)
		seen[other.Class()] = true
	}
	wide, err := tensor.FromSlice(make([]float64, 2048), 64, 32)
	require.NoError(t, err)
	assert.NotEqual(t, base.Class(), wide.Class())
}
