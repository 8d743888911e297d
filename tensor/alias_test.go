package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/tensor"
)

// occupied returns which bytes of its storage a tensor's elements lie in.
func occupied(x *tensor.Tensor) map[int]bool {
	size := x.DType().Size()
	set := make(map[int]bool)
	index := make([]int, len(x.Shape()))
	for range x.NumElements() {
		at := x.Offset()
		for axis, k := range index {
			at += k * x.Strides()[axis]
		}
		for b := range size {
			set[at*size+b] = true
		}
		for axis := len(index) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < x.Shape()[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return set
}

// share is what Overlap must answer for two views of one storage.
func share(a, b *tensor.Tensor) bool {
	other := occupied(b)
	for at := range occupied(a) {
		if other[at] {
			return true
		}
	}
	return false
}

// storageOf returns tensors of several dtypes over one block of memory.
func storageOf(t *testing.T, bytes int) []*tensor.Tensor {
	t.Helper()
	raw := aligned(bytes)
	var all []*tensor.Tensor
	for _, d := range []tensor.DType{tensor.U8, tensor.BF16, tensor.F32, tensor.F64} {
		x, err := tensor.FromBytes(raw, d, bytes/d.Size())
		require.NoError(t, err)
		all = append(all, x)
	}
	return all
}

func checkOverlap(t *testing.T, a, b *tensor.Tensor, exact bool) (shared bool) {
	t.Helper()
	want := share(a, b)
	got := tensor.Overlap(a, b)
	require.Equal(t, got, tensor.Overlap(b, a), "Overlap is symmetric")
	if want || exact {
		require.Equal(t, want, got, "%v%v strides %v offset %d and %v%v strides %v offset %d",
			a.DType(), a.Shape(), a.Strides(), a.Offset(), b.DType(), b.Shape(), b.Strides(), b.Offset())
	}
	return want
}

func TestOverlapNeverMisses(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	bases := storageOf(t, 512)
	random := func() *tensor.Tensor {
		for {
			base := bases[rng.IntN(len(bases))]
			axes := rng.IntN(4)
			shape, strides := make([]int, axes), make([]int, axes)
			for i := range shape {
				shape[i], strides[i] = rng.IntN(5), rng.IntN(20)
				if rng.IntN(3) == 0 {
					strides[i] = 1
				}
			}
			if x, err := base.AsStrided(shape, strides, rng.IntN(512/base.DType().Size())); err == nil {
				return x
			}
		}
	}
	shared, disjoint := 0, 0
	for range 60_000 {
		if checkOverlap(t, random(), random(), false) {
			shared++
		} else {
			disjoint++
		}
	}
	assert.Greater(t, shared, 1000)
	assert.Greater(t, disjoint, 1000)
}

// The views have the forms for which Overlap promises an exact answer.
func TestOverlapExact(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	bases := storageOf(t, 512)
	permute := func(x *tensor.Tensor) *tensor.Tensor {
		for a := range x.Shape() {
			y, err := x.Transpose(a, rng.IntN(len(x.Shape())))
			require.NoError(t, err)
			x = y
		}
		return x
	}
	// fused cuts the last axis of rows at one pitch, given in bytes.
	fused := func(pitch int) *tensor.Tensor {
		for {
			base := bases[rng.IntN(len(bases))]
			size := base.DType().Size()
			if pitch%size != 0 {
				continue
			}
			outer, inner, cols := 1+rng.IntN(3), 1+rng.IntN(3), 1+rng.IntN(pitch/size)
			shape := []int{outer, inner, 1, cols}
			strides := []int{inner * pitch / size, pitch / size, 77, 1}
			x, err := base.AsStrided(shape, strides, rng.IntN(512/size))
			if err == nil {
				return permute(x)
			}
		}
	}
	contiguous := func() *tensor.Tensor {
		base := bases[rng.IntN(len(bases))]
		lo := rng.IntN(base.NumElements())
		hi := min(lo+rng.IntN(20), base.NumElements())
		x, err := base.Slice(0, lo, hi)
		require.NoError(t, err)
		return x
	}
	tests := []struct {
		name string
		pair func() (a, b *tensor.Tensor)
	}{
		{"contiguous", func() (a, b *tensor.Tensor) { return contiguous(), contiguous() }},
		{"one pitch", func() (a, b *tensor.Tensor) {
			pitch := 8 * (1 + rng.IntN(6))
			return fused(pitch), fused(pitch)
		}},
		{"run and pitch", func() (a, b *tensor.Tensor) { return contiguous(), fused(8 * (1 + rng.IntN(8))) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shared, disjoint := 0, 0
			for range 20_000 {
				a, b := tt.pair()
				if checkOverlap(t, a, b, true) {
					shared++
				} else {
					disjoint++
				}
			}
			assert.Greater(t, shared, 1000)
			assert.Greater(t, disjoint, 1000)
		})
	}
}

func TestOverlapOfFusedProjection(t *testing.T) {
	t.Parallel()
	const seq, heads, dim = 5, 4, 8
	qkv := counting(t, seq, heads, 3, dim)
	var parts []*tensor.Tensor
	for i := range 3 {
		part, err := qkv.Select(2, i)
		require.NoError(t, err)
		part, err = part.Transpose(0, 1)
		require.NoError(t, err)
		parts = append(parts, part)
	}
	for i, a := range parts {
		assert.True(t, tensor.Overlap(a, qkv))
		for k, b := range parts {
			assert.Equal(t, i == k, tensor.Overlap(a, b))
		}
	}
}

func TestOverlapOfNothing(t *testing.T) {
	t.Parallel()
	x := counting(t, 6)
	empty, err := x.Slice(0, 3, 3)
	require.NoError(t, err)
	assert.False(t, tensor.Overlap(nil, x))
	assert.False(t, tensor.Overlap(x, nil))
	assert.False(t, tensor.Overlap(x, empty))
	assert.False(t, tensor.Overlap(empty, empty))
	assert.False(t, tensor.Overlap(x, counting(t, 6)), "another storage")
}

func TestSameView(t *testing.T) {
	t.Parallel()
	x := counting(t, 4, 6)
	view := func(shape, strides []int, offset int) *tensor.Tensor {
		y, err := x.AsStrided(shape, strides, offset)
		require.NoError(t, err)
		return y
	}
	strided := view([]int{2, 1, 3}, []int{6, 5, 2}, 1)
	tests := []struct {
		name string
		a, b *tensor.Tensor
		want bool
	}{
		{"itself", x, x, true},
		{"equal", x, view([]int{4, 6}, []int{6, 1}, 0), true},
		{"another shape", x, view([]int{6, 4}, []int{4, 1}, 0), false},
		{"another offset", strided, view([]int{2, 1, 3}, []int{6, 5, 2}, 2), false},
		{"other strides", strided, view([]int{2, 1, 3}, []int{6, 5, 1}, 1), false},
		{"stride that does not matter", strided, view([]int{2, 1, 3}, []int{6, 9, 2}, 1), true},
		{"another storage", x, counting(t, 4, 6), false},
		{"nil", x, nil, false},
		{"nil and nil", nil, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, tensor.SameView(tt.a, tt.b))
			assert.Equal(t, tt.want, tensor.SameView(tt.b, tt.a))
		})
	}
}

func TestOverlapAllocatesNothing(t *testing.T) {
	qkv := counting(t, 5, 4, 3, 8)
	q, err := qkv.Select(2, 0)
	require.NoError(t, err)
	k, err := qkv.Select(2, 1)
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() { tensor.Overlap(q, k) }))
}
