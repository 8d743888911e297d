//go:build unix

package command_test

import (
	"strconv"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first signal finishes the step, saves and exits with 130; the same command goes on to what an undisturbed run gives.
func TestInterrupt(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			out, stderr := &primustest.Buffer{}, &primustest.Buffer{}
			cmd := child(t.Context(), nil, l.args("train_iters=1000000", "lr_decay_iters=1000", "log_interval=1")...)
			cmd.Stdout, cmd.Stderr = out, stderr
			require.NoError(t, cmd.Start())
			waitFor(t, stderr, "step 20/")
			require.NoError(t, cmd.Process.Signal(signal))
			assert.Equal(t, 130, exitCode(t, cmd.Wait()))
			assert.Contains(t, stderr.String(), "interrupt again to exit at once")
			assert.Contains(t, stderr.String(), "the same command goes on from there")
			assert.NotContains(t, stderr.String(), "error")
			assert.Contains(t, out.String(), "exp interrupted")
			require.Len(t, l.checkpoints(), 1)
			done := len(l.records())
			require.GreaterOrEqual(t, done, 20)

			whole := newLab(t)
			last := []string{"lr_decay_iters=1000", "train_iters=" + strconv.Itoa(done+3)}
			require.Zero(t, whole.train(last...).code)
			require.Zero(t, l.train(last...).code)
			assert.Equal(t, whole.records(), l.records())
		})
	}
}

// A second signal ends the process in the middle of a step.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stderr := &primustest.Buffer{}
	// One step of this takes the reference impls longer than anybody waits.
	cmd := child(t.Context(), []string{"TE_FL_PREFER=reference"}, l.args("hidden_size=512", "ffn_hidden_size=2048",
		"seq_length=512", "global_batch_size=8", "micro_batch_size=8")...)
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	waitFor(t, stderr, "Op 'embedding_fwd' using")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	waitFor(t, stderr, "interrupt again to exit at once")
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, exitCode(t, cmd.Wait()))
	assert.Contains(t, stderr.String(), "interrupted twice")
	assert.NotContains(t, stderr.String(), "step 1/")
	assert.Empty(t, l.checkpoints())
}
