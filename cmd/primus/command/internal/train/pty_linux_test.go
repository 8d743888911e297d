package train_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A real terminal shows a bar, and a warning in colour; NO_COLOR, CI and a terminal that cannot are
// respected.
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
			person, program := commandtest.OpenTerminal(t)
			l := commandtest.NewLab(t)
			env := append([]string{"TERM=xterm", "CI=", "NO_COLOR=", "TEFL_LOG_LEVEL="}, tt.env...)
			run := l.Program(commandtest.Child(t.Context(), env, l.Args("train_iters=100000", "lr_decay_iters=1000", "log_interval=10", "eval_interval=10", "eval_iters=1")...))
			run.Stdout, run.Stderr = program, program
			require.NoError(t, run.Start())
			require.NoError(t, program.Close())
			var reading sync.WaitGroup
			reading.Go(func() {
				_, err := io.Copy(&run.Log, person)
				assert.True(t, err == nil || errors.Is(err, syscall.EIO), "%v: EIO is the end of a terminal", err)
			})
			run.WaitFor("step 500/")
			require.NoError(t, run.Process.Signal(syscall.SIGINT))
			assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()))
			reading.Wait()
			assert.Equal(t, tt.colour, strings.Contains(run.Log.String(), colour), run.Log.String())
			assert.Equal(t, tt.bar, strings.Contains(run.Log.String(), bar))
			assert.Equal(t, tt.colour || tt.bar, strings.Contains(run.Log.String(), "\x1b"))
		})
	}
}

// Before the first step there are only a few lines: what is trained on, and what is trained. The
// log has the rest.
func TestFewLinesBeforeTheFirstStep(t *testing.T) {
	t.Setenv("TEFL_LOG_LEVEL", "")
	l := commandtest.NewLab(t)
	got := l.Train("train_iters=2")
	require.Zero(t, got.Code, got.Stderr)
	before, _, found := strings.Cut(got.Stderr, "step 1/2")
	require.True(t, found, got.Stderr)
	assert.LessOrEqual(t, strings.Count(before, "\n"), 4, before)
	assert.Contains(t, before, "corpus "+l.Text)
	assert.Contains(t, before, "training llama_2M")
	log, err := os.ReadFile(l.Path("train.log"))
	require.NoError(t, err)
	for _, line := range []string{"INFO  OpManager initialized", "INFO  [TrainRuntime] Loaded trainer class", "INFO  Setup started.", "INFO  Op 'generic_gemm' using 'default.flagos'"} {
		assert.Contains(t, string(log), line)
	}
	t.Setenv("TEFL_LOG_LEVEL", "INFO")
	assert.Contains(t, l.Train("load=none", "train_iters=1").Stderr, "Op 'generic_gemm' using 'default.flagos'", "for those who ask")
}
