package stepbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A step has its micro batches and one change of the weights; a run evaluates on its way and at its
// end, where it may take more.
func TestLengths(t *testing.T) {
	t.Parallel()
	const second = time.Second
	one := lengths{Steps: 100, Global: 4, Micro: 4, Every: 10, Windows: 2, Last: 40}
	assert.Equal(t, 10*second, one.step(10*second, 2*second))
	assert.Equal(t, (9*2+10)*second, one.evaluations(second), "nine on the way, forty windows at the end")
	eight := one
	eight.Global, eight.Last = 32, 0
	assert.Equal(t, 66*second, eight.step(10*second, 2*second))
	assert.Equal(t, 10*2*second, eight.evaluations(second))
	eight.Every = 0
	assert.Zero(t, eight.evaluations(second))
	eight.Every = 1000
	assert.Equal(t, 2*second, eight.evaluations(second), "only the one at the end")
	assert.Equal(t, 5*second, Forecast{Steps: 3 * second, Evaluations: 2 * second}.Total())
}
