package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
)

func TestBorrowed(t *testing.T) { // not parallel: it counts allocations
	make3 := func(first float32, shape ...int) *tensor.Tensor {
		data := make([]float32, tensor.Shape(shape).NumElements())
		for i := range data {
			data[i] = first + float32(i)
		}
		x, err := tensor.FromSlice(data, shape...)
		require.NoError(t, err)
		return x
	}
	a, b := make3(0, 4, 6), make3(100, 4, 6)
	turned, err := b.Transpose(0, 1)
	require.NoError(t, err)
	rows, err := a.Slice(0, 1, 3)
	require.NoError(t, err)
	wide, err := tensor.FromSlice(make([]float64, 24), 4, 6)
	require.NoError(t, err)
	scalar, err := a.AsStrided(nil, nil, 5)
	require.NoError(t, err)
	var borrowed tensor.Borrowed
	for _, x := range []*tensor.Tensor{a, b, a, turned, rows, b, wide, scalar, a} {
		d := x.DLPack()
		got, err := borrowed.Point(&d)
		require.NoError(t, err)
		assert.True(t, tensor.SameView(x, got), "%v and %v", x, got)
		assert.Equal(t, x.Float64s(), got.Float64s())
		assert.Equal(t, x.Class(), got.Class())
		borrowed.Clear()
	}

	packed := b.DLPack()
	packed.Strides = nil
	got, err := borrowed.Point(&packed)
	require.NoError(t, err)
	assert.True(t, tensor.SameView(b, got))
	inner, other := a.DLPack(), b.DLPack()
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		for _, d := range []*tensor.DLTensor{&inner, &other} {
			if _, err := borrowed.Point(d); err != nil {
				t.Error(err)
			}
		}
	}), "memory changes, and the description does not")

	other.Data = nil
	_, err = borrowed.Point(&other)
	require.ErrorContains(t, err, "given nil for shape [4 6], want the address of the data")
	_, err = borrowed.Point(nil)
	require.Error(t, err)
}
