package tensor_test

import (
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/tensor"
)

// memory is a device backend that hands out Go memory and counts the calls.
type memory struct {
	device.Backend
	on       device.Device
	allocs   map[unsafe.Pointer][]uint64
	noDevice error
	noAlloc  error
	noFree   error
}

func (m *memory) Device() (device.Device, error) { return m.on, m.noDevice }

func (m *memory) Alloc(size uint64) (unsafe.Pointer, error) {
	if m.noAlloc != nil {
		return nil, m.noAlloc
	}
	words := make([]uint64, (size+7)/8)
	p := unsafe.Pointer(&words[0])
	if m.allocs == nil {
		m.allocs = make(map[unsafe.Pointer][]uint64)
	}
	m.allocs[p] = words
	return p, nil
}

func (m *memory) Free(p unsafe.Pointer) error {
	delete(m.allocs, p)
	return m.noFree
}

func TestNewAndRelease(t *testing.T) {
	t.Parallel()
	m := &memory{on: device.Device{Type: device.TypeCPU, Index: 3}}
	x, err := tensor.New(m, tensor.F32, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, tensor.F32, x.DType())
	assert.Equal(t, tensor.Shape{2, 3}, x.Shape())
	assert.Equal(t, []int{3, 1}, x.Strides())
	assert.Equal(t, m.on, x.Device())
	assert.Equal(t, m.on, x.Storage().Device())
	assert.Equal(t, 24, x.Storage().Size())
	assert.Equal(t, "f32[2 3] on cpu:3", x.String())
	assert.Equal(t, make([]float64, 6), x.Float64s())
	assert.Len(t, m.allocs, 1)

	row, err := x.Select(0, 1)
	require.NoError(t, err)
	require.NoError(t, row.Release(), "any view releases the storage")
	assert.Empty(t, m.allocs)
	require.EqualError(t, x.Release(), "tensor: Release: given a storage that was released before, want one Release a storage")
}

func TestNewEmptyAndScalar(t *testing.T) {
	t.Parallel()
	m := &memory{on: device.Device{Type: device.TypeCPU}, noAlloc: errors.New("no memory for nothing")}
	empty, err := tensor.New(m, tensor.BF16, 3, 0)
	require.NoError(t, err)
	assert.Zero(t, empty.NumElements())
	assert.Nil(t, empty.Pointer())
	assert.Nil(t, tensor.Data[tensor.BFloat16](empty))
	assert.Empty(t, empty.Float64s())
	require.NoError(t, empty.Release())
	require.NoError(t, empty.Release())

	m.noAlloc = nil
	scalar, err := tensor.New(m, tensor.F64)
	require.NoError(t, err)
	scalar.Set(2.5)
	assert.Equal(t, []float64{2.5}, tensor.Data[float64](scalar))
	assert.Equal(t, 1, scalar.Shape().Rows())
	assert.Equal(t, 1, scalar.Shape().Cols())
	require.NoError(t, scalar.Release())
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := []struct {
		name    string
		backend *memory
		dtype   tensor.DType
		shape   []int
		want    string
	}{
		{"dtype", &memory{}, tensor.Unspecified, []int{1}, "tensor: New: given unspecified, want a valid dtype"},
		{"unknown dtype", &memory{}, 99, []int{1}, "tensor: New: given dtype(99), want a valid dtype"},
		{"negative axis", &memory{}, tensor.F32, []int{2, -1}, "tensor: New: given shape [2 -1], want axes >= 0"},
		{"negative after empty", &memory{}, tensor.F32, []int{0, -1}, "tensor: New: given shape [0 -1], want axes >= 0"},
		{"too large", &memory{}, tensor.U8, []int{1 << 32, 1 << 31}, "tensor: New: given shape [4294967296 2147483648] of u8, want a size that fits in an int"},
		{"too large by the element", &memory{}, tensor.F64, []int{1 << 60}, "tensor: New: given shape [1152921504606846976] of f64, want a size that fits in an int"},
		{"too large but for an empty axis", &memory{}, tensor.U8, []int{0, math.MaxInt, 2}, "tensor: New: given shape [0 9223372036854775807 2] of u8, want a size that fits in an int"},
		{"too large before an empty axis", &memory{}, tensor.U8, []int{math.MaxInt, 2, 0}, "tensor: New: given shape [9223372036854775807 2 0] of u8, want a size that fits in an int"},
		{"no device", &memory{noDevice: boom}, tensor.F32, []int{1}, "tensor: New: boom"},
		{"no memory", &memory{noAlloc: boom}, tensor.F32, []int{4, 2}, "tensor: New: shape [4 2] of f32: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, err := tensor.New(tt.backend, tt.dtype, tt.shape...)
			require.EqualError(t, err, tt.want)
			assert.Nil(t, x)
			if tt.backend.noDevice != nil || tt.backend.noAlloc != nil {
				assert.ErrorIs(t, err, boom)
			}
		})
	}

	x, err := tensor.New(&memory{noFree: boom}, tensor.F32, 1)
	require.NoError(t, err)
	err = x.Release()
	require.EqualError(t, err, "tensor: Release: boom")
	assert.ErrorIs(t, err, boom)
}

