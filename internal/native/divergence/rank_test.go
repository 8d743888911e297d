package divergence

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The values are those of tables of Student's distribution.
func TestStudentTail(t *testing.T) {
	for _, tt := range []struct {
		t       float64
		freedom int
		want    float64
	}{{0, 6, 1}, {2.447, 6, 0.05}, {3.707, 6, 0.01}, {5.959, 6, 0.001}, {4.303, 2, 0.05}, {2.228, 10, 0.05}} {
		assert.InDelta(t, tt.want, studentTail(tt.t, tt.freedom), 1e-4+tt.want/100, "t = %v with %d degrees of freedom", tt.t, tt.freedom)
	}
}

// A metric that only one of two runs has is no rounding.
func TestJudgeNotFinite(t *testing.T) {
	v, spread := 1.0, 1e-3
	k := &ranker{found: &Ranking{InUse: Metrics{Loss: &v, ValidLoss: &v}, Rounding: Metrics{Loss: &spread, ValidLoss: &spread, GradNorm: &spread}}}
	var same, lost Effect
	k.judge(&same, Metrics{Loss: &v, ValidLoss: &v})
	assert.True(t, same.Explained)
	assert.Zero(t, same.Rounding)
	k.judge(&lost, Metrics{Loss: &v})
	assert.False(t, lost.Explained)
	assert.InDelta(t, MaxRounding, lost.Rounding, 0)
	assert.Nil(t, lost.Moves.ValidLoss)
}
