package train_test

import (
	"os"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLogLevels(t *testing.T) {
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=1", "stderr_sink_level=WARNING", "file_sink_level=INFO")
	require.Zero(t, got.Code)
	assert.NotContains(t, got.Stderr, "Setup started.")
	log, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "Setup started.")
	assert.NotContains(t, string(log), "DEBUG")
	t.Setenv("PRIMUS_LOG_LEVEL", "debug")
	got = l.Train("train_iters=1", "sink_level=ERROR")
	assert.Contains(t, got.Stderr, "DEBUG [Runtime] Applying setup patches...")
	got = l.Train("train_iters=1", "sink_level=BOGUS")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, "Level 'BOGUS' does not exist")
}
