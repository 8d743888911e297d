package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"

	"github.com/primus-fl/primus/internal/primustest"
)

// counting returns an f32 tensor that holds 0, 1, 2, … in row-major order.
func counting(t testing.TB, shape ...int) *tensor.Tensor {
	t.Helper()
	values := make([]float32, tensor.Shape(shape).NumElements())
	for i := range values {
		values[i] = float32(i)
	}
	x, err := tensor.FromSlice(values, shape...)
	require.NoError(t, err)
	return x
}

func TestViews(t *testing.T) {
	t.Parallel()
	type view func(x *tensor.Tensor) (*tensor.Tensor, error)
	tests := []struct {
		name   string
		view   view
		shape  tensor.Shape
		want   []float64
		contig bool
	}{
		{"slice outer", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(0, 1, 3) }, tensor.Shape{2, 2}, []float64{2, 3, 4, 5}, true},
		{"slice inner", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(1, 1, 2) }, tensor.Shape{3, 1}, []float64{1, 3, 5}, false},
		{"slice to one row", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(0, 2, 3) }, tensor.Shape{1, 2}, []float64{4, 5}, true},
		{"slice to nothing", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Slice(1, 2, 2) }, tensor.Shape{3, 0}, []float64{}, true},
		{"select outer", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Select(0, 1) }, tensor.Shape{2}, []float64{2, 3}, true},
		{"select inner", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Select(1, 1) }, tensor.Shape{3}, []float64{1, 3, 5}, false},
		{"transpose", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Transpose(0, 1) }, tensor.Shape{2, 3}, []float64{0, 2, 4, 1, 3, 5}, false},
		{"transpose with itself", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Transpose(1, 1) }, tensor.Shape{3, 2}, []float64{0, 1, 2, 3, 4, 5}, true},
		{"reshape", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Reshape(2, 3) }, tensor.Shape{2, 3}, []float64{0, 1, 2, 3, 4, 5}, true},
		{"reshape free", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.Reshape(-1, 6) }, tensor.Shape{1, 6}, []float64{0, 1, 2, 3, 4, 5}, true},
		{"strided", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.AsStrided([]int{2, 2}, []int{3, 1}, 1) }, tensor.Shape{2, 2}, []float64{1, 2, 4, 5}, false},
		{"strided broadcast", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.AsStrided([]int{2, 2}, []int{0, 5}, 0) }, tensor.Shape{2, 2}, []float64{0, 5, 0, 5}, false},
		{"strided as scalar", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.AsStrided(nil, nil, 5) }, tensor.Shape{}, []float64{5}, true},
		{"strided contiguous", func(x *tensor.Tensor) (*tensor.Tensor, error) {
			return x.AsStrided([]int{1, 2, 1, 2}, []int{99, 2, 99, 1}, 2)
		}, tensor.Shape{1, 2, 1, 2}, []float64{2, 3, 4, 5}, true},
		{"strided empty", func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.AsStrided([]int{9, 0}, []int{7, 7}, 6) }, tensor.Shape{9, 0}, []float64{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := counting(t, 3, 2)
			got, err := tt.view(x)
			require.NoError(t, err)
			assert.Equal(t, tt.shape, append(tensor.Shape{}, got.Shape()...))
			assert.Equal(t, tt.want, got.Float64s())
			assert.Equal(t, tt.contig, got.IsContiguous())
			assert.Equal(t, len(tt.want), got.NumElements())
			assert.Same(t, x.Storage(), got.Storage())
			assert.Equal(t, tensor.Shape{3, 2}, x.Shape(), "the original keeps its shape")
			assert.Equal(t, []int{2, 1}, x.Strides(), "and its strides")
			if len(tt.want) == 0 {
				assert.Nil(t, got.Pointer())
				assert.Nil(t, tensor.Data[float32](got))
				return
			}
			assert.Equal(t, got.Pointer(), unsafe.Pointer(&tensor.Data[float32](x)[got.Offset()]))
		})
	}
}

