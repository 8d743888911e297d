//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever takes long ends soon after SIGTERM, with 130, and leaves nothing half made.
func TestEveryLongCommandListens(t *testing.T) {
	const soon = 20 * time.Second // on a machine that does other things, too
	many := func(file string) []string { return slices.Repeat([]string{file}, 20_000) }
	tests := []struct {
		name string
		args func(*lab) []string
		busy func(*lab) bool // that the work has begun; nil waits for a while
	}{
		{"config validate", func(l *lab) []string { return append([]string{"config", "validate"}, many(l.exp)...) }, nil},
		{"policy check", func(l *lab) []string {
			policy := filepath.Join(l.dir, "policy.yaml")
			l.write(policy, "prefer: vendor\n")
			return append([]string{"policy", "check"}, many(policy)...)
		}, nil},
		{"ops verify", func(*lab) []string { return []string{"ops", "verify"} }, nil},
		{"ops coverage", func(*lab) []string { return []string{"ops", "coverage"} }, nil},
		{"benchmark gemm", func(*lab) []string { return []string{"benchmark", "gemm", "--repeat", "1000000"} }, nil},
		{"benchmark ops", func(*lab) []string { return []string{"benchmark", "ops", "--repeat", "1000000"} }, nil},
		{"benchmark train", func(l *lab) []string {
			return []string{"benchmark", "train", "--config", l.exp, "--steps", "1000000"}
		}, nil},
		{"benchmark train in a long step", func(l *lab) []string {
			return []string{"benchmark", "train", "--config", l.exp, "global_batch_size=1000000", "micro_batch_size=10"}
		}, nil},
		{"building the data", func(l *lab) []string {
			l.write(l.text, strings.Repeat("text\n", 10_000))
			require.NoError(l.t, os.Truncate(l.text, 16<<30)) // which the disk does not hold, but the cache would
			return l.args()
		}, func(l *lab) bool {
			found, _ := filepath.Glob(filepath.Join(l.workspace, "cache", "*.tmp-*"))
			hidden, _ := filepath.Glob(filepath.Join(l.workspace, "cache", ".*.tmp-*"))
			return len(found)+len(hidden) > 0
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			stderr := &primustest.Buffer{}
			cmd := child(t.Context(), nil, tt.args(l)...)
			cmd.Stderr = stderr
			require.NoError(t, cmd.Start())
			if tt.busy == nil {
				time.Sleep(time.Second) // for the process to start and to be at work
			} else {
				require.Eventually(t, func() bool { return tt.busy(l) }, soon, time.Millisecond, stderr)
			}
			sent := time.Now()
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			assert.Equal(t, 130, exitCode(t, cmd.Wait()), stderr)
			assert.Less(t, time.Since(sent), soon)
			assert.Contains(t, stderr.String(), "interrupted")
			assert.NotContains(t, stderr.String(), "error")
			assert.Empty(t, leftovers(t, l.dir))
		})
	}
}

// The text at the end of a run is given up, and the run is finished nevertheless.
func TestInterruptedWhileWriting(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stderr := &primustest.Buffer{}
	cmd := child(t.Context(), []string{"TE_FL_PREFER=reference"}, l.args("train_iters=1", "hidden_size=256", "ffn_hidden_size=1024",
		"seq_length=256", "micro_batch_size=1", "global_batch_size=1", "eval_interval=0", "--grace", "1s")...)
	cmd.Stderr = stderr
	require.NoError(t, cmd.Start())
	waitFor(t, stderr, "saved checkpoint step=1")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	sent := time.Now()
	assert.Zero(t, exitCode(t, cmd.Wait()), stderr)
	assert.Less(t, time.Since(sent), 20*time.Second)
}
