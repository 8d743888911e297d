//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// framework is an experiment of a framework whose Python is a shell script.
const framework = `work_group: group
user_name: user
exp_name: exp
workspace: %s
modules:
  pre_trainer:
    framework: torchtitan
    training: {steps: 1000000}
`

// jobConfig is what primus reads of the framework.
const jobConfig = `from dataclasses import dataclass, field

@dataclass
class Training:
    steps: int = 10

@dataclass
class JobConfig:
    training: Training = field(default_factory=Training)
`

// rankScript is a rank. It starts one process that obeys signals, one that ignores them, and one
// that does and has a session of its own.
const rankScript = `#!/bin/sh
sleep 3600 &
(trap '' INT TERM; exec sleep 3600) &
(trap '' INT TERM; exec setsid sleep 3600) &
[ -n "$CHAOS_STUBBORN" ] && trap '' INT TERM
step=0
while :; do
	step=$((step + 1))
	[ "$RANK" = 0 ] && echo "[titan] - root - INFO - step: $step  loss: 1.5  grad_norm: 1.0  memory: 0.5GiB(1.00%)  tps: 1,234" >&2
	sleep 0.02
done
`

// leaveNothing ends a job of a framework with a signal. Nothing of what its ranks have started may
// be left.
func leaveNothing(ctx context.Context, l *lab, random *rand.Rand) (int, error) {
	tree, python := filepath.Join(l.dir, "tree"), filepath.Join(l.dir, "python")
	config := filepath.Join(tree, "torchtitan", "config")
	err := errors.Join(
		os.MkdirAll(config, 0o755),
		os.WriteFile(filepath.Join(config, "job_config.py"), []byte(jobConfig), 0o644),
		os.WriteFile(python, []byte(rankScript), 0o755),
		os.WriteFile(l.experiment, fmt.Appendf(nil, framework, filepath.Join(l.dir, "ws")), 0o644))
	if err != nil {
		return 0, err
	}
	mark := "CHAOS_CHILDREN=" + l.dir
	l.env = []string{mark}
	if random.IntN(2) == 0 {
		l.env = append(l.env, "CHAOS_STUBBORN=1")
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}
	signal, at := signals[random.IntN(len(signals))], []string{"", "step 3/"}[random.IntN(2)]
	p, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, "train", "pretrain", "--config", l.experiment, "--backend-path", tree, "--python", python,
			"--nproc-per-node", "2", "--master-port", "29500", "--grace", "1s")
	})
	if err != nil {
		return 0, err
	}
	p.Reach(at)
	time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
	if !p.Running() {
		return 0, fmt.Errorf("the job ended by itself:\n%s", p.Tail())
	}
	p.Process.Process.Signal(signal)
	code, err := p.wait()
	early := at == "" && code == -1 // no handler yet
	if err == nil && code != 130 && signal != syscall.SIGKILL && !early {
		err = fmt.Errorf("exit code %d, want 130\n%s", code, p.Tail())
	}
	// What was killed may need a moment to end; what was not would stay for an hour.
	for deadline := time.Now().Add(time.Minute); err == nil; time.Sleep(10 * time.Millisecond) {
		left := withVariable(mark)
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			err = fmt.Errorf("processes are left: %v", left)
		}
	}
	if err != nil {
		err = fmt.Errorf("after %v in %q, with %v: %w", signal, at, l.env, err)
	}
	return 1, err
}

// withVariable returns the command lines of the processes that were started with a variable.
func withVariable(variable string) (commands []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && bytes.Contains(text, []byte(variable+"\x00")) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline")) // it may have ended
			commands = append(commands, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return commands
}
