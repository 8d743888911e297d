// Package commandtest helps the tests of commands: it runs command lines in this process and in
// children, with a small experiment, a Prometheus server, a browser or a plugin beside them.
package commandtest

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

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/program"
	"github.com/stretchr/testify/require"
)

// Outcome is what a command line did.
type Outcome struct {
	Code        int
	Out, Stderr string
}

// Run runs a command line in this process.
func Run(t *testing.T, args ...string) Outcome {
	t.Helper()
	var out, stderr primustest.Buffer
	code := command.Main(args, command.Streams{Out: &out, Err: &stderr})
	return Outcome{code, out.String(), stderr.String()}
}

// Child prepares a command line in a process of its own, with the libraries of vendors, the lines
// of the op manager on its standard error, and these variables.
func Child(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = program.Environ(append([]string{RoleEnv + "=primus"}, env...)...)
	return cmd
}

// Lab is a workspace with text and an experiment that trains a tiny model.
type Lab struct {
	T                         *testing.T
	Dir, Text, Exp, Workspace string
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

// NewLab makes a workspace in a directory of the test.
func NewLab(t *testing.T) *Lab {
	t.Helper()
	dir := t.TempDir()
	l := &Lab{T: t, Dir: dir, Text: filepath.Join(dir, "text.go"), Exp: filepath.Join(dir, "exp.yaml"), Workspace: filepath.Join(dir, "ws")}
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "func f%d(x int) int { return x + %d }\n", i, i*i)
	}
	l.Write(l.Text, text.String())
	l.Write(l.Exp, fmt.Sprintf(`work_group: group
user_name: user
exp_name: ${PRIMUS_EXP_NAME:exp}
workspace: %s
modules:
  pre_trainer:
    framework: native
    config: pre_trainer.yaml
    model: llama_2M.yaml
    overrides:
      train_data_path: %s%s`, l.Workspace, l.Text, tiny))
	return l
}

// Write writes a file with the directories above it.
func (l *Lab) Write(file, content string) {
	l.T.Helper()
	require.NoError(l.T, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(l.T, os.WriteFile(file, []byte(content), 0o644))
}

// Edit replaces a part of the experiment.
func (l *Lab) Edit(old, with string) {
	l.T.Helper()
	text, err := os.ReadFile(l.Exp)
	require.NoError(l.T, err)
	require.Contains(l.T, string(text), old)
	l.Write(l.Exp, strings.Replace(string(text), old, with, 1))
}

// Path returns a path in the run directory.
func (l *Lab) Path(elem ...string) string {
	return filepath.Join(append([]string{l.Workspace, "group", "user", "exp"}, elem...)...)
}

// Args returns the command line that trains the experiment, with more arguments.
func (l *Lab) Args(more ...string) []string {
	return append([]string{"train", "pretrain", "--config", l.Exp}, more...)
}

// Train runs the experiment in this process.
func (l *Lab) Train(more ...string) Outcome {
	l.T.Helper()
	return Run(l.T, l.Args(more...)...)
}

// Record is a line of metrics.jsonl without what depends on the time.
type Record struct {
	Step      int      `json:"step"`
	Loss      float64  `json:"loss"`
	ValidLoss *float64 `json:"valid_loss"`
	LR        float64  `json:"lr"`
	GradNorm  float64  `json:"grad_norm"`
}

// Records returns the lines of metrics.jsonl.
func (l *Lab) Records() []Record {
	l.T.Helper()
	text, err := os.ReadFile(l.Path("metrics.jsonl"))
	require.NoError(l.T, err)
	var records []Record
	for line := range strings.Lines(string(text)) {
		var r Record
		require.NoError(l.T, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return records
}

// Checkpoints returns the checkpoints of the run, oldest first.
func (l *Lab) Checkpoints() []string {
	l.T.Helper()
	found, err := filepath.Glob(l.Path("checkpoints", "step-*"))
	require.NoError(l.T, err)
	return slices.DeleteFunc(found, func(name string) bool { return strings.Contains(name, ".tmp-") })
}

// Leftovers returns temporary files anywhere below a directory.
func Leftovers(t *testing.T, dir string) []string {
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

// ExitCode returns what a child exited with, -1 when a signal ended it.
func ExitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v", err)
	return exit.ExitCode()
}

// OnlyError returns the one error that a command line printed.
func OnlyError(t *testing.T, got Outcome) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(got.Stderr) {
		if strings.HasPrefix(line, "primus: error: ") {
			lines = append(lines, line)
		}
	}
	require.Len(t, lines, 1, got.Stderr)
	return lines[0]
}

// Program prepares a process that writes to the workspace, and to its log all that it prints.
func (l *Lab) Program(cmd *exec.Cmd) *primustest.Program {
	p := primustest.NewProgram(l.T, cmd)
	p.Dir = l.Workspace
	return p
}

// Start starts a child that trains the experiment, with these variables and more arguments.
func (l *Lab) Start(env []string, more ...string) *primustest.Program {
	l.T.Helper()
	p := l.Program(Child(l.T.Context(), env, l.Args(more...)...))
	require.NoError(l.T, p.Start())
	return p
}

// StartRun starts an experiment in a process of its own, which serves metrics.
func (l *Lab) StartRun(name, addr string, more ...string) *primustest.Program {
	l.T.Helper()
	return l.Start([]string{"PRIMUS_EXP_NAME=" + name}, append(more, "--metrics-addr", addr)...)
}

// TrainChild trains 20 steps in a process of its own, which may load the libraries of vendors.
func (l *Lab) TrainChild(env ...string) Outcome {
	l.T.Helper()
	cmd := Child(l.T.Context(), env, l.Args("train_iters=20")...)
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	code := ExitCode(l.T, cmd.Run())
	require.Zero(l.T, code, stderr.String())
	return Outcome{code, out.String(), stderr.String()}
}

// Policy writes a policy file and returns its name.
func (l *Lab) Policy(text string) string {
	l.T.Helper()
	file := filepath.Join(l.Dir, "policy.yaml")
	l.Write(file, text)
	return file
}

// InModule adds keys beside framework and overrides.
func (l *Lab) InModule(text string) {
	l.Edit("    framework: native\n", "    framework: native\n"+text)
}
