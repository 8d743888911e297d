package divergence

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMinimise(t *testing.T) {
	items := make([]int, 23)
	for i := range items {
		items[i] = i
	}
	for _, faults := range [][]int{{0}, {22}, {7}, {0, 22}, {3, 4, 19}, {1, 5, 9, 13, 17, 21}, items} {
		calls := 0
		got, err := minimise(items, func(set []int) (bool, error) {
			calls++
			return !slices.ContainsFunc(faults, func(f int) bool { return !slices.Contains(set, f) }), nil
		})
		require.NoError(t, err)
		slices.Sort(got)
		assert.Equal(t, faults, got)
		if len(faults) == 1 {
			assert.LessOrEqual(t, calls, 10, "one fault is found by halving")
		}
	}
}

func TestMinimiseEnds(t *testing.T) {
	fault := errors.New("no memory")
	_, err := minimise([]int{1, 2, 3}, func([]int) (bool, error) { return false, fault })
	require.ErrorIs(t, err, fault)
	got, err := minimise([]int{1}, func([]int) (bool, error) { panic("not called for one item") })
	require.NoError(t, err)
	assert.Equal(t, []int{1}, got)
}
