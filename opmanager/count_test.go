package opmanager

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Calls that take long are timed, all of them after the first. Of those that do not, enough are
// timed to estimate their total.
func TestCallsAreTimed(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		var c count
		var total time.Duration
		timed, calls := 0, 200+random.IntN(20_000)
		long := time.Duration(random.IntN(2)) * shortCall
		for range calls {
			took := long + time.Duration(1+random.Int64N(int64(shortCall-1)))
			total += took
			if to := c.timing(); to != nil {
				c.timed(to, took)
				timed++
			} else {
				c.calls.Add(1)
			}
		}
		sum, estimated := c.total()
		assert.EqualValues(t, calls, c.calls.Load())
		if long > 0 {
			assert.Equal(t, calls, timed)
			assert.False(t, estimated)
			assert.Equal(t, total, sum)
			continue
		}
		assert.InDelta(t, provenShort+(calls-provenShort)/sampledShort, timed, 1)
		assert.True(t, estimated)
		assert.InEpsilon(t, total, sum, 0.2)
	}
}

// A handle that meets a long call times the calls after it.
func TestLongCallAmongShortOnes(t *testing.T) {
	var c count
	for range 10 * provenShort {
		if to := c.timing(); to != nil {
			c.timed(to, time.Microsecond)
		} else {
			c.calls.Add(1)
		}
	}
	for c.timing() == nil {
		c.calls.Add(1)
	}
	c.timed(c.timing(), time.Second)
	assert.Same(t, &c.all, c.timing())
}
