package python_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMegatronStep(t *testing.T) {
	s, ok := python.MegatronStep(" [2026-01-01 00:00:00.123] iteration        3/      50 | consumed samples:           48 | elapsed time per iteration (ms): 812.3/800.1 |" +
		" throughput per GPU (TFLOP/s/GPU): 98.1/97.0 | hip mem usage/free/total/usage_ratio: 12.50GB/179.5GB/191.98GB/6.5% | tokens per GPU (tokens/s/GPU): 5000.5/4999.1 |" +
		" learning rate: 1.000000E-05 | global batch size:    16 | lm loss: 1.084200E+01 | loss scale: 1.0 | grad norm: 2.345 | number of skipped iterations:   0 |")
	require.True(t, ok)
	assert.Equal(t, 3, s.Step)
	assert.Equal(t, 50, s.Steps)
	assert.InDelta(t, 10.842, s.Loss, 1e-9)
	assert.InDelta(t, 1e-5, s.LR, 1e-12)
	assert.InDelta(t, 2.345, s.GradNorm, 1e-9)
	assert.InDelta(t, 0.8123, s.Seconds, 1e-9)
	assert.InDelta(t, 98.1, s.TFLOPSPerDevice, 1e-9)
	assert.InDelta(t, 5000.5, s.TokensPerDevice, 1e-9)
	assert.Equal(t, 16, s.GlobalBatch)
	assert.Equal(t, int64(12.5*(1<<30)), s.MemoryBytes)
	assert.Empty(t, s.Unread)
	for _, line := range []string{"iteration", "iteration 3/50 |", "validation loss at iteration 3 | lm loss value: 1.0", "lm loss: 1"} {
		_, ok := python.MegatronStep(line)
		assert.False(t, ok, line)
	}
}

// A value that is no number is reported, not taken as 0 in silence.
func TestUnreadValues(t *testing.T) {
	s, ok := python.MegatronStep("iteration 3/ 50 | elapsed time per iteration (ms): soon | mem usage: much | learning rate: None | global batch size: 1.5 | lm loss: 1.5 | grad norm: |")
	require.True(t, ok)
	assert.Equal(t, []python.Unread{{"elapsed time per iteration (ms)", "soon"}, {"mem usage", "much"}, {"learning rate", "None"}, {"global batch size", "1.5"}}, s.Unread)
	for line, want := range map[string]python.Unread{
		"iteration 3/50 | lm loss: lost |":                    {"lm loss", "lost"},
		"iteration 99999999999999999999/50 | lm loss: 1.25 |": {"iteration", "99999999999999999999"},
	} {
		s, ok := python.MegatronStep(line)
		assert.False(t, ok, line)
		assert.Equal(t, []python.Unread{want}, s.Unread, line)
	}
	s, ok = python.CompletedStep("completed step: 3, seconds: soon, loss: 1.5")
	require.True(t, ok)
	assert.Equal(t, []python.Unread{{"seconds", "soon"}}, s.Unread)
}
