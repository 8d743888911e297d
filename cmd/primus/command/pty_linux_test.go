package command_test

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// openTerminal returns the two ends of a pseudo-terminal of 100 columns: what a person sees, and what a program has.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	unlock := 0
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, unlock))
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}))
	return person, program
}

// A real terminal shows a bar, and a warning in colour; NO_COLOR, CI and a terminal that cannot are respected.
func TestRealTerminal(t *testing.T) {
	const colour, bar = "\x1b[1;33mWARN \x1b[0m interrupted: ", "░░░"
	tests := []struct {
		name        string
		env         []string
		colour, bar bool
	}{
		{"plain", nil, true, true},
		{"no colour", []string{"NO_COLOR=1"}, false, true},
		{"empty NO_COLOR", []string{"NO_COLOR="}, true, true},
		{"CI", []string{"CI=true"}, false, false},
		{"dumb", []string{"TERM=dumb"}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			person, program := openTerminal(t)
			l := newLab(t)
			env := append([]string{"TERM=xterm", "CI=", "NO_COLOR=", "TEFL_LOG_LEVEL="}, tt.env...)
			cmd := child(t.Context(), env, l.args("train_iters=100000", "lr_decay_iters=1000", "log_interval=10", "eval_interval=10", "eval_iters=1")...)
			cmd.Stdout, cmd.Stderr = program, program
			require.NoError(t, cmd.Start())
			require.NoError(t, program.Close())
			seen := &primustest.Buffer{}
			var reading sync.WaitGroup
			reading.Go(func() {
				_, err := io.Copy(seen, person)
				assert.True(t, err == nil || errors.Is(err, syscall.EIO), "%v: EIO is the end of a terminal", err)
			})
			waitFor(t, seen, "step 500/")
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
			assert.Equal(t, 130, exitCode(t, cmd.Wait()))
			reading.Wait()
			assert.Equal(t, tt.colour, strings.Contains(seen.String(), colour), seen.String())
			assert.Equal(t, tt.bar, strings.Contains(seen.String(), bar))
			assert.Equal(t, tt.colour || tt.bar, strings.Contains(seen.String(), "\x1b"))
		})
	}
}

// Before the first step there are only a few lines: what is trained on, and what is trained. The log has the rest.
func TestFewLinesBeforeTheFirstStep(t *testing.T) {
	t.Setenv("TEFL_LOG_LEVEL", "")
	l := newLab(t)
	got := l.train("train_iters=2")
	require.Zero(t, got.code, got.stderr)
	before, _, found := strings.Cut(got.stderr, "step 1/2")
	require.True(t, found, got.stderr)
	assert.LessOrEqual(t, strings.Count(before, "\n"), 4, before)
	assert.Contains(t, before, "corpus "+l.text)
	assert.Contains(t, before, "training llama_2M")
	log, err := os.ReadFile(l.path("train.log"))
	require.NoError(t, err)
	for _, line := range []string{"INFO  OpManager initialized", "INFO  [TrainRuntime] Loaded trainer class", "INFO  Setup started.", "INFO  Op 'generic_gemm' using 'default.flagos'"} {
		assert.Contains(t, string(log), line)
	}
	t.Setenv("TEFL_LOG_LEVEL", "INFO")
	assert.Contains(t, l.train("load=none", "train_iters=1").stderr, "Op 'generic_gemm' using 'default.flagos'", "for those who ask")
}
