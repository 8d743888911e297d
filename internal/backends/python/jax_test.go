package python_test

import (
	"testing"

	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCompletedStep(t *testing.T) {
	s, ok := python.CompletedStep("I0101 00:00:00.000000 140 max_logging.py:10] completed step: 0, seconds: 1.500, TFLOP/s/device: 210.100, Tokens/s/device: 5461.200, total_weights: 65536, loss: 9.812, lm_loss: 9.7")
	require.True(t, ok)
	assert.Equal(t, python.Step{Step: 1, Loss: 9.812, Seconds: 1.5, Tokens: 65536, TokensPerDevice: 5461.2, TFLOPSPerDevice: 210.1}, s)
	s, ok = python.CompletedStep("completed step: 12, seconds: 3.25, TFLOP/s/device: 98.5, loss: 0.123") // of MaxDiffusion
	require.True(t, ok)
	assert.Equal(t, python.Step{Step: 13, Loss: 0.123, Seconds: 3.25, TFLOPSPerDevice: 98.5}, s)
	for _, line := range []string{"completed step: 3", "completed step: three, loss: 1", "eval metrics after step: 3, loss=1.0", "step: 3, loss: 1"} {
		_, ok := python.CompletedStep(line)
		assert.False(t, ok, line)
	}
}
