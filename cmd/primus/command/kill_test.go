//go:build unix

package command_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKill kills a run that saves at every step at 20 random moments. It always goes on, and in the end losses and weights
// are, bit for bit, those of a run that nobody disturbed.
func TestKill(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	unfinished, reached := 0, 0
	for range 20 {
		stderr := &primustest.Buffer{}
		cmd := child(t.Context(), []string{"PRIMUS_OPENBLAS=" + absent, "PRIMUS_ONEDNN=" + absent},
			l.args("train_iters=1000000", "lr_decay_iters=1000", "save_interval=1")...)
		cmd.Stderr = stderr
		require.NoError(t, cmd.Start())
		waitFor(t, stderr, "training llama_2M")
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		require.NoError(t, cmd.Process.Kill())
		require.Equal(t, -1, exitCode(t, cmd.Wait()), stderr.String())
		require.NotContains(t, stderr.String(), "error:")

		if reached > 0 {
			require.Contains(t, stderr.String(), "resuming from checkpoint")
		}
		if saved := l.checkpoints(); len(saved) > 0 {
			step := stepOf(t, saved[len(saved)-1])
			require.GreaterOrEqual(t, step, reached, "no checkpoint is lost")
			reached = step
		}
		if len(leftovers(t, l.path("checkpoints"))) > 0 {
			unfinished++
		}
	}
	t.Logf("reached step %d; %d of 20 kills came while a checkpoint was written", reached, unfinished)
	require.Positive(t, reached)

	last := []string{"lr_decay_iters=1000", "train_iters=" + strconv.Itoa(reached+5)}
	got := l.train(last...)
	require.Zero(t, got.code, got.stderr)
	assert.Empty(t, leftovers(t, l.workspace), "what the kills left is gone")
	whole := newLab(t)
	got = whole.train(last...)
	require.Zero(t, got.code, got.stderr)
	require.Len(t, whole.records(), reached+5)
	assert.Equal(t, whole.records(), l.records())
	for _, file := range []string{"model.safetensors", "optimizer.safetensors"} {
		want, err := os.ReadFile(filepath.Join(whole.checkpoints()[0], file))
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(l.checkpoints()[len(l.checkpoints())-1], file))
		require.NoError(t, err)
		assert.True(t, string(want) == string(have), "%s is bit-identical", file)
	}
}

func stepOf(t *testing.T, checkpoint string) int {
	t.Helper()
	step, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(checkpoint), "step-"))
	require.NoError(t, err)
	return step
}
