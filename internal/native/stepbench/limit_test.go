package stepbench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Slow steps end a measurement at its limit, with one step that warmed up and one that was measured
// at least.
func TestLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit, step      time.Duration
		warmed, measured int
	}{
		{0, time.Hour, 2, 3},
		{time.Minute, time.Second, 2, 3},
		{time.Minute, 25 * time.Second, 2, 1},
		{time.Minute, 16 * time.Second, 2, 2},
		{time.Minute, time.Hour, 1, 1},
	} {
		s := Settings{Warmup: 2, Steps: 3, Limit: tt.limit}
		warmed, measured, past := 0, 0, time.Duration(0)
		for s.wants(measured, past) {
			if measured > 0 || s.warm(warmed, past) {
				measured++
			} else {
				warmed++
			}
			past += tt.step
		}
		assert.Equal(t, []int{tt.warmed, tt.measured}, []int{warmed, measured}, "%+v", tt)
	}
	none := Settings{Steps: 1, Limit: time.Second}
	assert.True(t, none.warm(0, 0))
}
