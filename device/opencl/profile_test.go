package opencl_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/device/opencl/internal/cl"
)

// take returns the work of a profile.
func take(t *testing.T, p device.Profile) map[int]device.Work {
	t.Helper()
	work, err := p.Take()
	require.NoError(t, err)
	return work
}

func TestProfileOfKernels(t *testing.T) {
	b := open(t)
	k := kernelOf(t, b, 0, scale, "scale")
	x := vector(t, b, make([]float32, 1<<16)...)
	p, err := b.Profile(0)
	require.NoError(t, err)
	launch := func(n int) {
		for range n {
			require.NoError(t, k.Launch(0, []int{1 << 16}, []int{64}, opencl.Buf(x), opencl.F32(2)))
		}
	}
	launch(1)
	p.Label(7)
	launch(2)
	p.Label(3)
	launch(1)
	x.Float64s()
	work := take(t, p)
	assert.Equal(t, map[int]int{7: 1, 3: 2, 0: 2}, commands(work), "a kernel and a copy have no label")
	for label, w := range work {
		assert.Positive(t, w.Busy, label)
	}
	assert.Empty(t, take(t, p), "what was taken is forgotten")
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	launch(1)
	x.Float64s()
	assert.Empty(t, take(t, p))
}

func commands(work map[int]device.Work) map[int]int {
	n := map[int]int{}
	for label, w := range work {
		n[label] = w.Commands
	}
	return n
}

// Commands that have not completed are taken later, with their labels.
func TestProfileDoesNotWait(t *testing.T) {
	b := open(t)
	x := vector(t, b, 1, 2)
	p, err := b.Profile(0)
	require.NoError(t, err)
	release := make(chan struct{})
	require.NoError(t, b.Submit(0, func() { <-release }))
	require.NoError(t, b.Zero(x.Pointer(), 8, 0))
	p.Label(5)
	assert.Empty(t, take(t, p))
	require.NoError(t, b.Zero(x.Pointer(), 8, 0))
	close(release)
	x.Float64s()
	assert.Equal(t, map[int]int{5: 1, 0: 2}, commands(take(t, p)))
	require.NoError(t, p.Close())
}

// A library that queues work of its own is measured between two markers.
func TestProfileOfAQueue(t *testing.T) {
	b := open(t)
	d, err := b.Of(0)
	require.NoError(t, err)
	x := vector(t, b, 1, 2)
	p, err := b.Profile(0)
	require.NoError(t, err)
	require.NoError(t, d.Queue(0, func(queue uintptr) error {
		assert.NotZero(t, queue)
		return nil
	}))
	require.ErrorIs(t, d.Queue(0, func(uintptr) error { return assert.AnError }), assert.AnError)
	x.Float64s()
	assert.Equal(t, map[int]int{0: 2}, commands(take(t, p)))
	require.NoError(t, p.Close())
}

func TestProfilesOfADevice(t *testing.T) {
	b := open(t)
	p, err := b.Profile(0)
	require.NoError(t, err)
	_, err = b.Profile(0)
	require.ErrorContains(t, err, "profiled already")
	require.NoError(t, p.Close())
	p, err = b.Profile(0)
	require.NoError(t, err, "another one may follow")
	_, err = b.Profile(99)
	require.ErrorContains(t, err, "no device 99")
	x := vector(t, b, 1, 2)
	x.Float64s()
	released := 0
	defer b.Inject(cl.Flush, cl.Success, 0, 0)() // ends the watch
	b.Watch(func(fn cl.Function) {
		if fn == cl.ReleaseEvent {
			released++
		}
	})
	require.NoError(t, p.Close())
	assert.Equal(t, 3, released, "the events of zeroing and of two copies are given back")
}

func TestProfileFails(t *testing.T) {
	b := open(t)
	x := vector(t, b, 1, 2)
	p, err := b.Profile(0)
	require.NoError(t, err)
	x.Float64s()
	restore := b.Inject(cl.GetEventProfilingInfo, cl.OutOfHostMemory, 0, 1)
	_, err = p.Take()
	restore()
	require.ErrorContains(t, err, "clGetEventProfilingInfo")
	assert.Equal(t, map[int]int{0: 1}, commands(take(t, p)))
	d, err := b.Of(0)
	require.NoError(t, err)
	for after := range 2 {
		restore = b.Inject(cl.EnqueueMarkerWithWaitList, cl.OutOfHostMemory, after, 1)
		require.Error(t, d.Queue(0, func(uintptr) error { return nil }))
		restore()
	}
	restore = b.Inject(cl.EnqueueReadBuffer, cl.OutOfResources, 0, 1)
	require.Error(t, b.CopyOut(make([]byte, 8), x.Pointer(), 0))
	restore()
	assert.Empty(t, take(t, p))
}

// Many launch while one takes the work: every command is taken once.
func TestProfileHammer(t *testing.T) {
	b := open(t)
	k := kernelOf(t, b, 0, scale, "scale")
	x := vector(t, b, 1, 2)
	p, err := b.Profile(0)
	require.NoError(t, err)
	const callers, launches = 4, 100
	var wg sync.WaitGroup
	for label := range callers {
		wg.Go(func() {
			for range launches {
				assert.NoError(t, k.Launch(0, []int{2}, nil, opencl.Buf(x), opencl.F32(1)))
				p.Label(label)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	taken := 0
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
			x.Float64s()
		default:
		}
		for _, w := range take(t, p) {
			taken += w.Commands
		}
	}
	assert.Equal(t, callers*launches+1, taken, "with the copy")
	require.NoError(t, p.Close())
}
