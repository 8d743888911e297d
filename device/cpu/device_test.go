package cpu

import (
	goruntime "runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

func TestSetDeviceErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		nodes []int
		give  int
		want  string
	}{
		{"negative", []int{0}, -1, "cpu: set device -1: want an index from 0 to 0, one for each NUMA node with memory"},
		{"one device", []int{0}, 1, "cpu: set device 1: want an index from 0 to 0, one for each NUMA node with memory"},
		{"index is no node number", []int{0, 8}, 8, "cpu: set device 8: want an index from 0 to 1, one for each NUMA node with memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := openOn(t, heapPager{}, tt.nodes...)
			require.EqualError(t, b.SetDevice(tt.give), tt.want)
			got, err := b.DeviceID()
			require.NoError(t, err)
			assert.Zero(t, got)
		})
	}
}

func TestCurrentDeviceDecidesTheNodeOfMemory(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 0, 8)
	onThread(func() {
		for _, index := range []int{1, 0, 1} {
			assert.NoError(t, b.SetDevice(index))
			d, err := b.Device()
			assert.NoError(t, err)
			assert.Equal(t, device.Device{Type: device.TypeCPU, Index: index}, d)
			block, err := b.Alloc(100)
			assert.NoError(t, err)
			assert.NoError(t, b.Free(block))
		}
		assert.NoError(t, b.SetDevice(0))
	})
	assert.Equal(t, []int{8, 0}, p.bound, "the third block reuses the first one's memory")
	assert.Zero(t, b.threads.Chosen(), "device 0 needs no memory of threads")
}

func TestOneNodeIsNotBound(t *testing.T) {
	t.Parallel()
	p := newFakePager()
	b := openOn(t, p, 3)
	require.NoError(t, b.Free(mustAlloc(t, b, 100)))
	assert.Empty(t, p.bound)
}

func TestStreamsRunOnTheirDevice(t *testing.T) {
	t.Parallel()
	b := openOn(t, heapPager{}, 0, 1, 2)
	var seen []int
	look := func() {
		index, _ := b.DeviceID()
		seen = append(seen, index)
	}
	var s device.Stream
	onThread(func() {
		assert.NoError(t, b.SetDevice(2))
		s = mustStream(t, b)
		assert.NoError(t, b.Submit(s, look))
		assert.NoError(t, b.Submit(s, func() { _ = b.SetDevice(1); panic("boom") }))
		assert.NoError(t, b.Submit(s, look))
		e := mustRecord(t, b, s)
		assert.EqualError(t, b.SyncEvent(e), "cpu: work in stream 2: panic: boom")

		assert.NoError(t, b.Submit(device.DefaultStream, func() { look(); panic("bang") }))
		e = mustRecord(t, b, device.DefaultStream)
		assert.EqualError(t, b.SyncEvent(e), "cpu: work in the default stream of device 2: panic: bang")
		assert.NoError(t, b.SetDevice(0))
	})
	assert.Equal(t, []int{2, 2, 2}, seen)

	require.NoError(t, b.Submit(s, look))
	require.NoError(t, b.FreeStream(s))
	assert.Equal(t, []int{2, 2, 2, 2}, seen, "a stream keeps the device on which it was made")
}

func TestStreamsLeaveNoDeviceBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(heapPager{}, func() []int { return []int{0, 1} })
		s := b.newStream(2, 1)
		for _, work := range []func(){func() {}, func() { panic("boom") }, func() { goruntime.Goexit() }} {
			require.True(t, s.submit(work))
			synctest.Wait()
			assert.Zero(t, b.threads.Chosen())
		}
	})
}
