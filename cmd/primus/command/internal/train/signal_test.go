//go:build unix

package train_test

import (
	"bufio"
	"os"
	"os/exec"
	ossignal "os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first signal finishes the step, saves and exits with 130; the same command goes on to what an
// undisturbed run gives.
func TestInterrupt(t *testing.T) {
	for signal, by := range map[syscall.Signal]string{syscall.SIGINT: "interrupted", syscall.SIGTERM: "interrupted by SIGTERM", syscall.SIGHUP: "interrupted by SIGHUP"} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			if ossignal.Ignored(signal) {
				t.Skipf("%v is ignored here, as under nohup, and runs ignore it, too", signal)
			}
			l := commandtest.NewLab(t)
			run := l.Start(nil, "train_iters=1000000", "lr_decay_iters=1000", "log_interval=1")
			run.WaitFor("step 20/")
			require.NoError(t, run.Process.Signal(signal))
			assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
			assert.Contains(t, run.Log.String(), "WARN  "+by+": the current step is finished, for 15s at most, and saved, within 30s (--grace); interrupt again to exit at once")
			assert.Contains(t, run.Log.String(), "primus: "+by+" at step ")
			assert.Contains(t, run.Log.String(), "which is saved; the same command goes on from there")
			assert.NotContains(t, run.Log.String(), "error")
			assert.Contains(t, run.Log.String(), "exp interrupted")
			endsLikeAWholeRun(l)
		})
	}
}

// endsLikeAWholeRun checks that a run which was ended early has one checkpoint, of its last step,
// and that it goes on to what a run gives that was never ended.
func endsLikeAWholeRun(l *commandtest.Lab) {
	t := l.T
	t.Helper()
	require.Len(t, l.Checkpoints(), 1)
	done := len(l.Records())
	require.Equal(t, done, stepOf(t, l.Checkpoints()[0]))

	whole := commandtest.NewLab(t)
	last := []string{"lr_decay_iters=1000", "train_iters=" + strconv.Itoa(done+3)}
	require.Zero(t, whole.Train(last...).Code)
	require.Zero(t, l.Train(last...).Code)
	assert.Equal(t, whole.Records(), l.Records())
}

// A signal that the process was started to ignore stays ignored, as those who start it with nohup
// expect.
func TestIgnoredHangup(t *testing.T) {
	t.Parallel()
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip("no nohup on this system")
	}
	l := commandtest.NewLab(t)
	cmd := commandtest.Child(t.Context(), nil, l.Args("train_iters=1000000", "lr_decay_iters=1000", "log_interval=1")...)
	cmd.Path, cmd.Args = nohup, append([]string{nohup}, cmd.Args...)
	run := l.Program(cmd)
	require.NoError(t, run.Start())
	run.WaitFor("step 5/")
	require.NoError(t, run.Process.Signal(syscall.SIGHUP))
	seen := len(l.Records())
	run.WaitFor("step " + strconv.Itoa(seen+50) + "/")
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	assert.NotContains(t, run.Log.String(), "SIGHUP")
}

// A script starts processes in the background so that they ignore interrupts, which nevertheless
// end a run.
func TestInterruptInTheBackground(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this system")
	}
	l := commandtest.NewLab(t)
	cmd := commandtest.Child(t.Context(), nil, l.Args("train_iters=1000000", "lr_decay_iters=1000", "log_interval=1")...)
	cmd.Path, cmd.Args = bash, append([]string{bash, "-c", `"$0" "$@" & read; kill -INT $!; wait $!`}, cmd.Args...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	run := l.Program(cmd)
	require.NoError(t, run.Start())
	run.WaitFor("step 5/")
	require.NoError(t, stdin.Close())
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	endsLikeAWholeRun(l)
}

// When nobody reads the log any more, the run ends as with a signal.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := commandtest.Child(t.Context(), nil, l.Args("train_iters=1000000", "lr_decay_iters=1000", "log_interval=1")...)
	run := l.Program(cmd)
	run.Stderr = write
	require.NoError(t, run.Start())
	require.NoError(t, write.Close())
	for lines := bufio.NewScanner(read); lines.Scan() && !strings.Contains(lines.Text(), "step 5/"); {
	}
	require.NoError(t, read.Close())
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	endsLikeAWholeRun(l)
	log, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "interrupted by EPIPE: nobody reads the log")
}

// A second signal ends the process in the middle of a step.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	l, run := slowRun(t)
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	run.WaitFor("interrupt again to exit at once")
	require.NoError(t, run.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	assert.Contains(t, run.Log.String(), "interrupted twice")
	assert.NotContains(t, run.Log.String(), "step 1/")
	assert.Empty(t, l.Checkpoints())
}

// A scheduler and the parent of a process may both pass one signal on. That is no second one.
func TestTheSameSignalAgain(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	run := l.Start(nil, "train_iters=1000000", "lr_decay_iters=1000")
	run.WaitFor("step 5/")
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	require.NoError(t, run.Process.Signal(syscall.SIGHUP))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	assert.NotContains(t, run.Log.String(), "interrupted twice")
	endsLikeAWholeRun(l)
}

// slowRun starts a run whose micro batches take seconds and whose steps take longer than anybody
// waits, and returns in the first of them.
func slowRun(t *testing.T, more ...string) (*commandtest.Lab, *primustest.Program) {
	t.Helper()
	l := commandtest.NewLab(t)
	run := l.Start([]string{"TE_FL_PREFER=reference"}, append([]string{"hidden_size=256", "ffn_hidden_size=1024",
		"seq_length=256", "global_batch_size=10000", "micro_batch_size=2"}, more...)...)
	run.WaitFor("Op 'embedding_fwd' using")
	return l, run
}

// A step that takes longer than half of the grace period is given up.
func TestGrace(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	t.Parallel()
	l, run := slowRun(t, "--grace", "8s")
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
	assert.Contains(t, run.Log.String(), "the current step is finished, for 4s at most")
	assert.Contains(t, run.Log.String(), "step 1 is abandoned")
	assert.Contains(t, run.Log.String(), "interrupted before the first step: nothing was trained or saved")
	assert.Empty(t, l.Checkpoints())
}
