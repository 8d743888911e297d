package tensor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
)

func TestE8M0(t *testing.T) {
	t.Parallel()
	for code := range 255 {
		v := float64(tensor.Float8E8M0(code).Float32())
		require.Equal(t, math.Exp2(float64(code-127)), v, "code %d", code)
		require.EqualValues(t, code, tensor.CeilFloat8E8M0(v), "%v is exact", v)
		require.EqualValues(t, min(code+1, 254), tensor.CeilFloat8E8M0(math.Nextafter(v, math.Inf(1))), "above %v", v)
		require.EqualValues(t, code, tensor.CeilFloat8E8M0(math.Nextafter(v, 0)), "below %v", v)
	}
	assert.True(t, math.IsNaN(float64(tensor.Float8E8M0(255).Float32())))
	for _, tt := range []struct {
		give float64
		want tensor.Float8E8M0
	}{
		{0, 0}, {math.Copysign(0, -1), 0}, {-3, 0}, {math.SmallestNonzeroFloat64, 0}, {math.MaxFloat64, 254},
		{math.Inf(1), 254}, {math.Inf(-1), 0}, {math.NaN(), 255}, {0.75, 127}, {1, 127}, {1.25, 128},
	} {
		assert.Equal(t, tt.want, tensor.CeilFloat8E8M0(tt.give), "%v", tt.give)
	}
}

func TestE2M1(t *testing.T) {
	t.Parallel()
	line := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for code := range 16 {
		v := line[code&7]
		if code&8 != 0 {
			v = math.Copysign(v, -1)
		}
		x := tensor.Float4E2M1(code)
		got := float64(x.Float32())
		require.Equal(t, math.Float64bits(v), math.Float64bits(got), "code %d", code)
		require.Equal(t, x, tensor.ToFloat4E2M1(v), "code %d", code)
		require.Equal(t, x.Float32(), (x | 0xf0).Float32(), "the upper bits are not looked at")
	}
	for i := range line[:7] {
		middle := (line[i] + line[i+1]) / 2
		for _, sign := range []tensor.Float4E2M1{0, 8} {
			f := 1 - float64(sign)/4
			even := tensor.Float4E2M1(i + i%2)
			require.Equal(t, sign|even, tensor.ToFloat4E2M1(f*middle), "tie %v", f*middle)
			require.Equal(t, sign|tensor.Float4E2M1(i), tensor.ToFloat4E2M1(f*math.Nextafter(middle, 0)), "below %v", f*middle)
			require.Equal(t, sign|tensor.Float4E2M1(i+1), tensor.ToFloat4E2M1(f*math.Nextafter(middle, 9)), "above %v", f*middle)
		}
	}
	for _, big := range []float64{6.5, 7, 8, 1e300, math.Inf(1)} {
		assert.EqualValues(t, 7, tensor.ToFloat4E2M1(big))
		assert.EqualValues(t, 15, tensor.ToFloat4E2M1(-big))
	}
	assert.EqualValues(t, 7, tensor.ToFloat4E2M1(math.NaN()))
	assert.EqualValues(t, 7, tensor.ToFloat4E2M1(math.Copysign(math.NaN(), -1)))
}

func TestByteRange(t *testing.T) {
	t.Parallel()
	x, err := tensor.FromSlice(make([]int16, 12), 3, 4)
	require.NoError(t, err)
	lo, hi := x.ByteRange()
	assert.Equal(t, uintptr(x.Pointer()), lo)
	assert.Equal(t, uintptr(24), hi-lo)
	column, err := x.Slice(1, 1, 2)
	require.NoError(t, err)
	from, to := column.ByteRange()
	assert.Equal(t, lo+2, from)
	assert.Equal(t, lo+2+2*9, to)
	none, err := x.Slice(0, 1, 1)
	require.NoError(t, err)
	from, to = none.ByteRange()
	assert.Zero(t, from)
	assert.Zero(t, to)
}
