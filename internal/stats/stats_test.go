package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/stats"
)

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	values := []float64{5, 1, 4, 2, 3}
	assert.InDelta(t, 3, stats.Median(values), 0)
	assert.InDelta(t, 2.5, stats.Median(values[1:]), 0)
	assert.InDelta(t, 7, stats.Median([]float64{7}), 0)
	assert.InDelta(t, 3, stats.Percentile(0.5, values), 0)
	assert.InDelta(t, 5, stats.Percentile(0.9, values), 0)
	assert.InDelta(t, 5, stats.Percentile(1, values), 0)
	assert.InDelta(t, 1, stats.Percentile(0, values), 0)
	assert.True(t, math.IsNaN(stats.Percentile(0.5, nil)))
	assert.Equal(t, []float64{5, 1, 4, 2, 3}, values, "the order is the caller's")
}

// The ranks are those of tables of the sign test.
func TestMedianInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n          int
		low, high  float64
		confidence float64
	}{
		{1, 1, 1, 0},
		{5, 1, 5, 0.9375},
		{6, 1, 6, 0.96875},
		{9, 2, 8, 0.9609375},
		{20, 6, 15, 0.958611},
		{25, 8, 18, 0.956715},
	} {
		values := make([]float64, tt.n)
		for i, k := range rand.New(rand.NewPCG(1, 1)).Perm(tt.n) {
			values[i] = float64(k + 1)
		}
		got := stats.MedianInterval(values)
		assert.InDelta(t, tt.low, got.Low, 0, "low of %d", tt.n)
		assert.InDelta(t, tt.high, got.High, 0, "high of %d", tt.n)
		assert.InDelta(t, tt.confidence, got.Confidence, 1e-6, "confidence of %d", tt.n)
	}
}
