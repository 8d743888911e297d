package cpu

import (
	"errors"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

func TestStreamErrors(t *testing.T) {
	t.Parallel()
	b := open(t)
	freed, live := mustStream(t, b), mustStream(t, b)
	require.NoError(t, b.FreeStream(freed))
	e := mustRecord(t, b, live)

	verbs := map[string]func(device.Stream) error{
		"record in": func(s device.Stream) error { return b.RecordEvent(e, s) },
		"submit to": func(s device.Stream) error { return b.Submit(s, func() {}) },
		"free":      b.FreeStream,
	}
	tests := []struct {
		name string
		give device.Stream
		want string
	}{
		{"unknown", 98, " stream 98: CreateStream of this backend did not return it"},
		{"handle of an event", device.Stream(e), " stream 1: CreateStream of this backend did not return it"},
		{"freed", freed, " stream 2: it is already freed"},
	}
	for verb, call := range verbs {
		for _, tt := range tests {
			t.Run(verb+" "+tt.name, func(t *testing.T) {
				require.EqualError(t, call(tt.give), "cpu: "+verb+tt.want)
			})
		}
	}
	require.EqualError(t, b.FreeStream(device.DefaultStream), "cpu: free stream 0: the default stream cannot be freed")
	require.EqualError(t, b.Submit(live, nil), "cpu: submit to stream 4: the function is nil")
}

func TestStreamsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate := open(t), make(chan struct{})
		blocked, free := mustStream(t, b), mustStream(t, b)
		require.NoError(t, b.Submit(blocked, func() { <-gate }))
		ran := false
		require.NoError(t, b.Submit(free, func() { ran = true }))
		require.NoError(t, b.SyncEvent(mustRecord(t, b, free)))
		assert.True(t, ran)
		close(gate)
	})
}

func TestStreamWithoutWorkHasNoGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New()
		for range 3 {
			s := mustStream(t, b)
			require.NoError(t, b.Submit(s, func() {}))
			require.NoError(t, b.Submit(device.DefaultStream, func() {}))
		}
		// The test would not end if a goroutine were left in the bubble.
	})
}

func TestWorkCanSubmitWork(t *testing.T) {
	t.Parallel()
	b := open(t)
	var order []int
	require.NoError(t, b.Submit(device.DefaultStream, func() {
		for i := range 3 {
			assert.NoError(t, b.Submit(device.DefaultStream, func() { order = append(order, i) }))
		}
	}))
	require.NoError(t, b.SyncEvent(mustRecord(t, b, device.DefaultStream)))
	require.NoError(t, b.SyncEvent(mustRecord(t, b, device.DefaultStream)))
	assert.Equal(t, []int{0, 1, 2}, order)
}

func TestFailuresReachTheNextSyncBehindThem(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	tests := []struct {
		name string
		give func()
		want string
	}{
		{"panic with an error", func() { panic(errBoom) }, "cpu: work in stream 2: panic: boom"},
		{"panic with text", func() { panic("bang") }, "cpu: work in stream 2: panic: bang"},
		{"panic with nil", func() { panic(nil) }, "cpu: work in stream 2: panic: " + new(goruntime.PanicNilError).Error()},
		{"goexit", func() { goruntime.Goexit() }, "cpu: work in stream 2: runtime.Goexit was called"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			s, ran := mustStream(t, b), false
			gate := make(chan struct{})
			require.NoError(t, b.Submit(s, func() { <-gate }))
			before := mustRecord(t, b, s)
			require.NoError(t, b.Submit(s, tt.give))
			require.NoError(t, b.Submit(s, func() { ran = true }))
			after, last := mustRecord(t, b, s), mustRecord(t, b, s)
			close(gate)

			require.NoError(t, b.SyncEvent(before))
			err := b.SyncEvent(last)
			require.EqualError(t, err, tt.want)
			assert.True(t, ran, "the stream continues after a failure")
			require.NoError(t, b.SyncEvent(after), "a failure is reported once")

			workErr, ok := errors.AsType[*WorkError](err)
			require.True(t, ok)
			assert.Equal(t, s, workErr.Stream)
			assert.Contains(t, string(workErr.Stack), "cpu.TestFailuresReachTheNextSyncBehindThem")
		})
	}
}

