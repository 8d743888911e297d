package projection_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/projection"
	"github.com/stretchr/testify/assert"
)

// A network that was measured gives the times that it was measured by.
func TestMeasuredNetwork(t *testing.T) {
	n := projection.MeasuredNetwork("here", 2e-6, 64<<20, 30e-3)
	assert.InEpsilon(t, 2e-6, n.AllReduce(0, 1, 2), 1e-9)
	assert.InEpsilon(t, 30e-3, n.AllReduce(64<<20, 1, 2), 1e-9)
	assert.Zero(t, n.AllReduce(64<<20, 1, 1))
	assert.Greater(t, n.AllReduce(64<<20, 8, 4), n.AllReduce(64<<20, 1, 4), "each message has its latency")
	for _, n := range projection.Networks() {
		assert.Less(t, n.AllReduce(1<<20, 1, 8), n.AllReduce(1<<20, 1, 1024), n.Name)
	}
}
