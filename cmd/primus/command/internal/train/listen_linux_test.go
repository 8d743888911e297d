package train_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/commandtest"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever takes long ends soon after SIGTERM, with 130, and leaves nothing half made.
func TestEveryLongCommandListens(t *testing.T) {
	primustest.Long(t, "it starts processes and waits for them")
	const soon = time.Minute // on a machine that does other things, too
	many := func(file string) []string { return slices.Repeat([]string{file}, 20_000) }
	tests := []struct {
		name string
		args func(*commandtest.Lab) []string
		busy func(*commandtest.Lab) bool // that the work has begun; nil waits for a second of computing
	}{
		{"config validate", func(l *commandtest.Lab) []string { return append([]string{"config", "validate"}, many(l.Exp)...) }, nil},
		{"policy check", func(l *commandtest.Lab) []string {
			policy := filepath.Join(l.Dir, "policy.yaml")
			l.Write(policy, "prefer: vendor\n")
			return append([]string{"policy", "check"}, many(policy)...)
		}, nil},
		{"ops verify", func(*commandtest.Lab) []string { return []string{"ops", "verify"} }, nil},
		{"ops coverage", func(*commandtest.Lab) []string { return []string{"ops", "coverage"} }, nil},
		{"benchmark gemm", func(*commandtest.Lab) []string { return []string{"benchmark", "gemm", "--repeat", "1000000"} }, nil},
		{"benchmark ops", func(*commandtest.Lab) []string { return []string{"benchmark", "ops", "--repeat", "1000000"} }, nil},
		{"benchmark train", func(l *commandtest.Lab) []string {
			return []string{"benchmark", "train", "--config", l.Exp, "--steps", "1000000"}
		}, nil},
		{"benchmark train in a long step", func(l *commandtest.Lab) []string {
			return []string{"benchmark", "train", "--config", l.Exp, "global_batch_size=1000000", "micro_batch_size=10"}
		}, nil},
		{"building the data", func(l *commandtest.Lab) []string {
			l.Write(l.Text, strings.Repeat("text\n", 10_000))
			require.NoError(l.T, os.Truncate(l.Text, 16<<30)) // which the disk does not hold, but the cache would
			return l.Args()
		}, func(l *commandtest.Lab) bool {
			found, _ := filepath.Glob(filepath.Join(l.Workspace, "cache", "*.tmp-*"))
			hidden, _ := filepath.Glob(filepath.Join(l.Workspace, "cache", ".*.tmp-*"))
			return len(found)+len(hidden) > 0
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := commandtest.NewLab(t)
			run := l.Program(commandtest.Child(t.Context(), nil, tt.args(l)...))
			require.NoError(t, run.Start())
			run.WaitUntil("the work", func() bool {
				if tt.busy == nil {
					return computed(t, run.Process.Pid) >= time.Second
				}
				return tt.busy(l)
			})
			sent := time.Now()
			require.NoError(t, run.Process.Signal(syscall.SIGTERM))
			assert.Equal(t, 130, commandtest.ExitCode(t, run.Wait()), run.Log.String())
			assert.Less(t, time.Since(sent), soon)
			assert.Contains(t, run.Log.String(), "interrupted")
			assert.NotContains(t, run.Log.String(), "error")
			assert.Empty(t, commandtest.Leftovers(t, l.Dir))
		})
	}
}

// The text at the end of a run is given up, and the run is finished nevertheless.
func TestInterruptedWhileWriting(t *testing.T) {
	t.Parallel()
	l := commandtest.NewLab(t)
	run := l.Start([]string{"TE_FL_PREFER=reference"}, "train_iters=1", "hidden_size=256", "ffn_hidden_size=1024",
		"seq_length=256", "micro_batch_size=1", "global_batch_size=1", "eval_interval=0", "--grace", "1s")
	run.WaitFor("saved checkpoint step=1")
	require.NoError(t, run.Process.Signal(syscall.SIGTERM))
	sent := time.Now()
	assert.Zero(t, commandtest.ExitCode(t, run.Wait()), run.Log.String())
	assert.Less(t, time.Since(sent), time.Minute)
}

// computed returns for how long a process that runs has computed: a machine that does other things
// needs longer until it is at work.
func computed(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), ") ") // after the name of the program
	fields := strings.Fields(rest)
	user, err := strconv.ParseInt(fields[11], 10, 64)
	require.NoError(t, err)
	system, err := strconv.ParseInt(fields[12], 10, 64)
	require.NoError(t, err)
	return time.Duration(user+system) * (time.Second / 100)
}
