package opencl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
)

// Scratch is kept for the next call of a stream, grows, and goes with its stream. The backend,
// which the test closes, would report blocks that are left.
func TestScratch(t *testing.T) {
	b := open(t)
	d, err := b.Of(0)
	require.NoError(t, err)
	allocated := func() uint64 {
		use, err := b.MemoryUse(0)
		require.NoError(t, err)
		return use.Allocated
	}
	lend := func(s device.Stream, n int) {
		scratch, err := d.Scratch(s, n)
		require.NoError(t, err)
		defer scratch.Release()
		at := scratch.At(n / 2)
		assert.GreaterOrEqual(t, at.NumElements(), n-n/2)
		on, _, ok := opencl.Of(at)
		assert.True(t, ok)
		assert.Equal(t, d, on)
	}
	lend(device.DefaultStream, 100)
	first := allocated()
	lend(device.DefaultStream, 50)
	assert.Equal(t, first, allocated())
	lend(device.DefaultStream, 10000)
	grown := allocated()
	assert.Greater(t, grown, first)

	s, err := b.CreateStream()
	require.NoError(t, err)
	lend(s, 100)
	assert.Greater(t, allocated(), grown)
	require.NoError(t, b.FreeStream(s))
	assert.Equal(t, grown, allocated())
}

// Poisoned scratch holds NaNs each time that it is lent.
func TestPoisonedScratch(t *testing.T) {
	b := opencl.New(opencl.Options{PoisonScratch: true})
	if err := b.Usable(); err != nil {
		t.Skip(err)
	}
	defer func() { require.NoError(t, b.Close()) }()
	d, err := b.Of(0)
	require.NoError(t, err)
	for range 2 {
		scratch, err := d.Scratch(device.DefaultStream, 5)
		require.NoError(t, err)
		lent, err := scratch.At(0).Slice(0, 0, 5)
		require.NoError(t, err)
		for i, v := range lent.Float64s() {
			assert.True(t, math.IsNaN(v), i)
		}
		require.NoError(t, lent.SetFloat64s(make([]float64, 5)))
		scratch.Release()
	}
}
