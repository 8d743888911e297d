package tensor_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/tensortest"
)

// aligned returns bytes that are aligned for every dtype.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

func TestSetConverts(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	tests := []struct {
		dtype     tensor.DType
		give, out []float64
	}{
		{tensor.F64, []float64{1.1, nan, -inf}, []float64{1.1, nan, -inf}},
		{tensor.F32, []float64{1.1, nan, 1e300}, []float64{float64(float32(1.1)), nan, inf}},
		{tensor.BF16, []float64{1.1, nan, 1e300}, []float64{1.1015625, nan, inf}},
		{tensor.F16, []float64{1.1, nan, 65520}, []float64{1.099609375, nan, inf}},
		{tensor.F8E4M3, []float64{1.1, nan, 464, 465}, []float64{1.125, nan, 448, nan}},
		{tensor.F8E5M2, []float64{1.1, nan, 1e5}, []float64{1, nan, inf}},
		{tensor.I64, []float64{2.9, -2.9, nan, inf, -inf, 1 << 53, 1 << 63}, []float64{2, -2, 0, math.MaxInt64, math.MinInt64, 1 << 53, math.MaxInt64}},
		{tensor.I32, []float64{2.9, -2.9, nan, inf, -inf, 1 << 31}, []float64{2, -2, 0, math.MaxInt32, math.MinInt32, math.MaxInt32}},
		{tensor.I16, []float64{2.9, -2.9, nan, inf, -inf, 1 << 15}, []float64{2, -2, 0, math.MaxInt16, math.MinInt16, math.MaxInt16}},
		{tensor.U8, []float64{2.9, -2.9, nan, inf, 255, 256}, []float64{2, 0, 0, 255, 255, 255}},
		{tensor.Bool, []float64{0, 1, -3, 0.5, nan}, []float64{0, 1, 1, 1, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.dtype.String(), func(t *testing.T) {
			t.Parallel()
			x, intact := tensortest.GuardedStrided(t, tt.dtype, len(tt.give))
			for i, v := range tt.give {
				x.Set(v, i)
			}
			tensortest.CloseTo(t, tt.out, x, tensortest.Tolerance{})
			for i, v := range tt.out {
				if !math.IsNaN(v) {
					assert.Equal(t, v, x.At(i))
				}
			}
			y, intactY := tensortest.Guarded(t, tt.dtype, len(tt.give))
			require.NoError(t, y.SetFloat64s(tt.give))
			tensortest.Close(t, x, y, tensortest.Tolerance{})
			intact(t)
			intactY(t)
		})
	}
}

func TestElementPanics(t *testing.T) {
	t.Parallel()
	x := counting(t, 2, 3)
	assert.PanicsWithValue(t, "BUG: tensor: 1 indexes for shape [2 3]", func() { x.At(1) })
	assert.PanicsWithValue(t, "BUG: tensor: index [2 0] for shape [2 3]", func() { x.At(2, 0) })
	assert.PanicsWithValue(t, "BUG: tensor: index [0 -1] for shape [2 3]", func() { x.Set(0, 0, -1) })
	assert.PanicsWithValue(t, "BUG: tensor: Data[f64] of a tensor of f32", func() { tensor.Data[float64](x) })
	assert.PanicsWithValue(t, "BUG: tensor: Data[i32] of a tensor of f32", func() { tensor.Data[int32](x) })
	require.EqualError(t, x.SetFloat64s([]float64{1}), "tensor: SetFloat64s: given 1 values for f32[2 3] on cpu:0, want 6")
}

// forms returns views of one shape and dtype with different strides, all zero.
func forms(t *testing.T, d tensor.DType) map[string]*tensor.Tensor {
	t.Helper()
	zero := func(x *tensor.Tensor, _ func(tensortest.TB)) *tensor.Tensor {
		require.NoError(t, x.SetFloat64s(make([]float64, x.NumElements())))
		return x
	}
	transposed, err := zero(tensortest.Guarded(t, d, 4, 2, 3)).Transpose(0, 2)
	require.NoError(t, err)
	return map[string]*tensor.Tensor{
		"contiguous": zero(tensortest.Guarded(t, d, 3, 2, 4)),
		"padded":     zero(tensortest.GuardedStrided(t, d, 3, 2, 4)),
		"sparse":     zero(tensortest.GuardedAs(t, d, []int{3, 2, 4}, []int{2, 6, 12})),
		"transposed": transposed,
	}
}

func TestCopyFrom(t *testing.T) {
	t.Parallel()
	for _, from := range tensor.DTypes() {
		for _, to := range tensor.DTypes() {
			values := tensortest.Random(t, 9, from, 3, 2, 4)
			want, _ := tensortest.Guarded(t, to, 3, 2, 4)
			require.NoError(t, want.SetFloat64s(values.Float64s()))
			for fromName, src := range forms(t, from) {
				require.NoError(t, src.CopyFrom(values))
				for toName, dst := range forms(t, to) {
					require.NoError(t, dst.CopyFrom(src), "%v %s to %v %s", from, fromName, to, toName)
					tensortest.Close(t, want, dst, tensortest.Tolerance{})
				}
				tensortest.Close(t, values, src, tensortest.Tolerance{})
			}
		}
	}
}

// Equal dtypes are copied as bits, even where a float64 could not hold the value.
func TestCopyFromKeepsBits(t *testing.T) {
	t.Parallel()
	numbers := []int64{math.MaxInt64, math.MinInt64 + 1, 1<<53 + 1, -1}
	src, err := tensor.FromSlice(numbers)
	require.NoError(t, err)
	dst, intact := tensortest.GuardedStrided(t, tensor.I64, 4)
	require.NoError(t, dst.CopyFrom(src))
	for i, v := range numbers {
		assert.Equal(t, v, tensor.Data[int64](dst)[i*dst.Strides()[0]])
	}
	intact(t)

	const signalling = 0x7f800123
	nan, err := tensor.FromSlice([]float32{math.Float32frombits(signalling)})
	require.NoError(t, err)
	out, _ := tensortest.GuardedAs(t, tensor.F32, []int{1}, []int{2})
	require.NoError(t, out.CopyFrom(nan))
	assert.Equal(t, uint32(signalling), math.Float32bits(tensor.Data[float32](out)[0]))
}

func TestCopyFromErrors(t *testing.T) {
	t.Parallel()
	x := counting(t, 4, 2)
	before := tensortest.Bytes(x)
	view := func(offset int) *tensor.Tensor {
		y, err := x.AsStrided([]int{2, 2}, []int{2, 1}, offset)
		require.NoError(t, err)
		return y
	}
	require.EqualError(t, x.CopyFrom(counting(t, 2, 4)), "tensor: CopyFrom: given source f32[2 4] on cpu:0 for f32[4 2] on cpu:0, want equal shapes")
	require.EqualError(t, view(0).CopyFrom(view(2)), "tensor: CopyFrom: given overlapping views, want disjoint views or the same")
	require.NoError(t, view(0).CopyFrom(view(0)))
	assert.Equal(t, before, tensortest.Bytes(x))
	require.NoError(t, view(0).CopyFrom(view(4)))
	assert.Equal(t, []float64{4, 5, 6, 7, 4, 5, 6, 7}, x.Float64s())
	require.NoError(t, counting(t, 0).CopyFrom(counting(t, 0)))
}