func TestViewErrors(t *testing.T) {
	t.Parallel()
	const huge = math.MaxInt
	x := counting(t, 3, 2)
	part, err := x.Slice(1, 0, 1)
	require.NoError(t, err)
	tests := []struct {
		name string
		err  func() error
		want string
	}{
		{"slice axis", func() error { _, err := x.Slice(2, 0, 1); return err }, "tensor: Slice: given axis 2 of shape [3 2], want 0 <= axis < 2"},
		{"slice negative axis", func() error { _, err := x.Slice(-1, 0, 1); return err }, "tensor: Slice: given axis -1 of shape [3 2], want 0 <= axis < 2"},
		{"slice range", func() error { _, err := x.Slice(0, 2, 4); return err }, "tensor: Slice: given range [2, 4) of axis 0 with length 3, want 0 <= lo <= hi <= length"},
		{"slice reversed", func() error { _, err := x.Slice(0, 2, 1); return err }, "tensor: Slice: given range [2, 1) of axis 0 with length 3, want 0 <= lo <= hi <= length"},
		{"slice below", func() error { _, err := x.Slice(0, -1, 1); return err }, "tensor: Slice: given range [-1, 1) of axis 0 with length 3, want 0 <= lo <= hi <= length"},
		{"select", func() error { _, err := x.Select(1, 2); return err }, "tensor: Select: given index 2 of axis 1 with length 2, want 0 <= index < length"},
		{"select axis", func() error { _, err := x.Select(5, 0); return err }, "tensor: Select: given axis 5 of shape [3 2], want 0 <= axis < 2"},
		{"transpose", func() error { _, err := x.Transpose(0, 2); return err }, "tensor: Transpose: given axis 2 of shape [3 2], want 0 <= axis < 2"},
		{"reshape strided", func() error { _, err := part.Reshape(3); return err }, "tensor: Reshape: given f32[3 1] on cpu:0 strides [2 1], want a contiguous tensor"},
		{"reshape count", func() error { _, err := x.Reshape(5); return err }, "tensor: Reshape: given shape [5] for 6 elements, want as many elements"},
		{"reshape free", func() error { _, err := x.Reshape(4, -1); return err }, "tensor: Reshape: given shape [4 -1] for 6 elements, want axes that divide them"},
		{"reshape free beside 0", func() error { _, err := x.Reshape(0, -1); return err }, "tensor: Reshape: given shape [0 -1] for 6 elements, want axes that divide them"},
		{"reshape two free", func() error { _, err := x.Reshape(-1, -1); return err }, "tensor: Reshape: given shape [-1 -1], want axes >= 0, at most one of them -1"},
		{"reshape negative", func() error { _, err := x.Reshape(-2, -3); return err }, "tensor: Reshape: given shape [-2 -3], want axes >= 0, at most one of them -1"},
		{"reshape product wraps to 6", func() error { _, err := x.Reshape(9, 0x5555555555555556); return err }, "tensor: Reshape: given shape [9 6148914691236517206] of f32, want a size that fits in an int"},
		{"reshape product wraps to 0", func() error { _, err := counting(t, 0).Reshape(1<<32, 1<<32); return err }, "tensor: Reshape: given shape [4294967296 4294967296] of f32, want a size that fits in an int"},
		{"strided strides", func() error { _, err := x.AsStrided([]int{2}, nil, 0); return err }, "tensor: AsStrided: given shape [2], strides [], offset 0 in 24 bytes of f32, want as many strides as axes"},
		{"strided negative", func() error { _, err := x.AsStrided([]int{2}, []int{-1}, 1); return err }, "tensor: AsStrided: given shape [2], strides [-1], offset 1 in 24 bytes of f32, want strides >= 0"},
		{"strided offset", func() error { _, err := x.AsStrided([]int{0}, []int{1}, 7); return err }, "tensor: AsStrided: given shape [0], strides [1], offset 7 in 24 bytes of f32, want an offset inside the storage"},
		{"strided end", func() error { _, err := x.AsStrided([]int{1}, []int{1}, 6); return err }, "tensor: AsStrided: given shape [1], strides [1], offset 6 in 24 bytes of f32, want every element inside the storage"},
		{"strided too long", func() error { _, err := x.AsStrided([]int{4}, []int{2}, 0); return err }, "tensor: AsStrided: given shape [4], strides [2], offset 0 in 24 bytes of f32, want every element inside the storage"},
		{"strided axes add up", func() error { _, err := x.AsStrided([]int{2, 2}, []int{3, 3}, 0); return err }, "tensor: AsStrided: given shape [2 2], strides [3 3], offset 0 in 24 bytes of f32, want every element inside the storage"},
		{"strided wraps", func() error { _, err := x.AsStrided([]int{1<<60 + 1}, []int{4}, 0); return err }, "tensor: AsStrided: given shape [1152921504606846977], strides [4], offset 0 in 24 bytes of f32, want every element inside the storage"},
		{"strided huge stride", func() error { _, err := x.AsStrided([]int{3}, []int{huge}, 0); return err }, "tensor: AsStrided: given shape [3], strides [9223372036854775807], offset 0 in 24 bytes of f32, want every element inside the storage"},
		{"strided huge broadcast", func() error { _, err := x.AsStrided([]int{huge}, []int{0}, 0); return err }, "tensor: AsStrided: given shape [9223372036854775807] of f32, want a size that fits in an int"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.err()
			require.EqualError(t, err, tt.want)
			var e *tensor.Error
			assert.ErrorAs(t, err, &e)
		})
	}
}