func TestFailureKeepsTheErrorThatPanicked(t *testing.T) {
	t.Parallel()
	b, errBoom := open(t), errors.New("boom")
	require.NoError(t, b.Submit(device.DefaultStream, func() { panic(errBoom) }))
	assert.ErrorIs(t, b.SyncEvent(mustRecord(t, b, device.DefaultStream)), errBoom)
}

func TestFailuresStayInTheirStream(t *testing.T) {
	t.Parallel()
	b := open(t)
	broken, sound := mustStream(t, b), mustStream(t, b)
	require.NoError(t, b.Submit(broken, func() { panic("boom") }))
	require.NoError(t, b.SyncEvent(mustRecord(t, b, sound)))
	require.EqualError(t, b.FreeStream(broken), "cpu: work in stream 2: panic: boom")
	require.EqualError(t, b.FreeStream(broken), "cpu: free stream 2: it is already freed")
}

func TestManyFailuresAreCounted(t *testing.T) {
	t.Parallel()
	b, gate := open(t), make(chan struct{})
	submit := func(count int) {
		for range count {
			require.NoError(t, b.Submit(device.DefaultStream, func() { panic("boom") }))
		}
	}
	require.NoError(t, b.Submit(device.DefaultStream, func() { <-gate }))
	submit(maxFailures)
	first := mustRecord(t, b, device.DefaultStream)
	submit(5)
	last := mustRecord(t, b, device.DefaultStream)
	close(gate)
	b.handles.defaults[0].wait()

	const one = "cpu: work in the default stream of device 0: panic: boom"
	require.EqualError(t, b.SyncEvent(first), strings.Repeat(one+"\n", maxFailures-1)+one)
	require.EqualError(t, b.SyncEvent(last), "cpu: 5 further failures in the same stream")
	require.NoError(t, b.SyncEvent(last))
}

func TestFreeStreamRefusesWorkWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate, result := open(t), make(chan struct{}), make(chan error)
		s := mustStream(t, b)
		e, err := b.CreateEvent()
		require.NoError(t, err)
		require.NoError(t, b.Submit(s, func() { <-gate }))
		go func() { result <- b.FreeStream(s) }()
		synctest.Wait()

		require.EqualError(t, b.Submit(s, func() {}), "cpu: submit to stream 2: it is already freed")
		require.EqualError(t, b.RecordEvent(e, s), "cpu: record in stream 2: it is already freed")
		require.EqualError(t, b.FreeStream(s), "cpu: free stream 2: it is already freed")
		close(gate)
		require.NoError(t, <-result)
	})
}

func TestStreamClosedDuringTheCall(t *testing.T) {
	t.Parallel()
	b := New()
	s, err := b.stream("submit to", mustStream(t, b))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.False(t, s.submit(func() {}))
	require.ErrorIs(t, b.refusal("submit to", s), device.ErrClosed)
	require.EqualError(t, b.refusal("submit to", s), "device: backend is closed: submit to stream")
}

func TestStreamHammer(t *testing.T) {
	t.Parallel()
	b := open(t)
	shared := mustStream(t, b)
	start, count := make(chan struct{}), 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			<-start
			for i := range 100 {
				assert.NoError(t, b.Submit(shared, func() { count++ }))
				own, err := b.CreateStream()
				assert.NoError(t, err)
				done := false
				assert.NoError(t, b.Submit(own, func() { done = true }))
				e, err := b.CreateEvent()
				assert.NoError(t, err)
				assert.NoError(t, b.RecordEvent(e, own))
				if i%2 == 0 {
					assert.NoError(t, b.SyncEvent(e))
				}
				assert.NoError(t, b.FreeStream(own))
				assert.True(t, done)
				assert.NoError(t, b.FreeEvent(e))
			}
		})
	}
	close(start)
	wg.Wait()
	require.NoError(t, b.SyncEvent(mustRecord(t, b, shared)))
	assert.Equal(t, 800, count)
}
