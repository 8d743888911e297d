package chart_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/internal/chart"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		lo, hi float64
		limit  int
		whole  bool
		want   []string
	}{
		{"losses", 1.45, 5.6, 8, false, []string{"2", "3", "4", "5"}},
		{"small range", 1.449, 1.551, 8, false, []string{"1.46", "1.48", "1.50", "1.52", "1.54"}},
		{"quarters", 0, 1, 5, false, []string{"0.00", "0.25", "0.50", "0.75", "1.00"}},
		{"steps", 1, 600, 10, true, []string{"100", "200", "300", "400", "500", "600"}},
		{"two steps", 1, 2, 10, true, []string{"1", "2"}},
		{"whole numbers only", 1, 21, 10, true, []string{"5", "10", "15", "20"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, tick := range chart.Ticks(tt.lo, tt.hi, tt.limit, tt.whole) {
				got = append(got, tick.Label)
				assert.GreaterOrEqual(t, tick.Value, tt.lo)
				assert.LessOrEqual(t, tick.Value, tt.hi)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}
