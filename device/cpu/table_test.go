package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device/internal/driver"
)

func TestHandlesOfAllKindsDiffer(t *testing.T) {
	t.Parallel()
	b := open(t)
	seen := make(map[uintptr]bool)
	for range 50 {
		e, err := b.CreateEvent()
		require.NoError(t, err)
		s, err := b.CreateStream()
		require.NoError(t, err)
		for _, h := range []uintptr{uintptr(e), uintptr(s)} {
			assert.NotZero(t, h)
			assert.Falsef(t, seen[h], "handle %d is used twice", h)
			seen[h] = true
		}
		require.NoError(t, b.FreeEvent(e))
		require.NoError(t, b.FreeStream(s))
	}
	assert.Empty(t, b.handles.events.Live)
	assert.Empty(t, b.handles.streams.Live)
}

func TestHandlesRunOut(t *testing.T) {
	t.Parallel()
	b := open(t)
	const limit = math.MaxUint - driver.Step
	b.handles.events.Next, b.handles.streams.Next = limit, limit
	e, err := b.CreateEvent()
	require.NoError(t, err)
	s, err := b.CreateStream()
	require.NoError(t, err)
	for range 2 {
		_, err = b.CreateEvent()
		require.EqualError(t, err, "cpu: create event: all handles are used up; make a new backend")
		_, err = b.CreateStream()
		require.EqualError(t, err, "cpu: create stream: all handles are used up; make a new backend")
	}
	require.NoError(t, b.RecordEvent(e, s), "the last handles work")
	require.NoError(t, b.SyncEvent(e))
}
