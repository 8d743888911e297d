package devicetest

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

var eventChecks = []check{
	{"events_are_distinct_and_not_zero", func(t *testing.T, b device.Backend) {
		seen := make(map[device.Event]bool)
		for range 16 {
			e := createEvent(t, b)
			assert.NotZero(t, e)
			assert.Falsef(t, seen[e], "event %d was created twice", e)
			seen[e] = true
		}
	}},
	{"recorded_event_completes", func(t *testing.T, b device.Backend) {
		e := createEvent(t, b)
		require.NoError(t, b.RecordEvent(e, device.DefaultStream))
		assert.NoError(t, b.SyncEvent(e))
		assert.NoError(t, b.SyncEvent(e), "an event can be waited for again")
	}},
	{"event_can_be_recorded_again", func(t *testing.T, b device.Backend) {
		e := createEvent(t, b)
		for range 3 {
			require.NoError(t, b.RecordEvent(e, device.DefaultStream))
			assert.NoError(t, b.SyncEvent(e))
		}
	}},
	{"sync_of_an_unrecorded_event_is_an_error", func(t *testing.T, b device.Backend) {
		assert.Error(t, b.SyncEvent(createEvent(t, b)))
	}},
	{"use_of_the_zero_event_is_an_error", func(t *testing.T, b device.Backend) {
		assertNoEvent(t, b, 0)
	}},
	{"use_of_a_freed_event_is_an_error", func(t *testing.T, b device.Backend) {
		e, err := b.CreateEvent()
		require.NoError(t, err)
		require.NoError(t, b.RecordEvent(e, device.DefaultStream))
		require.NoError(t, b.FreeEvent(e))
		assertNoEvent(t, b, e)
	}},
	{"event_can_be_freed_without_a_wait", func(t *testing.T, b device.Backend) {
		for range 16 {
			e, err := b.CreateEvent()
			require.NoError(t, err)
			require.NoError(t, b.RecordEvent(e, device.DefaultStream))
			assert.NoError(t, b.FreeEvent(e))
		}
	}},
	{"goroutines_share_an_event", func(t *testing.T, b device.Backend) {
		e := createEvent(t, b)
		require.NoError(t, b.RecordEvent(e, device.DefaultStream))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					assert.NoError(t, b.RecordEvent(e, device.DefaultStream))
					assert.NoError(t, b.SyncEvent(e))
				}
			})
		}
		wg.Wait()
	}},
	{"goroutines_have_events_of_their_own", func(t *testing.T, b device.Backend) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					e, err := b.CreateEvent()
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, b.RecordEvent(e, device.DefaultStream))
					assert.NoError(t, b.SyncEvent(e))
					assert.NoError(t, b.FreeEvent(e))
				}
			})
		}
		wg.Wait()
	}},
}

// createEvent returns an event that is freed at the end of the test.
func createEvent(t *testing.T, b device.Backend) device.Event {
	t.Helper()
	e, err := b.CreateEvent()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.FreeEvent(e)) })
	return e
}

func assertNoEvent(t *testing.T, b device.Backend, e device.Event) {
	t.Helper()
	assert.Error(t, b.RecordEvent(e, device.DefaultStream), "record")
	assert.Error(t, b.SyncEvent(e), "sync")
	assert.Error(t, b.FreeEvent(e), "free")
}
