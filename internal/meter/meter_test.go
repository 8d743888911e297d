package meter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// work spends steps until an error.
func work(m *meter.Meter, each int) (steps int, err error) {
	for err == nil {
		steps += each
		err = m.Spend(each)
	}
	return steps, err
}

func TestMeter(t *testing.T) {
	t.Parallel()
	limit := &meter.Error{}
	for _, each := range []int{1, 3, 5000, 1 << 40} {
		m := meter.New(t.Context(), "the file a", "give --more", meter.Budget{Steps: 10_000})
		steps, err := work(m, each)
		require.ErrorAs(t, err, &limit)
		require.EqualError(t, err, "the file a takes more than 10000 steps: give --more")
		assert.Greater(t, steps, 10_000)
		assert.LessOrEqual(t, steps, 10_000+each)
		assert.Equal(t, err, m.Spend(0), "again")
	}
	_, err := work(meter.New(t.Context(), "the file a", "give --more", meter.Budget{Time: time.Nanosecond}), 1)
	require.EqualError(t, err, "the file a takes more than 1ns: give --more")

	ctx, cancel := context.WithCancelCause(t.Context())
	m := meter.New(ctx, "the file a", "give --more", meter.Budget{})
	require.NoError(t, m.Spend(1))
	gone := errors.New("gone")
	cancel(gone)
	steps, err := work(m, 1)
	require.ErrorIs(t, err, gone)
	assert.LessOrEqual(t, steps, 4096)
}
