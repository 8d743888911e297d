//go:build unix

package train_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestKill kills a run that saves at every step at 20 random moments. It always goes on, and in the
// end losses and weights are, bit for bit, those of a run that nobody disturbed.
func TestKill(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	unfinished, reached := 0, 0
	for n := range 20 {
		run := l.Start([]string{"PRIMUS_OPENBLAS=" + commandtest.Absent, "PRIMUS_ONEDNN=" + commandtest.Absent},
			"train_iters=1000000", "lr_decay_iters=1000", "save_interval=1")
		run.WaitFor("training llama_2M")
		if n == 0 { // a machine that does other things may not come so far in the time below
			run.WaitUntil("a checkpoint", func() bool { return len(l.Checkpoints()) > 0 })
		}
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		require.NoError(t, run.Process.Kill())
		require.Equal(t, -1, commandtest.ExitCode(t, run.Wait()), run.Log.String())
		require.NotContains(t, run.Log.String(), "error:")

		if reached > 0 {
			require.Contains(t, run.Log.String(), "resuming from checkpoint")
		}
		if saved := l.Checkpoints(); len(saved) > 0 {
			step := stepOf(t, saved[len(saved)-1])
			require.GreaterOrEqual(t, step, reached, "no checkpoint is lost")
			reached = step
		}
		if len(commandtest.Leftovers(t, l.Path("checkpoints"))) > 0 {
			unfinished++
		}
	}
	t.Logf("reached step %d; %d of 20 kills came while a checkpoint was written", reached, unfinished)
	require.Positive(t, reached)

	last := []string{"lr_decay_iters=1000", "train_iters=" + strconv.Itoa(reached+5)}
	got := l.Train(last...)
	require.Zero(t, got.Code, got.Stderr)
	assert.Empty(t, commandtest.Leftovers(t, l.Workspace), "what the kills left is gone")
	whole := commandtest.NewLab(t)
	got = whole.Train(last...)
	require.Zero(t, got.Code, got.Stderr)
	require.Len(t, whole.Records(), reached+5)
	assert.Equal(t, whole.Records(), l.Records())
	for _, file := range []string{"model.safetensors", "optimizer.safetensors"} {
		want, err := os.ReadFile(filepath.Join(whole.Checkpoints()[0], file))
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(l.Checkpoints()[len(l.Checkpoints())-1], file))
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
