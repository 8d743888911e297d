package rundir

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"gonum.org/v1/plot/plotter"
)

func TestNiceTicks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		give   niceTicks
		lo, hi float64
		want   []string
	}{
		{"losses", niceTicks{most: 8}, 1.45, 5.6, []string{"2", "3", "4", "5"}},
		{"small range", niceTicks{most: 8}, 1.449, 1.551, []string{"1.46", "1.48", "1.50", "1.52", "1.54"}},
		{"quarters", niceTicks{most: 5}, 0, 1, []string{"0.00", "0.25", "0.50", "0.75", "1.00"}},
		{"steps", niceTicks{most: 10, whole: true}, 1, 600, []string{"100", "200", "300", "400", "500", "600"}},
		{"two steps", niceTicks{most: 10, whole: true}, 1, 2, []string{"1", "2"}},
		{"whole numbers only", niceTicks{most: 10, whole: true}, 1, 21, []string{"5", "10", "15", "20"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, tick := range tt.give.Ticks(tt.lo, tt.hi) {
				got = append(got, tick.Label)
				assert.GreaterOrEqual(t, tick.Value, tt.lo)
				assert.LessOrEqual(t, tick.Value, tt.hi)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestSmoothKeepsLinesAndEnds(t *testing.T) {
	t.Parallel()
	line := make(plotter.XYs, 50)
	for i := range line {
		line[i] = plotter.XY{X: float64(i), Y: 3 - 0.5*float64(i)}
	}
	for i, p := range smooth(line, 7) {
		assert.InDelta(t, line[i].Y, p.Y, 1e-12)
	}
	assert.Equal(t, plotter.XYs{{X: 0, Y: 6}, {X: 1, Y: 2}, {X: 2, Y: 0}}, smooth(plotter.XYs{{X: 0, Y: 6}, {X: 1, Y: 0}, {X: 2, Y: 0}}, 1))
	assert.Equal(t, plotter.XYs{{X: 0.5, Y: 1}, {X: 2.5, Y: 5}}, thin(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 2}, {X: 2, Y: 4}, {X: 3, Y: 6}}, 2))
}
