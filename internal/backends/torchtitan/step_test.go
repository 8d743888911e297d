package torchtitan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadStep(t *testing.T) {
	s, ok := readStep("[titan] 2026-01-01 00:00:00,000 - root - INFO - \033[31mstep: 20  \033[32mloss:  7.65432  \033[38;2;180;60;0mgrad_norm:  1.2345  " +
		"\033[36mmemory:  5.50GiB(7.10%)  \033[34mtps: 1,234  \033[36mtflops: 1,012.34  \033[35mmfu: 3.95%\033[0m")
	require.True(t, ok)
	assert.Equal(t, 20, s.Step)
	assert.InDelta(t, 7.65432, s.Loss, 1e-9)
	assert.InDelta(t, 1.2345, s.GradNorm, 1e-9)
	assert.InDelta(t, 1234, s.TokensPerDevice, 0)
	assert.InDelta(t, 1012.34, s.TFLOPSPerDevice, 1e-9)
	assert.Equal(t, int64(5.5*(1<<30)), s.MemoryBytes)
	for _, line := range []string{
		"validate step: 20  loss:  7.1234  memory:  5.50GiB(7.10%)  tps: 1,234", "step: x  loss: 1", "step: 3", "Training starts at step: 1.", "step: 3  loss: lost",
	} {
		_, ok := readStep(line)
		assert.False(t, ok, line)
	}
}
