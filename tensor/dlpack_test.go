package tensor_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// The sizes and offsets are those that a C compiler gives DLPack 1.x's structs on a 64-bit machine.
func TestDLPackLayout(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the numbers are those of a 64-bit machine")
	}
	var x tensor.DLTensor
	assert.Equal(t, uintptr(48), unsafe.Sizeof(x))
	assert.Equal(t, uintptr(0), unsafe.Offsetof(x.Data))
	assert.Equal(t, uintptr(8), unsafe.Offsetof(x.Device))
	assert.Equal(t, uintptr(16), unsafe.Offsetof(x.NDim))
	assert.Equal(t, uintptr(20), unsafe.Offsetof(x.DType))
	assert.Equal(t, uintptr(24), unsafe.Offsetof(x.Shape))
	assert.Equal(t, uintptr(32), unsafe.Offsetof(x.Strides))
	assert.Equal(t, uintptr(40), unsafe.Offsetof(x.ByteOffset))

	assert.Equal(t, uintptr(8), unsafe.Sizeof(x.Device))
	assert.Equal(t, uintptr(0), unsafe.Offsetof(x.Device.Type))
	assert.Equal(t, uintptr(4), unsafe.Offsetof(x.Device.Index))

	assert.Equal(t, uintptr(4), unsafe.Sizeof(x.DType))
	assert.Equal(t, uintptr(0), unsafe.Offsetof(x.DType.Code))
	assert.Equal(t, uintptr(1), unsafe.Offsetof(x.DType.Bits))
	assert.Equal(t, uintptr(2), unsafe.Offsetof(x.DType.Lanes))
}

func TestDLPackDTypes(t *testing.T) {
	t.Parallel()
	// Codes of DLDataTypeCode in DLPack 1.1.
	want := map[tensor.DType]tensor.DLDataType{
		tensor.F64:    {Code: 2, Bits: 64, Lanes: 1},
		tensor.F32:    {Code: 2, Bits: 32, Lanes: 1},
		tensor.BF16:   {Code: 4, Bits: 16, Lanes: 1},
		tensor.F16:    {Code: 2, Bits: 16, Lanes: 1},
		tensor.F8E4M3: {Code: 10, Bits: 8, Lanes: 1},
		tensor.F8E5M2: {Code: 12, Bits: 8, Lanes: 1},
		tensor.I64:    {Code: 0, Bits: 64, Lanes: 1},
		tensor.I32:    {Code: 0, Bits: 32, Lanes: 1},
		tensor.I16:    {Code: 0, Bits: 16, Lanes: 1},
		tensor.U8:     {Code: 1, Bits: 8, Lanes: 1},
		tensor.Bool:   {Code: 6, Bits: 8, Lanes: 1},
	}
	for _, d := range tensor.DTypes() {
		assert.Equal(t, want[d], d.DLPack(), d)
	}
}

func TestDLPackValues(t *testing.T) {
	t.Parallel()
	x, err := tensor.New(&memory{on: device.Device{Type: device.TypeROCM, Index: 2}}, tensor.BF16, 4, 5, 6)
	require.NoError(t, err)
	part, err := x.Slice(2, 1, 3)
	require.NoError(t, err)
	part, err = part.Transpose(0, 1)
	require.NoError(t, err)

	got := part.DLPack()
	assert.Equal(t, x.Pointer(), got.Data)
	assert.Equal(t, uint64(2), got.ByteOffset)
	assert.Equal(t, part.Pointer(), unsafe.Add(got.Data, got.ByteOffset))
	assert.Equal(t, tensor.DLDevice{Type: 10, Index: 2}, got.Device)
	assert.Equal(t, int32(3), got.NDim)
	assert.Equal(t, []int64{5, 4, 2}, unsafe.Slice(got.Shape, 3))
	assert.Equal(t, []int64{6, 30, 1}, unsafe.Slice(got.Strides, 3))

	scalar, err := x.AsStrided(nil, nil, 7)
	require.NoError(t, err)
	got = scalar.DLPack()
	assert.Zero(t, got.NDim)
	assert.Nil(t, got.Shape)
	assert.Nil(t, got.Strides)
	assert.Equal(t, uint64(14), got.ByteOffset)
}
