package devicetest

import (
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

// queueing is a backend that can create streams.
type queueing interface {
	device.Backend
	device.StreamQueue
}

var streamChecks = []check{
	{"streams_are_distinct_and_not_the_default", withStreams(func(t *testing.T, b queueing) {
		seen := make(map[device.Stream]bool)
		for range 8 {
			s := createStream(t, b)
			assert.NotEqual(t, device.DefaultStream, s)
			assert.Falsef(t, seen[s], "stream %d was created twice", s)
			seen[s] = true
		}
	})},
	{"work_runs_in_order", withStreams(func(t *testing.T, b queueing) {
		for _, s := range []device.Stream{device.DefaultStream, createStream(t, b)} {
			var order []int
			for i := range 100 {
				require.NoError(t, b.Submit(s, func() { order = append(order, i) }))
			}
			finish(t, b, s)
			require.Len(t, order, 100)
			for i, got := range order {
				require.Equal(t, i, got)
			}
		}
	})},
	{"submit_does_not_wait_for_the_work", withStreams(func(t *testing.T, b queueing) {
		s, work := createStream(t, b), newSlowWork(t)
		require.NoError(t, b.Submit(s, work.run))
		work.release()
		finish(t, b, s)
	})},
	{"event_completes_with_the_work_before_it", withStreams(func(t *testing.T, b queueing) {
		s, e := createStream(t, b), createEvent(t, b)
		for range waitRounds {
			before, after := newSlowWork(t), newSlowWork(t)
			require.NoError(t, b.Submit(s, before.run))
			require.NoError(t, b.RecordEvent(e, s))
			require.NoError(t, b.Submit(s, after.run))
			assertWaits(t, before, func() error { return b.SyncEvent(e) })
			after.release()
		}
	})},
	{"recording_again_moves_the_event", withStreams(func(t *testing.T, b queueing) {
		s, e := createStream(t, b), createEvent(t, b)
		for range waitRounds {
			between := newSlowWork(t)
			require.NoError(t, b.RecordEvent(e, s))
			require.NoError(t, b.Submit(s, between.run))
			require.NoError(t, b.RecordEvent(e, s))
			assertWaits(t, between, func() error { return b.SyncEvent(e) })
		}
	})},
	{"free_waits_for_the_work", withStreams(func(t *testing.T, b queueing) {
		for range waitRounds {
			s, err := b.CreateStream()
			require.NoError(t, err)
			work := newSlowWork(t)
			require.NoError(t, b.Submit(s, work.run))
			assertWaits(t, work, func() error { return b.FreeStream(s) })
		}
	})},
	{"use_of_a_freed_stream_is_an_error", withStreams(func(t *testing.T, b queueing) {
		s, err := b.CreateStream()
		require.NoError(t, err)
		require.NoError(t, b.FreeStream(s))
		assert.Error(t, b.FreeStream(s), "free")
		assert.Error(t, b.Submit(s, func() {}), "submit")
		assert.Error(t, b.RecordEvent(createEvent(t, b), s), "record")
	})},
	{"free_of_the_default_stream_is_an_error", withStreams(func(t *testing.T, b queueing) {
		assert.Error(t, b.FreeStream(device.DefaultStream))
		finish(t, b, device.DefaultStream)
	})},
	{"goroutines_share_a_stream", withStreams(func(t *testing.T, b queueing) {
		s, count := createStream(t, b), 0
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 50 {
					assert.NoError(t, b.Submit(s, func() { count++ }))
				}
			})
		}
		wg.Wait()
		finish(t, b, s)
		assert.Equal(t, 8*50, count)
	})},
}

// slowWork is work for a stream that ends only after it is released.
type slowWork struct {
	released chan struct{}
	release  func()
	done     atomic.Bool
}

// newSlowWork returns work that is released at the end of the test if not before. That happens
// before the streams that were created earlier are freed.
func newSlowWork(t *testing.T) *slowWork {
	t.Helper()
	released := make(chan struct{})
	w := &slowWork{released: released, release: sync.OnceFunc(func() { close(released) })}
	t.Cleanup(w.release)
	return w
}

func (w *slowWork) run() {
	<-w.released
	w.done.Store(true)
}

// waitRounds is how often a wait is checked: one that returns too early can be lucky and find the
// work done.
const waitRounds = 20

// assertWaits checks that wait does not return before the work is done. The work is released some
// time after wait is called.
func assertWaits(t *testing.T, w *slowWork, wait func() error) {
	t.Helper()
	go func() {
		for range 1000 {
			goruntime.Gosched()
		}
		w.release()
	}()
	require.NoError(t, wait())
	require.True(t, w.done.Load(), "it returned before the work was done")
}

// withStreams turns a check of streams into a check of any backend, which is skipped for backends
// that cannot create streams.
func withStreams(run func(t *testing.T, b queueing)) func(*testing.T, device.Backend) {
	return func(t *testing.T, b device.Backend) {
		q, ok := b.(queueing)
		if !ok {
			t.Skipf("backend %s is no device.StreamQueue", b.Name())
		}
		run(t, q)
	}
}

// createStream returns a stream that is freed at the end of the test.
func createStream(t *testing.T, b queueing) device.Stream {
	t.Helper()
	s, err := b.CreateStream()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.FreeStream(s)) })
	return s
}

// finish waits for the work in the stream.
func finish(t *testing.T, b queueing, s device.Stream) {
	t.Helper()
	e := createEvent(t, b)
	require.NoError(t, b.RecordEvent(e, s))
	require.NoError(t, b.SyncEvent(e))
}
