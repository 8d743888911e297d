package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/cmd/primus/settings"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/stretchr/testify/require"
)

// outcome is what a command line did.
type outcome struct {
	code        int
	out, stderr string
}

// primus runs a command line in this process.
func primus(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, stderr primustest.Buffer
	code := command.Main(args, command.Streams{Out: &out, Err: &stderr})
	return outcome{code, out.String(), stderr.String()}
}

// child prepares a command line in a process of its own, with the libraries of vendors, the lines of the op manager on its
// standard error, and these variables.
func child(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	keep := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PRIMUS_") || strings.HasPrefix(v, "TE_FL_") || strings.HasPrefix(v, "TEFL_")
	})
	cmd.Env = slices.Concat(keep, []string{roleEnv + "=primus", settings.EnvFile + "=none", "TEFL_LOG_LEVEL=INFO"}, env)
	return cmd
}

// lab is a workspace with text and an experiment that trains a tiny model.
type lab struct {
	t                         *testing.T
	dir, text, exp, workspace string
}

// tiny makes llama_2M small enough for tests.
const tiny = `
      num_layers: 1
      hidden_size: 32
      ffn_hidden_size: 64
      num_attention_heads: 4
      num_query_groups: 2
      seq_length: 32
      micro_batch_size: 2
      global_batch_size: 4
      train_iters: 8
      lr_warmup_iters: 2
      eval_interval: 0
      save_interval: 0
      log_interval: 1
`

func newLab(t *testing.T) *lab {
	t.Helper()
	dir := t.TempDir()
	l := &lab{t: t, dir: dir, text: filepath.Join(dir, "text.go"), exp: filepath.Join(dir, "exp.yaml"), workspace: filepath.Join(dir, "ws")}
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "func f%d(x int) int { return x + %d }\n", i, i*i)
	}
	l.write(l.text, text.String())
	l.write(l.exp, fmt.Sprintf(`work_group: group
user_name: user
exp_name: ${PRIMUS_EXP_NAME:exp}
workspace: %s
modules:
  pre_trainer:
    framework: native
    config: pre_trainer.yaml
    model: llama_2M.yaml
    overrides:
      train_data_path: %s%s`, l.workspace, l.text, tiny))
	return l
}

func (l *lab) write(file, content string) {
	l.t.Helper()
	require.NoError(l.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(l.t, os.WriteFile(file, []byte(content), 0o644))
}

// edit replaces a part of the experiment.
func (l *lab) edit(old, with string) {
	l.t.Helper()
	text, err := os.ReadFile(l.exp)
	require.NoError(l.t, err)
	require.Contains(l.t, string(text), old)
	l.write(l.exp, strings.Replace(string(text), old, with, 1))
}

// path returns a path in the run directory.
func (l *lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.workspace, "group", "user", "exp"}, elem...)...)
}

func (l *lab) args(more ...string) []string {
	return append([]string{"train", "pretrain", "--config", l.exp}, more...)
}

// train runs the experiment in this process.
func (l *lab) train(more ...string) outcome {
	l.t.Helper()
	return primus(l.t, l.args(more...)...)
}

// record is a line of metrics.jsonl without what depends on the time.
type record struct {
	Step      int      `json:"step"`
	Loss      float64  `json:"loss"`
	ValidLoss *float64 `json:"valid_loss"`
	LR        float64  `json:"lr"`
	GradNorm  float64  `json:"grad_norm"`
}

func (l *lab) records() []record {
	l.t.Helper()
	text, err := os.ReadFile(l.path("metrics.jsonl"))
	require.NoError(l.t, err)
	var records []record
	for line := range strings.Lines(string(text)) {
		var r record
		require.NoError(l.t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// checkpoints returns the checkpoints of the run, oldest first.
func (l *lab) checkpoints() []string {
	l.t.Helper()
	found, err := filepath.Glob(l.path("checkpoints", "step-*"))
	require.NoError(l.t, err)
	return slices.DeleteFunc(found, func(name string) bool { return strings.Contains(name, ".tmp-") })
}

// leftovers returns temporary files anywhere below a directory.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".tmp-") {
			found = append(found, path)
		}
		return err
	})
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return found
}

// waitFor returns when a process has written some text.
func waitFor(t *testing.T, b *primustest.Buffer, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(b.String(), text) }, 30*time.Second, time.Millisecond,
		"no %q in time", text)
}

// exitCode returns what a child exited with, -1 when a signal ended it.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v", err)
	return exit.ExitCode()
}

// onlyError returns the one error that a command line printed.
func onlyError(t *testing.T, got outcome) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(got.stderr) {
		if strings.HasPrefix(line, "primus: error: ") {
			lines = append(lines, line)
		}
	}
	require.Len(t, lines, 1, got.stderr)
	return lines[0]
}
