package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/program"
)

// pinning returns the command that runs another one on the first CPU, or none without pinning, and
// moves this process to the other CPUs.
func pinning(wanted bool) ([]string, error) {
	if !wanted {
		return nil, nil
	}
	if runtime.NumCPU() < 2 {
		return nil, errors.New("there is one CPU, so training and crowd have to share it: give -pin=false")
	}
	others := "1-" + strconv.Itoa(runtime.NumCPU()-1)
	out, err := exec.Command("taskset", "-a", "-p", "-c", others, strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("taskset: %w: %s; install util-linux, or give -pin=false", err, bytes.TrimSpace(out))
	}
	return []string{"taskset", "-c", "0"}, nil
}

// serveRun is a process that trains.
type serveRun struct {
	*program.Process
	dir, file string // file is metrics.jsonl
}

// addr returns the address of the service of the process, or "".
func (t *serveRun) addr() string {
	if found := regexp.MustCompile(`service on http://(\S+)/`).FindStringSubmatch(t.Log.String()); found != nil {
		return found[1]
	}
	return ""
}

// startServeRun begins to train, with the service or without, and returns after the first step.
func startServeRun(ctx context.Context, o serveOptions, pin []string, dir string, serve bool) (*serveRun, error) {
	dir, err := os.MkdirTemp(dir, "run-")
	if err != nil {
		return nil, err
	}
	line := []string{
		o.primus, "train", "pretrain", "--config", o.config, "train_iters=1000000", "eval_interval=0",
		"save_interval=0", "log_interval=1000000", "--prefer", "flagos", "--deny-vendors", "*",
	}
	if serve {
		line = append(line, "--serve", "127.0.0.1:0", "--serve-pprof")
	}
	line = slices.Concat(pin, line, o.args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = program.Environ("PRIMUS_WORKSPACE="+dir, "PRIMUS_TEAM=t", "PRIMUS_USER=u", "PRIMUS_EXP_NAME=e")
	p, err := program.Start(cmd)
	if err != nil {
		return nil, err
	}
	t := &serveRun{p, dir, filepath.Join(dir, "t", "u", "e", "metrics.jsonl")}
	if _, err := t.boundary(ctx); err != nil {
		t.Kill()
		return nil, err
	}
	return t, nil
}

func (t *serveRun) pause() error  { return t.signal("STOP") }
func (t *serveRun) resume() error { return t.signal("CONT") }

func (t *serveRun) signal(name string) error {
	out, err := exec.Command("kill", "-"+name, strconv.Itoa(t.Process.Process.Pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kill -%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// mark is the end of a step.
type mark struct {
	size int64 // of metrics.jsonl
	at   time.Time
	cpu  float64 // CPU seconds of the process until then
}

// maxStep is the time after which a step counts as one that does not end.
const maxStep = time.Minute

// boundary waits for the end of the current step.
func (t *serveRun) boundary(ctx context.Context) (mark, error) {
	before, began := t.size(), time.Now()
	for t.size() == before {
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return mark{}, err
		}
		if time.Since(began) > maxStep {
			return mark{}, fmt.Errorf("no step was finished in %v:\n%s", maxStep, t.Tail())
		}
	}
	cpu, err := t.cpu()
	return mark{t.size(), time.Now(), cpu}, err
}

// size returns the size of metrics.jsonl, 0 before the file exists.
func (t *serveRun) size() int64 {
	info, err := os.Stat(t.file)
	if err != nil {
		return 0
	}
	return info.Size()
}

// stepsBetween returns how long the steps between two marks took.
func (t *serveRun) stepsBetween(first, last mark) ([]float64, error) {
	text, err := os.ReadFile(t.file)
	if err != nil {
		return nil, err
	}
	var steps []float64
	for line := range bytes.Lines(text[first.size:last.size]) {
		var record struct {
			Seconds float64 `json:"step_seconds"`
		}
		if err := json.Unmarshal(line, &record); err != nil {
			return nil, fmt.Errorf("%s: %w", t.file, err)
		}
		steps = append(steps, record.Seconds)
	}
	return steps, nil
}

// profile samples the process for a time. It returns a function that waits and returns the share of
// that time in which the process served connections; 0 without the service.
func (t *serveRun) profile(ctx context.Context, d time.Duration) func() (float64, error) {
	addr := t.addr()
	if addr == "" {
		return func() (float64, error) { return 0, nil }
	}
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, max(1, int(d.Seconds())))
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-cum", "-nodefraction=0", url)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.dir)
	began := cmd.Start()
	return func() (float64, error) {
		if err := errors.Join(began, cmd.Wait()); err != nil {
			return 0, fmt.Errorf("go tool pprof: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
		}
		found := regexp.MustCompile(`([0-9.]+)%\s+net/http\.\(\*conn\)\.serve\n`).FindSubmatch(out.Bytes())
		if found == nil {
			return 0, nil // no sample was taken there
		}
		percent, err := strconv.ParseFloat(string(found[1]), 64)
		return percent / 100, err
	}
}

// clockTick is the unit of times in /proc.
const clockTick = 0.01

// cpu returns the CPU seconds of the process.
func (t *serveRun) cpu() (float64, error) {
	name := filepath.Join("/proc", strconv.Itoa(t.Process.Process.Pid), "stat")
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program may contain spaces
	fields := strings.Fields(rest)
	var sum float64
	for _, i := range []int{11, 12} { // utime and stime
		ticks, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += ticks * clockTick
	}
	return sum, nil
}

// memory returns the bytes of the process that are resident.
func (t *serveRun) memory() (uint64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(t.Process.Process.Pid), "statm"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize()), err
}
