package meter_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
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

	_, err = work(meter.New(t.Context(), "the file a", "give --more", meter.Budget{Steps: 7, Unit: "values"}), 1)
	require.EqualError(t, err, "the file a takes more than 7 values: give --more")

	ctx, cancel := context.WithCancelCause(t.Context())
	m := meter.New(ctx, "the file a", "give --more", meter.Budget{})
	require.NoError(t, m.Spend(1))
	gone := errors.New("gone")
	cancel(gone)
	steps, err := work(m, 1)
	require.ErrorIs(t, err, gone)
	assert.LessOrEqual(t, steps, 4096)
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int64{{101}, {50, 51}, {-1}, {math.MaxInt64}, {50, math.MaxInt64}, {0, 100, 1}} {
		m := meter.New(t.Context(), "the file a", "give --more", meter.Budget{Bytes: 100})
		for _, n := range sizes[:len(sizes)-1] {
			require.NoError(t, m.Allocate(n), sizes)
		}
		err := m.Allocate(sizes[len(sizes)-1])
		require.EqualError(t, err, "the file a takes more than 100 bytes: give --more", "%v", sizes)
		assert.Equal(t, err, m.Spend(0), "again")
		assert.Equal(t, err, m.Check(), "again")
	}
	m := meter.New(t.Context(), "the file a", "give --more", meter.Budget{})
	require.NoError(t, m.Allocate(1<<50), "no limit")
}

// endless counts what is read of it and calls each time.
type endless struct {
	calls int
	each  func(calls int)
}

func (e *endless) Read(b []byte) (int, error) {
	e.calls++
	e.each(e.calls)
	return len(b), nil
}

func TestReader(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	in := &endless{each: func(calls int) {
		if calls == 3 {
			cancel(gone)
		}
	}}
	m := meter.New(ctx, "the file a", "give --more", meter.Budget{})
	n, err := io.ReadFull(m.Reader(in), make([]byte, 100<<20))
	require.ErrorIs(t, err, gone)
	assert.Equal(t, 3, in.calls)
	assert.LessOrEqual(t, n, 4<<20)
	require.ErrorIs(t, m.Spend(1), gone, "again")
	require.ErrorIs(t, m.ReadAt(bytes.NewReader(make([]byte, 9)), make([]byte, 2), 1), gone, "again")

	m = meter.New(t.Context(), "the file a", "give --more", meter.Budget{})
	b := make([]byte, 3)
	require.NoError(t, m.ReadAt(strings.NewReader("abcdef"), b, 3))
	assert.Equal(t, "def", string(b))
	for _, off := range []int64{4, 6, 100} {
		require.ErrorIs(t, m.ReadAt(strings.NewReader("abcdef"), b, off), io.ErrUnexpectedEOF)
	}
}
