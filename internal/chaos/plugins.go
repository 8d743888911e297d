//go:build linux

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/procgroup"
	"github.com/primus-fl/primus/vendors/abi"
	"golang.org/x/sys/unix"
)

//go:embed library/hostile.c
var hostileLibrary []byte

// pluginSteps is how many steps the runs with a plugin train, of a model of some 10,000 parameters.
const pluginSteps = 4

var pluginModel = []string{
	"num_layers=1", "hidden_size=16", "ffn_hidden_size=32", "seq_length=16", "global_batch_size=2", "lr_decay_iters=4", "lr_warmup_iters=1",
	"eval_interval=1000", "save_interval=0",
}

const (
	// pluginTimeout is how long primus waits for a library that hangs.
	pluginTimeout = 8 * time.Second
	// onlyHostile is the policy of the runs, and verified where only verification finds the attack.
	onlyHostile = "allow_vendors: [hostile]\n"
	verified    = onlyHostile + "verify: {fraction: 1, quarantine: true}\n"
)

// hostility runs attacks by a library.
type hostility struct {
	*yard
	library string
	losses  []float64 // of a run without plugins
}

// attackWithPlugins trains with plugins that misbehave, and checks what
// docs/reference/plugins.md promises.
func attackWithPlugins(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	flags := newFlags("plugins", &o, progress)
	every := flags.Int("every", 1, "make every N-th attack only")
	if err := o.parse(flags, args); err != nil {
		return err
	}
	if *every < 1 {
		return fmt.Errorf("-every: given %d, want a number from 1", *every)
	}
	yard, err := newYard(o.dir, progress)
	if err != nil {
		return err
	}
	h, err := newHostility(ctx, yard)
	if err != nil {
		return err
	}
	var chosen []attack
	for i, a := range attacks() {
		if i%*every == 0 {
			chosen = append(chosen, a)
		}
	}
	faults := h.tryAll(ctx, chosen)
	broken := len(slices.DeleteFunc(slices.Clone(faults), func(err error) bool { return err == nil }))
	return yard.close(out, pluginSection(chosen, faults), o.markdown, broken)
}

// newHostility builds the library and trains without it.
func newHostility(ctx context.Context, y *yard) (*hostility, error) {
	h := &hostility{yard: y, library: filepath.Join(y.dir, "libhostile.so")}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("adopt processes that were left running: %w", err)
	}
	for name, text := range map[string]string{"hostile.c": string(hostileLibrary), "primus_op_plugin.h": abi.Header(), "primus_op_args.h": abi.ArgsHeader()} {
		if err := os.WriteFile(filepath.Join(y.dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	cc := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-fPIC", "-shared", "-pthread", "-o", h.library, "hostile.c")
	cc.Dir = y.dir
	if text, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the library: %w\n%s", err, text)
	}
	got, err := h.train(ctx, "plain", onlyHostile, nil)
	if err == nil && got.code != 0 {
		err = fmt.Errorf("the run without plugins fails:\n%s", got.log)
	}
	h.losses = got.losses
	return h, err
}

// tryAll makes the attacks, twice as many at a time as there are processors, because most attacks
// wait.
func (h *hostility) tryAll(ctx context.Context, chosen []attack) []error {
	faults := make([]error, len(chosen))
	next := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 2 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				faults[i] = h.try(ctx, i, chosen[i])
				if faults[i] != nil {
					mu.Lock()
					fmt.Fprintln(h.progress, faults[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	all.Wait()
	return faults
}

// pluginSection returns how many attacks ended as expected, a row for each phase and outcome.
func pluginSection(chosen []attack, faults []error) plaintext.Section {
	type key struct {
		phase    string
		expected outcome
	}
	tried, kept := map[key]int{}, map[key]int{}
	for i, a := range chosen {
		k := key{a.phase, a.expected()}
		tried[k]++
		if faults[i] == nil {
			kept[k]++
		}
	}
	t := plaintext.Section{Header: table.Row{"phase", "outcome", "attacks", "kept"}, Right: []int{3, 4}}
	for _, phase := range phases {
		for _, expected := range []outcome{rejected, contained, ended, restored, accused, used} {
			if k := (key{phase, expected}); tried[k] > 0 {
				t.Rows = append(t.Rows, table.Row{phase, expected, tried[k], kept[k]})
			}
		}
	}
	return t
}

// ending is how a run ended.
type ending struct {
	code      int // -1 for a signal
	log, tail string
	losses    []float64
	left      int // processes that outlived the run, which the lab ended
}

// train runs primus in its own directory.
func (h *hostility) train(ctx context.Context, name, policy string, env []string, args ...string) (got ending, err error) {
	l, err := h.newLab(name)
	if err != nil {
		return got, err
	}
	mark := "CHAOS_TRY=" + l.dir
	l.steps, l.args, l.env = pluginSteps, append(pluginModel, args...), append(env, mark)
	if err := l.setPolicy(policy); err != nil {
		return got, err
	}
	p, err := l.launch(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, l.command()...)
		cmd.SysProcAttr = procgroup.Attr(0, 0)
	})
	if err != nil {
		return got, err
	}
	got.code, err = p.wait()
	got.left, got.log, got.tail = endMarked(mark), p.Log.String(), p.Tail()
	if err != nil {
		return got, err
	}
	if got.losses, err = l.losses(); errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return got, err
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
func (h *hostility) try(ctx context.Context, number int, a attack) error {
	name, policy, want := fmt.Sprintf("try-%03d", number), onlyHostile, a.expected()
	args := []string{"--plugin-modules", h.library, "--plugin-timeout", pluginTimeout.String(), "--per-op", "residual_add=vendor:hostile|flagos"}
	if a.isolated {
		args = append(args, "--isolate-plugins")
	}
	if want == accused {
		policy = verified
	}
	got, err := h.train(ctx, name, policy, []string{fmt.Sprintf("CHAOS_PLUGIN=%s %s %s", a.phase, a.misdeed, a.when())}, args...)
	if err == nil {
		err = h.judge(a, want, got)
	}
	if err != nil {
		return fmt.Errorf("%v: want %q: %w\n%s", a, want, err, got.tail)
	}
	return os.RemoveAll(filepath.Join(h.dir, name))
}

// judge compares the end of a run with the expected one.
func (h *hostility) judge(a attack, want outcome, got ending) error {
	stays := a.misdeed == "daemon" && !a.isolated // what a library starts in the process of the run
	switch {
	case strings.ContainsRune(got.log, '\x1b') || strings.Contains(got.log, "\nprimus: error: spoofed"):
		return errors.New("text of the plugin reached the log unescaped")
	case got.left > 0 && !stays:
		return fmt.Errorf("%d processes outlived the run", got.left)
	case want == ended && got.code == 0:
		return errors.New("the run ended with exit code 0")
	case want == ended:
		return nil
	case got.code != 0:
		return fmt.Errorf("the run ended with exit code %d", got.code)
	case !slices.Equal(got.losses, h.losses):
		return fmt.Errorf("the losses are %v, want %v", got.losses, h.losses)
	}
	said := map[outcome]string{
		rejected: "not used: plugin ", restored: "changed the floating-point environment, which was restored",
		accused: "failed verification for op 'residual_add'", contained: "vendor.hostile",
	}
	if !strings.Contains(got.log, said[want]) {
		return fmt.Errorf("the log does not say %q", said[want])
	}
	if want != rejected && strings.Contains(got.log, said[rejected]) {
		return errors.New("the plugin is rejected")
	}
	return nil
}
