package devicetest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
)

var profileChecks = []check{
	{"commands_are_measured_by_label", withCopier(func(t *testing.T, b copying) {
		p := profile(t, b)
		at := alloc(t, b, 1<<16)
		p.Label(1)
		write(t, b, at, filled(1<<16, 3))
		p.Label(2)
		assert.Equal(t, filled(1<<16, 3), read(t, b, at, 1<<16))
		work, err := p.Take()
		require.NoError(t, err)
		for _, label := range []int{2, 0} {
			assert.Positive(t, work[label].Commands, "label %d", label)
			assert.Positive(t, work[label].Busy, "label %d", label)
			assert.GreaterOrEqual(t, int64(work[label].Queued), int64(0), "label %d", label)
		}
		work, err = p.Take()
		require.NoError(t, err)
		assert.Empty(t, work, "what was taken is forgotten")
	})},
	{"profile_can_be_closed_twice", withCopier(func(t *testing.T, b copying) {
		p := profile(t, b)
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
		at := alloc(t, b, 64)
		write(t, b, at, filled(64, 3))
		work, err := p.Take()
		require.NoError(t, err)
		assert.Empty(t, work)
	})},
	{"profile_of_a_device_that_is_not_there", withCopier(func(t *testing.T, b copying) {
		profiler, ok := device.As[device.Profiler](b)
		if !ok {
			t.Skip("the backend does not measure commands")
		}
		_, err := profiler.Profile(1 << 20)
		assert.Error(t, err)
	})},
}

// profile returns a profile of the current device that is closed at the end of the test, or skips
// the test.
func profile(t *testing.T, b device.Backend) device.Profile {
	t.Helper()
	profiler, ok := device.As[device.Profiler](b)
	if !ok {
		t.Skip("the backend does not measure commands")
	}
	index, err := b.DeviceID()
	require.NoError(t, err)
	p, err := profiler.Profile(index)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}
