package opencl_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// content returns size bytes of one value.
func content(size int, c byte) []byte { return bytes.Repeat([]byte{c}, size) }

func TestBlocksAreZeroAlsoWhenUsedBefore(t *testing.T) {
	b := open(t)
	for range 3 {
		for _, size := range []int{1, 63, 64, 65, 1000, 4096, 1<<18 + 1, 3<<20 + 5} {
			p, err := b.Alloc(uint64(size))
			require.NoError(t, err)
			got := content(size, 1)
			require.NoError(t, b.CopyOut(got, p, 0))
			assert.Equalf(t, content(size, 0), got, "%d bytes", size)
			require.NoError(t, b.CopyIn(p, content(size, 0xff), 0))
			require.NoError(t, b.Free(p))
		}
	}
}

// A block that is freed while a stream has work for it is used again after that work.
func TestFreedBlockWaitsForStreams(t *testing.T) {
	b := open(t)
	const size = 1 << 20
	from, err := b.Alloc(size)
	require.NoError(t, err)
	to, err := b.Alloc(size)
	require.NoError(t, err)
	require.NoError(t, b.CopyIn(from, content(size, 7), 0))
	s, err := b.CreateStream()
	require.NoError(t, err)
	release := make(chan struct{})
	require.NoError(t, b.Submit(s, func() { <-release }))
	require.NoError(t, b.CopyOn(to, from, size, s))
	require.NoError(t, b.Free(from))
	again, err := b.Alloc(size)
	require.NoError(t, err)
	assert.Equal(t, from, again, "the block is used again")
	close(release)
	got := content(size, 1)
	require.NoError(t, b.CopyOut(got, again, 0))
	assert.Equal(t, content(size, 0), got)
	require.NoError(t, b.CopyOut(got, to, s))
	assert.Equal(t, content(size, 7), got, "the copy ran before the block became zero")
	require.NoError(t, b.FreeStream(s))
	require.NoError(t, b.Free(to))
	require.NoError(t, b.Free(again))
}

// A copy in one stream does not wait for work in another.
func TestCopyRunsBesideWork(t *testing.T) {
	b := open(t)
	p, err := b.Alloc(64)
	require.NoError(t, err)
	work, err := b.CreateStream()
	require.NoError(t, err)
	copies, err := b.CreateStream()
	require.NoError(t, err)
	release := make(chan struct{})
	require.NoError(t, b.Submit(work, func() { <-release }))
	require.NoError(t, b.CopyIn(p, content(64, 3), copies))
	got := content(64, 0)
	require.NoError(t, b.CopyOut(got, p, copies))
	assert.Equal(t, content(64, 3), got)
	close(release)
	require.NoError(t, b.FreeStream(work))
	require.NoError(t, b.FreeStream(copies))
	require.NoError(t, b.Free(p))
}

func TestPanicInStream(t *testing.T) {
	b := open(t)
	ran := false
	require.NoError(t, b.Submit(0, func() { panic("boom") }))
	require.NoError(t, b.Submit(0, func() { ran = true }))
	e, err := b.CreateEvent()
	require.NoError(t, err)
	require.NoError(t, b.RecordEvent(e, 0))
	require.ErrorContains(t, b.SyncEvent(e), "panic: boom")
	require.NoError(t, b.SyncEvent(e), "a failure is returned once")
	assert.True(t, ran, "the stream goes on")
	require.NoError(t, b.FreeEvent(e))
}

func TestElapsed(t *testing.T) {
	b := open(t)
	from, err := b.CreateEvent()
	require.NoError(t, err)
	to, err := b.CreateEvent()
	require.NoError(t, err)
	_, err = b.Elapsed(from, to)
	require.ErrorContains(t, err, "never recorded")
	p, err := b.Alloc(16 << 20)
	require.NoError(t, err)
	require.NoError(t, b.RecordEvent(from, 0))
	require.NoError(t, b.Zero(p, 16<<20, 0))
	require.NoError(t, b.RecordEvent(to, 0))
	require.NoError(t, b.SyncEvent(to))
	took, err := b.Elapsed(from, to)
	require.NoError(t, err)
	assert.Positive(t, took)
	back, err := b.Elapsed(to, from)
	require.NoError(t, err)
	assert.Equal(t, -took, back)
	require.NoError(t, b.FreeEvent(from))
	require.NoError(t, b.FreeEvent(to))
	require.NoError(t, b.Free(p))
}

func TestSetDevice(t *testing.T) {
	b := twoDevices(t)
	require.ErrorContains(t, b.SetDefaultDevice(9), "want an index from 0 to 1: 0 is ")
	require.NoError(t, b.SetDefaultDevice(1))
	p, err := b.Alloc(100)
	require.NoError(t, err)
	buffer, ok := b.Buffer(p)
	require.True(t, ok)
	assert.Equal(t, 1, buffer.Device.Info().Index)
	require.NoError(t, b.Free(p))
}

// A small copy to the device, and a late read from it, do not wait for the work before them.
func TestCopiesDoNotWait(t *testing.T) {
	b := open(t)
	p, err := b.Alloc(64)
	require.NoError(t, err)
	release := make(chan struct{})
	require.NoError(t, b.Submit(0, func() { <-release }))
	require.NoError(t, b.CopyIn(p, content(64, 3), 0))
	wait, err := b.ReadLater(p, 64, 0)
	require.NoError(t, err)
	require.NoError(t, b.CopyIn(p, content(64, 4), 0))
	close(release)
	got, err := wait()
	require.NoError(t, err)
	assert.Equal(t, content(64, 3), got)
	require.NoError(t, b.CopyOut(got, p, 0))
	assert.Equal(t, content(64, 4), got)
	require.NoError(t, b.Free(p))
}
