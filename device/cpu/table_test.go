package cpu

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
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
}

func TestHandlesRunOut(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.handles.events.next = math.MaxUint - math.MaxUint%2 - 1
	b.handles.streams.next = math.MaxUint - math.MaxUint%2
	_, err := b.CreateEvent()
	require.NoError(t, err, "the last odd number but one")
	_, err = b.CreateStream()
	require.NoError(t, err, "the last even number")

	e, err := b.CreateEvent()
	require.NoError(t, err, "the last odd number")
	assert.Equal(t, device.Event(math.MaxUint), e)
	_, err = b.CreateEvent()
	require.EqualError(t, err, "cpu: create event: all handles are used up; make a new backend")
	_, err = b.CreateStream()
	require.EqualError(t, err, "cpu: create stream: all handles are used up; make a new backend")
}
