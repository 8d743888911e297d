package peak_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/benchmarks/peak"
	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/stretchr/testify/assert"
)

// No CPU of our days is outside of these bounds, and a kernel that counts wrong by
// its vector length or its number of sums is.
func TestFLOPS(t *testing.T) {
	widest := peak.FLOPS(opregistry.Serial{})
	if !cpufeat.Has(cpufeat.AVX2) {
		assert.Zero(t, widest)
		return
	}
	assert.Greater(t, widest, 5e9)
	assert.Less(t, widest, 500e9)
	defer cpufeat.Disable(cpufeat.AVX512)()
	narrow := peak.FLOPS(opregistry.Serial{})
	assert.Greater(t, narrow, 5e9)
	defer cpufeat.Disable(cpufeat.AVX2)()
	assert.Zero(t, peak.FLOPS(opregistry.Serial{}))
}

func TestBandwidth(t *testing.T) {
	pool := parallel.New(2)
	defer pool.Close()
	moved := peak.Bandwidth(pool)
	assert.Greater(t, moved, 0.5e9)
	assert.Less(t, moved, 5e12)
}
