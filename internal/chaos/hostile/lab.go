//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/settings"
	"github.com/primus-fl/primus/vendors/abi"
	"golang.org/x/sys/unix"
)

//go:embed library/hostile.c
var source []byte

// experiment trains a model of some 10,000 parameters.
const experiment = `work_group: group
user_name: user
exp_name: exp
workspace: %s
modules:
  pre_trainer:
    framework: native
    config: pre_trainer.yaml
    model: llama_2M.yaml
    overrides:
      train_data_path: %s
      num_layers: 1
      hidden_size: 16
      ffn_hidden_size: 32
      num_attention_heads: 2
      num_query_groups: 2
      seq_length: 16
      micro_batch_size: 2
      global_batch_size: 2
      train_iters: 4
      lr_decay_iters: 4
      lr_warmup_iters: 1
      eval_interval: 1000
      eval_iters: 1
      save_interval: 0
      log_interval: 1
`

const (
	// pluginTimeout is how long primus waits for a library that hangs.
	pluginTimeout = 8 * time.Second
	// maxRun is how long a run may take.
	maxRun = 5 * time.Minute
	// verified is the policy of attacks that only verification can find.
	verified = "verify: {fraction: 1, quarantine: true}\n"
)

// lab runs attacks.
type lab struct {
	dir, library, text string
	losses             []float64 // of a run without plugins
}

// newLab builds the library and trains without it.
func newLab(ctx context.Context, dir string) (*lab, error) {
	l := &lab{dir: dir, library: filepath.Join(dir, "libhostile.so"), text: filepath.Join(dir, "text.txt")}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopt processes that were left running: %w", err)
	}
	for name, text := range map[string][]byte{
		"hostile.c": source, "primus_op_plugin.h": []byte(abi.Header()), "primus_op_args.h": []byte(abi.ArgsHeader()),
		"text.txt": bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 200),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return nil, err
		}
	}
	cc := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-pthread", "-o", l.library, "hostile.c")
	cc.Dir = dir
	if text, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the library: %w\n%s", err, text)
	}
	got, err := l.train(ctx, "plain", nil)
	if err == nil && got.code != 0 {
		err = fmt.Errorf("the run without plugins fails:\n%s", got.stderr)
	}
	l.losses = got.losses
	return l, err
}

// ending is how a run ended.
type ending struct {
	code   int // -1 for a signal
	stderr string
	losses []float64
	left   int // processes that outlived the run, which the lab ended
}

// train runs primus in its own directory.
func (l *lab) train(ctx context.Context, name string, env []string, args ...string) (got ending, err error) {
	dir := filepath.Join(l.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return got, err
	}
	config := filepath.Join(dir, "exp.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, experiment, filepath.Join(dir, "ws"), l.text), 0o644); err != nil {
		return got, err
	}
	timed, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	mark := "CHAOS_TRY=" + dir
	var stderr bytes.Buffer
	cmd := exec.CommandContext(timed, "/proc/self/exe", append([]string{"train", "pretrain", "--config", config, "--allow-vendors", "hostile"}, args...)...)
	cmd.Env = append(append(cleanEnvironment(), mark), env...)
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	got.left = endMarked(mark)
	got.stderr = stderr.String()
	if timed.Err() != nil {
		return got, fmt.Errorf("the run hangs:\n%s", got.stderr)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return got, err
	}
	got.code = cmd.ProcessState.ExitCode()
	got.losses, err = losses(filepath.Join(dir, "ws", "group", "user", "exp", "metrics.jsonl"))
	return got, err
}

// cleanEnvironment returns the environment of runs: without the variables that the user has set for
// primus.
func cleanEnvironment() []string {
	keep := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PRIMUS_") || strings.HasPrefix(v, "TE_FL_") || strings.HasPrefix(v, "TEFL_")
	})
	return append(keep, roleVariable+"=primus", settings.EnvFile+"=none", "TEFL_LOG_LEVEL=INFO")
}

func losses(file string) (all []float64, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var record struct{ Loss float64 }
		if err := json.Unmarshal(line, &record); err != nil {
			return nil, fmt.Errorf("metrics.jsonl: %w: %q", err, line)
		}
		all = append(all, record.Loss)
	}
	return all, err
}

// endMarked kills the processes that have a variable in their environment and returns how many
// there were.
func endMarked(mark string) (n int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		n++
		_ = unix.Kill(pid, unix.SIGKILL)
		var status unix.WaitStatus
		_, _ = unix.Wait4(pid, &status, 0, nil) // this process has adopted it
	}
	return n
}

// try attacks a run and returns what is wrong with its end, or nil when it is the expected one.
func (l *lab) try(ctx context.Context, number int, a attack) error {
	name := fmt.Sprintf("try-%03d", number)
	args := []string{"--plugin-modules", l.library, "--plugin-timeout", pluginTimeout.String(), "--per-op", "residual_add=vendor:hostile|flagos"}
	if a.isolated {
		args = append(args, "--isolate-plugins")
	}
	want := a.expected()
	if want == accused {
		policy := filepath.Join(l.dir, name+".yaml")
		if err := os.WriteFile(policy, []byte(verified), 0o644); err != nil {
			return err
		}
		args = append(args, "--policy", policy)
	}
	got, err := l.train(ctx, name, []string{fmt.Sprintf("CHAOS_PLUGIN=%s %s %s", a.phase, a.misdeed, a.when())}, args...)
	if err == nil {
		err = l.judge(a, want, got)
	}
	if err != nil {
		return fmt.Errorf("%v: want %q: %w\n%s", a, want, err, indented(got.stderr))
	}
	return os.RemoveAll(filepath.Join(l.dir, name))
}

// judge compares the end of a run with the expected one.
func (l *lab) judge(a attack, want outcome, got ending) error {
	stays := a.misdeed == "daemon" && !a.isolated // what a library starts in the process of the run
	switch {
	case strings.ContainsRune(got.stderr, '\x1b') || strings.Contains(got.stderr, "\nprimus: error: spoofed"):
		return errors.New("text of the plugin reached the log unescaped")
	case got.left > 0 && !stays:
		return fmt.Errorf("%d processes outlived the run", got.left)
	case want == ended && got.code == 0:
		return errors.New("the run ended with exit code 0")
	case want == ended:
		return nil
	case got.code != 0:
		return fmt.Errorf("the run ended with exit code %d", got.code)
	case !slices.Equal(got.losses, l.losses):
		return fmt.Errorf("the losses are %v, want %v", got.losses, l.losses)
	}
	said := map[outcome]string{
		rejected: "not used: plugin ", restored: "changed the floating-point environment, which was restored",
		accused: "failed verification for op 'residual_add'", contained: "vendor.hostile",
	}
	if !strings.Contains(got.stderr, said[want]) {
		return fmt.Errorf("the log does not say %q", said[want])
	}
	if want != rejected && strings.Contains(got.stderr, said[rejected]) {
		return errors.New("the plugin is rejected")
	}
	return nil
}

// indented returns the last lines of a log.
func indented(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-12):], "\n    ")
}
