package rundir

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/chart"
)

func TestSmoothKeepsLinesAndEnds(t *testing.T) {
	t.Parallel()
	line := make([]chart.Point, 50)
	for i := range line {
		line[i] = chart.Point{X: float64(i), Y: 3 - 0.5*float64(i)}
	}
	for i, p := range smooth(line, 7) {
		assert.InDelta(t, line[i].Y, p.Y, 1e-12)
	}
	assert.Equal(t, []chart.Point{{X: 0, Y: 6}, {X: 1, Y: 2}, {X: 2, Y: 0}}, smooth([]chart.Point{{X: 0, Y: 6}, {X: 1, Y: 0}, {X: 2, Y: 0}}, 1))
}

func TestThinAveragesRuns(t *testing.T) {
	t.Parallel()
	points := []chart.Point{{X: 0, Y: 0}, {X: 1, Y: 2}, {X: 2, Y: 4}, {X: 3, Y: 6}}
	assert.Equal(t, []chart.Point{{X: 0.5, Y: 1}, {X: 2.5, Y: 5}}, thin(points, 2))
	assert.Equal(t, points, thin(points, 4))
}
