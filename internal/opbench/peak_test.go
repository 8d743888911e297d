package opbench_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/opbench"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
)

// No current CPU exceeds these bounds. There is no lower bound: another program may have used the
// CPU.
func TestFLOPS(t *testing.T) {
	widest := opbench.PeakFLOPS(opregistry.Serial{})
	if !cpufeat.Has(cpufeat.AVX2) {
		assert.Zero(t, widest)
		return
	}
	assert.Positive(t, widest)
	assert.Less(t, widest, 500e9)
	defer cpufeat.Disable(cpufeat.AVX512)()
	narrow := opbench.PeakFLOPS(opregistry.Serial{})
	assert.Positive(t, narrow)
	defer cpufeat.Disable(cpufeat.AVX2)()
	assert.Zero(t, opbench.PeakFLOPS(opregistry.Serial{}))
}

func TestBandwidth(t *testing.T) {
	pool := parallel.New(2)
	defer pool.Close()
	moved := opbench.PeakBandwidth(pool)
	assert.Positive(t, moved)
	assert.Less(t, moved, 5e12)
}
