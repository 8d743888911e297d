package opencl_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// Handles are those that the backend itself uses.
func TestNative(t *testing.T) {
	b := open(t)
	d, err := b.Of(1)
	require.NoError(t, err)
	seen := func(s device.Stream) (h device.Handles) {
		t.Helper()
		require.NoError(t, b.NativeStream(1, s, func(got device.Handles) error {
			h = got
			return nil
		}))
		var queue uintptr
		require.NoError(t, d.Queue(s, func(q uintptr) error {
			queue = q
			return nil
		}))
		assert.Equal(t, queue, h.Stream)
		assert.NotZero(t, h.Context)
		assert.NotZero(t, h.Device)
		return h
	}
	first := seen(device.DefaultStream)
	require.NoError(t, b.SetDefaultDevice(1))
	s, err := b.CreateStream()
	require.NoError(t, err)
	second := seen(s)
	assert.Equal(t, first.Context, second.Context)
	assert.Equal(t, first.Device, second.Device)
	assert.NotEqual(t, first.Stream, second.Stream)
	require.ErrorContains(t, b.NativeStream(2, device.DefaultStream, nil), "opencl: there is no device 2")
	require.ErrorContains(t, b.NativeStream(0, s, nil), "the memory is on")

	p, err := b.Alloc(1 << 20)
	require.NoError(t, err)
	buffer, ok := b.Buffer(p)
	require.True(t, ok)
	handle, offset, ok := b.NativeMemory(unsafe.Add(p, 4096))
	assert.True(t, ok)
	assert.Equal(t, buffer.Memory, handle)
	assert.Equal(t, buffer.Offset+4096, offset)
	require.NoError(t, b.Free(p))
	_, _, ok = b.NativeMemory(unsafe.Pointer(t))
	assert.False(t, ok)

	scratch, release, err := b.NativeScratch(1, s, 1001)
	require.NoError(t, err)
	require.NoError(t, b.Zero(scratch, 1001, s))
	release()
	again, release, err := b.NativeScratch(1, s, 1000)
	require.NoError(t, err)
	assert.Equal(t, scratch, again, "scratch is kept for the next call")
	release()
	_, _, err = b.NativeScratch(2, device.DefaultStream, 4)
	require.ErrorContains(t, err, "opencl: there is no device 2")
}
