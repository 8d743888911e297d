package cpu

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

func TestEventErrors(t *testing.T) {
	t.Parallel()
	b := open(t)
	stream := mustStream(t, b)
	freed, fresh := mustRecord(t, b, device.DefaultStream), mustRecord(t, b, stream)
	require.NoError(t, b.FreeEvent(freed))

	verbs := map[string]func(device.Event) error{
		"record": func(e device.Event) error { return b.RecordEvent(e, device.DefaultStream) },
		"sync":   b.SyncEvent,
		"free":   b.FreeEvent,
	}
	tests := []struct {
		name string
		give device.Event
		want string
	}{
		{"zero", 0, " event 0: CreateEvent of this backend did not return it"},
		{"unknown", 99, " event 99: CreateEvent of this backend did not return it"},
		{"handle of a stream", device.Event(stream), " event 2: CreateEvent of this backend did not return it"},
		{"freed", freed, " event 1: it is already freed"},
	}
	for verb, call := range verbs {
		for _, tt := range tests {
			t.Run(verb+" "+tt.name, func(t *testing.T) {
				require.EqualError(t, call(tt.give), "cpu: "+verb+tt.want)
			})
		}
	}

	unrecorded, err := b.CreateEvent()
	require.NoError(t, err)
	require.EqualError(t, b.SyncEvent(unrecorded), "cpu: sync event 5: it was never recorded; call RecordEvent first")
	require.EqualError(t, b.RecordEvent(fresh, 98), "cpu: record in stream 98: CreateStream of this backend did not return it")
	require.NoError(t, b.SyncEvent(fresh), "a failed record leaves the event where it was")
}

func TestFreeEventEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, gate, result := open(t), make(chan struct{}), make(chan error)
		require.NoError(t, b.Submit(device.DefaultStream, func() { <-gate }))
		e := mustRecord(t, b, device.DefaultStream)
		for range 3 {
			go func() { result <- b.SyncEvent(e) }()
		}
		synctest.Wait()
		require.NoError(t, b.FreeEvent(e))
		for range 3 {
			require.EqualError(t, <-result, "cpu: sync event 1: it was freed during the wait")
		}
		close(gate)
	})
}

func TestRecordAgainKeepsEarlierWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, first, second, result := open(t), make(chan struct{}), make(chan struct{}), make(chan error, 2)
		require.NoError(t, b.Submit(device.DefaultStream, func() { <-first }))
		e := mustRecord(t, b, device.DefaultStream)
		go func() { result <- b.SyncEvent(e) }()
		synctest.Wait()

		require.NoError(t, b.Submit(device.DefaultStream, func() { <-second }))
		require.NoError(t, b.RecordEvent(e, device.DefaultStream))
		go func() { result <- b.SyncEvent(e) }()
		synctest.Wait()
		assert.Empty(t, result)

		close(first)
		synctest.Wait()
		assert.Len(t, result, 1, "the wait for the earlier place ends, the other goes on")
		close(second)
		synctest.Wait()
		assert.Len(t, result, 2)
		require.NoError(t, <-result)
		require.NoError(t, <-result)
	})
}

func TestEventInAnIdleStreamCompletesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := open(t)
		e := mustRecord(t, b, device.DefaultStream)
		require.NoError(t, b.SyncEvent(e))
		stream := mustStream(t, b)
		require.NoError(t, b.RecordEvent(e, stream))
		require.NoError(t, b.FreeStream(stream))
		require.NoError(t, b.SyncEvent(e), "the event outlives the stream")
	})
}
