package tensor_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/fardevice"
	"github.com/primus-fl/primus/tensor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// farTensor returns a tensor on a far device with the values 0, 1, 2, …
func farTensor(t *testing.T, far *fardevice.Backend, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(far, d, shape...)
	require.NoError(t, err)
	values := make([]float64, x.NumElements())
	for i := range values {
		values[i] = float64(i)
	}
	require.NoError(t, x.SetFloat64s(values))
	return x
}

func TestCopiesAcrossDevices(t *testing.T) {
	far, other := fardevice.New(0), fardevice.New(1)
	want := []float64{0, 1, 2, 3, 4, 5}
	for name, c := range map[string]struct {
		to, from *tensor.Tensor
		copies   fardevice.Copies
	}{
		"in":        {farTensor(t, far, tensor.F32, 2, 3), hostTensor(t, tensor.F32, 2, 3), fardevice.Copies{In: 1, BytesIn: 24}},
		"out":       {hostTensor(t, tensor.F32, 2, 3), farTensor(t, far, tensor.F32, 2, 3), fardevice.Copies{Out: 1, BytesOut: 24}},
		"on":        {farTensor(t, far, tensor.F32, 2, 3), farTensor(t, far, tensor.F32, 2, 3), fardevice.Copies{}},
		"converted": {farTensor(t, far, tensor.BF16, 2, 3), hostTensor(t, tensor.F32, 2, 3), fardevice.Copies{In: 1, BytesIn: 12}},
		"between":   {farTensor(t, far, tensor.F32, 2, 3), farTensor(t, other, tensor.F32, 2, 3), fardevice.Copies{In: 1, BytesIn: 24}},
	} {
		t.Run(name, func(t *testing.T) {
			before := far.Copies()
			require.NoError(t, c.to.CopyFrom(c.from))
			now := far.Copies()
			assert.Equal(t, c.copies, fardevice.Copies{
				In: now.In - before.In, Out: now.Out - before.Out, BytesIn: now.BytesIn - before.BytesIn, BytesOut: now.BytesOut - before.BytesOut,
			})
			assert.Equal(t, want, c.to.Float64s())
		})
	}
}

// hostTensor returns a tensor in host memory with the values 0, 1, 2, …
func hostTensor(t *testing.T, d tensor.DType, shape ...int) *tensor.Tensor {
	t.Helper()
	n := tensor.Shape(shape).NumElements()
	x, err := tensor.FromBytes(make([]byte, n*d.Size()), d, shape...)
	require.NoError(t, err)
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	require.NoError(t, x.SetFloat64s(values))
	return x
}

// Bytes between the elements of a view on a device keep their content.
func TestCopyToAViewOnADevice(t *testing.T) {
	far := fardevice.New(0)
	all := farTensor(t, far, tensor.F32, 3, 4)
	view, err := all.Slice(1, 1, 3)
	require.NoError(t, err)
	assert.Equal(t, []float64{1, 2, 5, 6, 9, 10}, view.Float64s())
	require.NoError(t, view.SetFloat64s([]float64{-1, -2, -3, -4, -5, -6}))
	assert.Equal(t, []float64{0, -1, -2, 3, 4, -3, -4, 7, 8, -5, -6, 11}, all.Float64s())
	narrow := hostTensor(t, tensor.BF16, 3, 2)
	require.NoError(t, view.CopyFrom(narrow))
	assert.Equal(t, []float64{0, 0, 1, 3, 4, 2, 3, 7, 8, 4, 5, 11}, all.Float64s())
	require.NoError(t, narrow.CopyFrom(farTensor(t, far, tensor.F64, 3, 2)))
	assert.Equal(t, []float64{0, 1, 2, 3, 4, 5}, narrow.Float64s())
}

func TestCopyErrorsOfADevice(t *testing.T) {
	far := fardevice.New(0)
	x := farTensor(t, far, tensor.F32, 2)
	far.FailFrom(1)
	_, err := x.ToHost()
	assert.EqualError(t, err, "tensor: copy f32[2] on device_type(12):0 to the host: fardevice: the device is lost")
	assert.ErrorContains(t, x.SetFloat64s([]float64{1, 2}), "tensor: copy to f32[2] on device_type(12):0: fardevice: the device is lost")
	_, err = tensor.Compare([]float64{0, 1}, x, tensor.Tolerance{})
	assert.ErrorContains(t, err, "the device is lost")
	assert.PanicsWithError(t, "tensor: copy f32[2] on device_type(12):0 to the host: fardevice: the device is lost", func() { x.Float64s() })
	far.FailFrom(0)
	assert.Equal(t, []float64{0, 1}, x.Float64s())
	same, err := hostTensor(t, tensor.F32, 2).ToHost()
	require.NoError(t, err)
	assert.True(t, same.OnHost())
}

// A tensor whose elements are known is read without a copy, a view of it with one.
func TestKnownElements(t *testing.T) {
	far := fardevice.New(0)
	x := farTensor(t, far, tensor.I32, 3)
	known, err := tensor.Known(x, []int32{0, 1, 2})
	require.NoError(t, err)
	assert.Equal(t, x.Pointer(), known.Pointer())
	before := far.Copies().Out
	assert.Equal(t, []float64{0, 1, 2}, known.Float64s())
	got, err := tensor.Read[int32](known)
	require.NoError(t, err)
	assert.Equal(t, []int32{0, 1, 2}, got)
	assert.Equal(t, before, far.Copies().Out)
	last, err := known.Slice(0, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, []float64{2}, last.Float64s())
	assert.Equal(t, before+1, far.Copies().Out)

	host := hostTensor(t, tensor.I32, 3)
	same, err := tensor.Known(host, []int32{0, 1, 2})
	require.NoError(t, err)
	assert.Same(t, host, same)
	_, err = tensor.Known(x, []int32{0, 1})
	require.ErrorContains(t, err, "2 elements")
	_, err = tensor.Known(x, []float32{0, 1, 2})
	require.ErrorContains(t, err, "want a contiguous tensor of f32")
	column, err := farTensor(t, far, tensor.I32, 2, 2).Slice(1, 0, 1)
	require.NoError(t, err)
	_, err = tensor.Known(column, []int32{0, 2})
	require.ErrorContains(t, err, "want a contiguous tensor of i32")
}