// assertInside checks that no element of x lies outside of its storage, in
// arithmetic that does not overflow.
func assertInside(t testing.TB, x *tensor.Tensor) {
	t.Helper()
	size := x.DType().Size()
	elements := uint64(x.Storage().Size() / size)
	require.GreaterOrEqual(t, x.Offset(), 0)
	require.LessOrEqual(t, uint64(x.Offset()), elements)
	elems := uint64(1)
	for _, n := range x.Shape() {
		require.GreaterOrEqual(t, n, 0)
		elems *= uint64(n) // checked below: axes were accepted as addressable
	}
	require.Equal(t, elems, uint64(x.NumElements()))
	if elems == 0 {
		require.Nil(t, x.Pointer())
		require.True(t, x.IsContiguous())
		return
	}
	last := float64(x.Offset())
	for i, n := range x.Shape() {
		require.GreaterOrEqual(t, x.Strides()[i], 0)
		last += float64(n-1) * float64(x.Strides()[i])
	}
	require.Less(t, last, float64(elements))
}

// buildViews turns numbers into views of views; the numbers become arguments unchecked.
func buildViews(t testing.TB, numbers []int64) {
	t.Helper()
	next := func() int {
		if len(numbers) == 0 {
			return 0
		}
		n := numbers[0]
		numbers = numbers[1:]
		return int(n)
	}
	several := func() []int {
		out := make([]int, uint(next())%5)
		for i := range out {
			out[i] = next()
		}
		return out
	}
	x := counting(t, 4, 3, 5)
	for len(numbers) > 0 {
		var y *tensor.Tensor
		var err error
		switch uint(next()) % 5 {
		case 0:
			y, err = x.Slice(next(), next(), next())
		case 1:
			y, err = x.Select(next(), next())
		case 2:
			y, err = x.Transpose(next(), next())
		case 3:
			y, err = x.Reshape(several()...)
		default:
			y, err = x.AsStrided(several(), several(), next())
		}
		if err != nil {
			var e *tensor.Error
			require.ErrorAs(t, err, &e)
			require.Nil(t, y)
			continue
		}
		assertInside(t, y)
		x = y
		if x.NumElements() < 1000 {
			require.Len(t, x.Float64s(), x.NumElements())
		}
	}
}

func TestViewsOfRandomArguments(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	hostile := []int64{-1, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 1 << 32, 1 << 62, 1<<60 + 1, 1<<61 + 1, 60, 59, 61}
	for range 20_000 {
		numbers := make([]int64, 4+rng.IntN(40))
		for i := range numbers {
			numbers[i] = int64(rng.IntN(6))
			if rng.IntN(8) == 0 {
				numbers[i] = hostile[rng.IntN(len(hostile))]
			}
		}
		buildViews(t, numbers)
	}
}

func FuzzViews(f *testing.F) {
	f.Add([]byte{4, 1, 2, 1, 16, 0}, uint8(56))
	f.Add([]byte{3, 2, 1, 1, 4, 2, 3, 3, 1, 1, 1, 0}, uint8(32))
	f.Add([]byte{0, 0, 1, 3, 1, 2, 0, 2, 0, 1}, uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, shift uint8) {
		defer primustest.Measured(t, len(raw))()
		numbers := make([]int64, min(len(raw), 100))
		for i := range numbers {
			numbers[i] = int64(int8(raw[i]))
			if raw[i]&0x40 != 0 {
				numbers[i] <<= shift % 64
			}
		}
		buildViews(t, numbers)
	})
}
