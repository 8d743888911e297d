//go:build invariants

package opregistry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
)

func TestScratchIsGuarded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 16, 100, 128} {
		x := opregistry.NewExec(nil, 0)
		buf := x.Scratch(n)
		for _, v := range buf {
			assert.True(t, v != v, "scratch begins as NaN")
		}
		buf[:n+1][n] = 1
		assert.PanicsWithValue(t, fmt.Sprintf("BUG: opregistry: scratch of %d float32s was written at index %d", n, n), func() { x.Release(buf) })
	}
}

func TestScratchIsReleasedOnce(t *testing.T) {
	t.Parallel()
	x := opregistry.NewExec(nil, 0)
	buf := x.Scratch(10)
	x.Release(buf)
	assert.Panics(t, func() { x.Release(buf) })
	assert.Panics(t, func() { x.Release(make([]float32, 16)) })
}

func TestLeakCountsWhatIsNotReleased(t *testing.T) {
	t.Parallel()
	x := opregistry.NewExec(nil, 0).ForCall()
	buf := x.Scratch(10)
	slices, floats := x.Leak()
	assert.Equal(t, []int{1, 10}, []int{slices, floats})
	x.Release(buf)
	slices, floats = x.Leak()
	assert.Equal(t, []int{0, 0}, []int{slices, floats})
}