func TestNewOnCPU(t *testing.T) {
	t.Parallel()
	b := cpu.New()
	x, err := tensor.New(b, tensor.F16, 5, 7)
	require.NoError(t, err)
	assert.Equal(t, make([]float64, 35), x.Float64s())
	assert.Zero(t, uintptr(x.Pointer())%64)
	x.Set(1.5, 4, 6)
	assert.Equal(t, 1.5, x.At(4, 6))
	require.NoError(t, x.Release())
	require.NoError(t, b.Close())
}

// Memory of another device is described but never touched.
func TestOtherDevice(t *testing.T) {
	t.Parallel()
	m := &memory{on: device.Device{Type: device.TypeROCM, Index: 1}}
	x, err := tensor.New(m, tensor.F32, 2, 2)
	require.NoError(t, err)
	assert.NotNil(t, x.Pointer())
	const text = "BUG: tensor: the processor cannot access f32[2 2] on rocm:1"
	assert.PanicsWithValue(t, text, func() { tensor.Data[float32](x) })
	assert.PanicsWithValue(t, text, func() { x.At(0, 0) })
	assert.PanicsWithValue(t, text, func() { x.Set(1, 0, 0) })
	assert.PanicsWithValue(t, text, func() { x.Float64s() })
	const want = "given f32[2 2] on rocm:1, want memory that the processor can read"
	require.EqualError(t, x.SetFloat64s(make([]float64, 4)), "tensor: SetFloat64s: "+want)
	require.EqualError(t, x.CopyFrom(counting(t, 2, 2)), "tensor: CopyFrom: "+want)
	require.EqualError(t, counting(t, 2, 2).CopyFrom(x), "tensor: CopyFrom: "+want)
}

func TestFromSlice(t *testing.T) {
	t.Parallel()
	values := []float32{1, 2, 3, 4, 5, 6}
	x, err := tensor.FromSlice(values, 2, 3)
	require.NoError(t, err)
	values[4] = 9
	assert.Equal(t, 9.0, x.At(1, 1), "the slice is not copied")
	assert.Equal(t, values, tensor.Data[float32](x))
	assert.Equal(t, "cpu:0", x.Device().String())
	require.NoError(t, x.Release())
	require.NoError(t, x.Release(), "Go memory is released as often as one likes")

	vector, err := tensor.FromSlice(values)
	require.NoError(t, err)
	assert.Equal(t, tensor.Shape{6}, vector.Shape())
	empty, err := tensor.FromSlice([]float32(nil), 0, 4)
	require.NoError(t, err)
	assert.Nil(t, empty.Pointer())

	_, err = tensor.FromSlice(values, 2, 2)
	require.EqualError(t, err, "tensor: FromSlice: given 6 elements for shape [2 2], want 4")
	_, err = tensor.FromSlice(values, -2, -3)
	require.EqualError(t, err, "tensor: FromSlice: given shape [-2 -3], want axes >= 0")
	_, err = tensor.FromSlice(values, 9, 0x5555555555555556)
	require.Error(t, err, "a product that wraps to the right count")

	shape := []int{3, 2}
	y, err := tensor.FromSlice(values, shape...)
	require.NoError(t, err)
	shape[0] = 99
	assert.Equal(t, tensor.Shape{3, 2}, y.Shape(), "the shape is copied")
}

func TestFromBytes(t *testing.T) {
	t.Parallel()
	raw := aligned(16)
	x, err := tensor.FromBytes(raw, tensor.I32, 2, 2)
	require.NoError(t, err)
	x.Set(-1, 1, 1)
	assert.Equal(t, []byte{0xff, 0xff, 0xff, 0xff}, raw[12:])
	_, err = tensor.FromBytes(raw, tensor.I32, 3)
	require.EqualError(t, err, "tensor: FromBytes: given 16 bytes for shape [3] of i32, want 12")
	_, err = tensor.FromBytes(raw[2:6], tensor.F32, 1)
	require.ErrorContains(t, err, "want alignment to 4 bytes")
	_, err = tensor.FromBytes(raw, tensor.Unspecified, 1)
	require.EqualError(t, err, "tensor: FromBytes: given unspecified, want a valid dtype")
	empty, err := tensor.FromBytes(nil, tensor.F64, 0)
	require.NoError(t, err)
	assert.Zero(t, empty.NumElements())
}

func TestShape(t *testing.T) {
	t.Parallel()
	s := tensor.Shape{2, 3, 4}
	assert.Equal(t, 24, s.NumElements())
	assert.Equal(t, 6, s.Rows())
	assert.Equal(t, 4, s.Cols())
	assert.Equal(t, "[2 3 4]", s.String())
	assert.True(t, s.Equal(tensor.Shape{2, 3, 4}))
	assert.False(t, s.Equal(tensor.Shape{2, 3}))
	assert.Equal(t, 1, tensor.Shape{}.NumElements())
	assert.Equal(t, 1, tensor.Shape{7}.Rows())
	var none *tensor.Tensor
	assert.Equal(t, "nil tensor", none.String())
}
