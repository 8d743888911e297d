//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/primus-fl/primus/internal/program"
)

// steps is how many steps most runs train.
const steps = 40

// experiment trains a model of 37,000 parameters: a step takes less than a millisecond. It excludes
// the vendors of this machine, whose results have other bits.
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
      num_layers: 2
      hidden_size: 32
      ffn_hidden_size: 64
      num_attention_heads: 2
      num_query_groups: 2
      seq_length: 32
      micro_batch_size: 2
      global_batch_size: 4
      lr_decay_iters: 40
      lr_warmup_iters: 2
      eval_interval: 4
      eval_iters: 2
      save_interval: 1
      log_interval: 1
`

// yard is the directory of all labs.
type yard struct {
	dir      string
	progress io.Writer
	wants    map[int]end // ends of undisturbed runs by their number of steps

	rankLosses []float64         // of an undisturbed job of two ranks
	wantExport map[string][]byte // the exported files of an undisturbed run
	sweep      bool              // attack at every place instead of some
}

func newYard(dir string, progress io.Writer) (*yard, error) {
	var err error
	if dir == "" {
		dir, err = os.MkdirTemp("", "chaos-")
	} else if err = os.MkdirAll(dir, 0o755); err == nil {
		dir, err = filepath.Abs(dir)
	}
	return &yard{dir: dir, progress: progress, wants: map[int]end{}}, err
}

// undisturbed returns the end of a run of this many steps that nobody attacks.
func (y *yard) undisturbed(ctx context.Context, steps int) (end, error) {
	if want, ok := y.wants[steps]; ok {
		return want, nil
	}
	l, err := y.newLab(fmt.Sprintf("undisturbed-%d", steps))
	if err != nil {
		return end{}, err
	}
	l.steps, l.args = steps, []string{"save_interval=0", "eval_interval=1000000", "log_interval=1000"}
	if err := l.finish(ctx); err != nil {
		return end{}, err
	}
	y.wants[steps], err = l.end()
	return y.wants[steps], err
}

// lab is the experiment of one try, with its own workspace.
type lab struct {
	*yard
	dir, experiment, policy string
	steps                   int      // of the whole run
	args, env               []string // of each process
	starts                  int
}

func (y *yard) newLab(name string) (*lab, error) {
	dir := filepath.Join(y.dir, name)
	l := &lab{yard: y, dir: dir, experiment: filepath.Join(dir, "exp.yaml"), policy: filepath.Join(dir, "policy.yaml"), steps: steps}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	text := filepath.Join(dir, "text.txt")
	return l, errors.Join(
		os.WriteFile(text, corpus(), 0o644),
		os.WriteFile(l.experiment, fmt.Appendf(nil, experiment, filepath.Join(dir, "ws"), text), 0o644),
		l.setPolicy(calm))
}

// calm is the policy of a run whose policy is not attacked.
const calm = "allow_vendors: [chaos]\nprotect_in_place: true\n"

// setPolicy replaces the policy file the way careful editors do.
func (l *lab) setPolicy(text string) error {
	next := l.policy + ".next"
	return errors.Join(os.WriteFile(next, []byte(text), 0o644), os.Rename(next, l.policy))
}

func corpus() []byte {
	var text bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&text, "The square of %d is %d, and its cube is %d.\n", i, i*i, i*i*i)
	}
	return text.Bytes()
}

// command returns the command line of a run.
func (l *lab) command(more ...string) []string {
	args := []string{"train", "pretrain", "--config", l.experiment, "--policy", l.policy, fmt.Sprint("train_iters=", l.steps)}
	return slices.Concat(args, l.args, more)
}

// start starts a run.
func (l *lab) start(ctx context.Context, more ...string) (*process, error) {
	return l.launch(ctx, func(cmd *exec.Cmd) { cmd.Args = append(cmd.Args, l.command(more...)...) })
}

// process is a run that was started.
type process struct {
	*program.Process
	log string // the file that keeps what it has written
}

// launch starts this program in the role primus, unless change sets another one.
func (l *lab) launch(ctx context.Context, change func(*exec.Cmd)) (*process, error) {
	cmd := exec.CommandContext(ctx, self())
	cmd.Env = append(cleanEnvironment(), l.env...)
	cmd.WaitDelay = time.Second // for the output of what the run has left behind
	change(cmd)
	p, err := program.Start(cmd)
	if err != nil {
		return nil, err
	}
	l.starts++
	return &process{p, filepath.Join(l.dir, fmt.Sprintf("stderr-%d", l.starts))}, nil
}

// self returns the program to start in a role.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func cleanEnvironment() []string { return program.Environ(roleVariable + "=" + rolePrimus) }

// maxRun is how long a run may take; a run that takes longer hangs.
const maxRun = 5 * time.Minute

// wait returns the exit code of a run, and an error when it hangs. It keeps what the run has
// written, for the analysis of a try that broke a promise.
func (p *process) wait() (int, error) {
	err := p.Await(maxRun)
	return p.Code(), errors.Join(err, os.WriteFile(p.log, []byte(p.Log.String()), 0o644))
}

// once runs to the end and returns the process.
func (l *lab) once(ctx context.Context, more ...string) (*process, error) {
	p, err := l.start(ctx, more...)
	if err != nil {
		return nil, err
	}
	_, err = p.wait()
	return p, err
}

// finish lets the run continue to its end. The run must succeed.
func (l *lab) finish(ctx context.Context) error {
	p, err := l.once(ctx)
	if err == nil && p.Code() != 0 {
		err = fmt.Errorf("the run does not go on: exit code %d\n%s", p.Code(), p.Tail())
	}
	return err
}

// end holds the results of a run: the loss of each step, and its weights and optimizer state.
type end struct {
	losses  []float64
	weights []byte
}

// losses returns the loss of each step so far.
func (l *lab) losses() (all []float64, err error) {
	text, err := os.ReadFile(l.path("metrics.jsonl"))
	for line := range bytes.Lines(text) {
		var record struct{ Loss float64 }
		if err := json.Unmarshal(line, &record); err != nil {
			return nil, fmt.Errorf("metrics.jsonl: %w: %q", err, line)
		}
		all = append(all, record.Loss)
	}
	return all, err
}

func (l *lab) end() (e end, err error) {
	if e.losses, err = l.losses(); err != nil {
		return e, err
	}
	for _, name := range []string{"model.safetensors", "optimizer.safetensors"} {
		file, err := os.ReadFile(l.checkpoint(l.steps, name))
		if err != nil {
			return e, err
		}
		e.weights = append(e.weights, file...)
	}
	return e, nil
}

// endsAsUndisturbed returns an error when the end of the run differs from that of an undisturbed
// one.
func (l *lab) endsAsUndisturbed(ctx context.Context) error {
	want, err := l.undisturbed(ctx, l.steps)
	if err != nil {
		return err
	}
	got, err := l.end()
	if err != nil {
		return err
	}
	for i, loss := range want.losses {
		if i < len(got.losses) && got.losses[i] != loss {
			return fmt.Errorf("the loss of step %d is %v, want %v", i+1, got.losses[i], loss)
		}
	}
	switch {
	case len(got.losses) != len(want.losses):
		return fmt.Errorf("metrics.jsonl has %d losses, want %d", len(got.losses), len(want.losses))
	case !bytes.Equal(got.weights, want.weights):
		return errors.New("weights or optimizer state differ from those of an undisturbed run; the losses are the same")
	}
	return nil
}

// goesOn finishes the run and compares its end.
func (l *lab) goesOn(ctx context.Context) error {
	if err := l.finish(ctx); err != nil {
		return err
	}
	return l.endsAsUndisturbed(ctx)
}

// path returns a path in the run directory.
func (l *lab) path(elem ...string) string {
	return filepath.Join(append([]string{l.dir, "ws", "group", "user", "exp"}, elem...)...)
}

// checkpoint returns a path in the checkpoint of a step.
func (l *lab) checkpoint(step int, elem ...string) string {
	return l.path(append([]string{"checkpoints", fmt.Sprintf("step-%08d", step)}, elem...)...)
}
