package tensor_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"

	"github.com/primus-fl/primus/internal/primustest"
)

func TestDLPackRoundTrip(t *testing.T) {
	t.Parallel()
	for _, d := range tensor.DTypes() {
		x, err := tensor.FromBytes(aligned(4*5*6*d.Size()), d, 4, 5, 6)
		require.NoError(t, err)
		x.Set(1, 2, 3, 4)
		part, err := x.Slice(0, 1, 3)
		require.NoError(t, err)
		turned, err := part.Transpose(0, 2)
		require.NoError(t, err)
		empty, err := x.Slice(1, 2, 2)
		require.NoError(t, err)
		scalar, err := x.AsStrided(nil, nil, 2*30+3*6+4)
		require.NoError(t, err)
		for _, view := range []*tensor.Tensor{x, part, turned, empty, scalar} {
			dl := view.DLPack()
			got, err := tensor.FromDLPack(&dl, nil)
			require.NoError(t, err)
			if view.NumElements() > 0 {
				assert.True(t, tensor.SameView(view, got), "%v and %v", view, got)
			}
			assert.Equal(t, view.String(), got.String())
			assert.Equal(t, view.Float64s(), got.Float64s())
			require.NoError(t, got.Release())
		}
	}
}

func TestFromDLPackWithoutStrides(t *testing.T) {
	t.Parallel()
	data, shape := []float32{0, 1, 2, 3, 4, 5, 6}, []int64{2, 3}
	d := tensor.DLTensor{
		Data: unsafe.Pointer(&data[0]), Device: tensor.DLDevice{Type: 1}, NDim: 2,
		DType: tensor.F32.DLPack(), Shape: &shape[0], ByteOffset: 4,
	}
	given := 0
	x, err := tensor.FromDLPack(&d, func() { given++ })
	require.NoError(t, err)
	shape[0] = 7
	assert.Equal(t, []float64{1, 2, 3, 4, 5, 6}, x.Float64s(), "the shape is a copy")
	assert.True(t, x.IsContiguous())
	assert.Equal(t, 24, x.Storage().Size())
	x.Set(9, 1, 2)
	assert.InDelta(t, 9, data[6], 0, "the data is none")

	require.NoError(t, x.Release())
	assert.Equal(t, 1, given)
	require.ErrorContains(t, x.Release(), "released before")
	assert.Equal(t, 1, given)
}

func TestFromDLPackOfADevice(t *testing.T) {
	t.Parallel()
	shape := []int64{4}
	d := tensor.DLTensor{
		Data: unsafe.Pointer(&shape[0]), Device: tensor.DLDevice{Type: 2, Index: 3}, NDim: 1,
		DType: tensor.F16.DLPack(), Shape: &shape[0],
	}
	x, err := tensor.FromDLPack(&d, nil)
	require.NoError(t, err)
	assert.Equal(t, device.Device{Type: device.TypeCUDA, Index: 3}, x.Device())
	assert.Equal(t, x.Pointer(), d.Data)
}

func TestFromDLPackErrors(t *testing.T) {
	t.Parallel()
	data := []float64{1, 2, 3, 4, 5, 6}
	tests := []struct {
		name           string
		shape, strides []int64
		change         func(*tensor.DLTensor)
		want           string
	}{
		{name: "dtype", change: func(d *tensor.DLTensor) { d.DType.Code = 5 }, want: "type code 5 with 32 bits and 1 lanes"},
		{name: "bits", change: func(d *tensor.DLTensor) { d.DType.Bits = 24 }, want: "24 bits"},
		{name: "lanes", change: func(d *tensor.DLTensor) { d.DType.Lanes = 4 }, want: "4 lanes"},
		{name: "no dtype", change: func(d *tensor.DLTensor) { d.DType = tensor.DLDataType{} }, want: "0 bits"},
		{name: "axes", change: func(d *tensor.DLTensor) { d.NDim = -1 }, want: "-1 axes"},
		{name: "many axes", change: func(d *tensor.DLTensor) { d.NDim = 1 << 30 }, want: "1073741824 axes"},
		{name: "no shape", change: func(d *tensor.DLTensor) { d.Shape = nil }, want: "2 axes"},
		{name: "no data", change: func(d *tensor.DLTensor) { d.Data = nil }, want: "nil for shape [2 3]"},
		{name: "offset", change: func(d *tensor.DLTensor) { d.ByteOffset = math.MaxUint64 - 3 }, want: "byte offset"},
		{name: "alignment", change: func(d *tensor.DLTensor) { d.ByteOffset = 2 }, want: "alignment to 4 bytes"},
		{name: "negative axis", shape: []int64{2, -3}, want: "[2 -3]"},
		{name: "large axes", shape: []int64{math.MaxInt64, 3}, want: "fits in an int"},
		{name: "negative stride", strides: []int64{-3, 1}, want: "strides [-3 1]"},
		{name: "large strides", strides: []int64{math.MaxInt64, 1}, want: "fits in an int"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			shape := []int64{2, 3}
			if tt.shape != nil {
				shape = tt.shape
			}
			d := tensor.DLTensor{
				Data: unsafe.Pointer(&data[0]), Device: tensor.DLDevice{Type: 1}, NDim: 2, DType: tensor.F32.DLPack(), Shape: &shape[0],
			}
			if tt.strides != nil {
				d.Strides = &tt.strides[0]
			}
			if tt.change != nil {
				tt.change(&d)
			}
			_, err := tensor.FromDLPack(&d, func() { t.Error("the memory is still the caller's") })
			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "tensor: FromDLPack: ")
		})
	}
	_, err := tensor.FromDLPack(nil, nil)
	require.ErrorContains(t, err, "want a DLTensor")
}

func FuzzFromDLPack(f *testing.F) {
	f.Add(uint8(2), uint8(32), uint16(1), int32(2), int64(2), int64(3), int64(3), int64(1), uint64(0))
	f.Add(uint8(4), uint8(16), uint16(1), int32(2), int64(-2), int64(3), int64(1)<<62, int64(-1), uint64(7))
	f.Add(uint8(6), uint8(8), uint16(1), int32(0), int64(0), int64(0), int64(0), int64(0), uint64(1))
	f.Fuzz(func(t *testing.T, code, bits uint8, lanes uint16, axes int32, n0, n1, s0, s1 int64, offset uint64) {
		defer primustest.Measured(t, 0)()
		data, shape, strides := aligned(1<<16), []int64{n0, n1}, []int64{s0, s1}
		if axes > 2 && axes <= 64 {
			axes %= 3 // a shape is as long as it says
		}
		d := tensor.DLTensor{
			Data: unsafe.Pointer(&data[0]), Device: tensor.DLDevice{Type: 1}, NDim: axes,
			DType: tensor.DLDataType{Code: code, Bits: bits, Lanes: lanes}, Shape: &shape[0], Strides: &strides[0], ByteOffset: offset % 64,
		}
		x, err := tensor.FromDLPack(&d, nil)
		if err != nil {
			return
		}
		require.Len(t, x.Shape(), int(axes))
		if x.Storage().Size() <= len(data)-64 && x.NumElements() < 1<<16 {
			x.Float64s()
		}
	})
}
