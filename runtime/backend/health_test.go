package backend_test

import (
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
)

func TestHealth(t *testing.T) {
	for want, h := range map[string]backend.Health{
		"":                   {},
		"diverged at step 8": {Diverged: 8},
		"diverged at step 8; spikes: 3, the last one at step 7; updates dropped: 2; back to a checkpoint: 1 times": {Diverged: 8, Spikes: 3, LastSpike: 7, Skipped: 2, Rewinds: 1},
	} {
		assert.Equal(t, want, h.String())
	}
}
