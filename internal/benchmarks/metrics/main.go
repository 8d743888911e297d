// Command metrics measures what counting calls and timing them costs, in one run:
// a call that is counted beside one that is not, and steps of an experiment with
// durations and without. Batches of calls and steps alternate, and of each the best
// counts, so that other work on the machine shows little.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/configs"
	"github.com/primus-fl/primus/tensor"
	"github.com/prometheus/client_golang/prometheus"
)

func main() {
	file := flag.String("config", "examples/native/configs/llama_6M-pretrain.yaml", "the experiment whose steps are measured")
	steps := flag.Int("steps", 25, "steps of each kind")
	flag.Parse()
	if err := run(*file, *steps, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// way is one way to watch calls.
type way struct {
	name  string
	watch opmanager.Settings

	manager *opmanager.Manager
	call    func(n int) error
	bench   *native.Bench

	callNS float64
	steps  []time.Duration
	calls  float64 // of a step
}

func run(file string, steps int, overrides []string) (err error) {
	if steps < 1 {
		return fmt.Errorf("-steps: got %d, want at least one", steps)
	}
	durations, err := metrics.NewDispatch(prometheus.NewRegistry())
	if err != nil {
		return err
	}
	pool := parallel.New(runtime.GOMAXPROCS(0))
	defer pool.Close()
	host := cpu.New()
	defer host.Close()
	ways := []*way{
		{name: "not counted", watch: opmanager.Settings{Uncounted: true}},
		{name: "counted"},
		{name: "counted, durations in a histogram", watch: opmanager.Settings{Timing: true, Listeners: []opmanager.Listener{durations}}},
	}
	for _, w := range ways {
		w.watch.Exec = opregistry.NewExec(pool, device.DefaultStream)
		if err := w.open(file, overrides, host); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.bench.Close()) }()
		defer w.manager.Close()
	}
	if err := measureCalls(ways); err != nil {
		return err
	}
	if err := measureSteps(ways, steps); err != nil {
		return err
	}
	fmt.Printf("%s, %s/%s, %d CPUs; best of %d steps\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), steps)
	fmt.Println("| calls | ns a call | more | calls a step | of a step | best step, ms | ratio | median ratio |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	base := ways[0]
	for _, w := range ways {
		more, best := w.callNS-base.callNS, slices.Min(w.steps)
		fmt.Printf("| %s | %.1f | %.1f | %.0f | %.4f %% | %.1f | %.4f | %.4f |\n", w.name, w.callNS, more, w.calls,
			100*more*w.calls/float64(best.Nanoseconds()), best.Seconds()*1e3,
			best.Seconds()/slices.Min(base.steps).Seconds(), medianRatio(w.steps, base.steps))
	}
	return nil
}

// open makes the manager, a call and a trainer.
func (w *way) open(file string, overrides []string, dev device.Backend) error {
	impls := opregistry.NewRegistry()
	if err := impls.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}); err != nil {
		return err
	}
	if err := impls.Register(flagos.Source()); err != nil {
		return err
	}
	w.manager = opmanager.New(impls, opmanager.DefaultPolicy(), w.watch)
	x, err := tensor.FromSlice([]float32{1})
	if err != nil {
		return err
	}
	y, err := tensor.FromSlice([]float32{1})
	if err != nil {
		return err
	}
	add, args := opmanager.MustBind(w.manager, ops.ResidualAdd), ops.ResidualAddArgs{A: x, B: x, Output: y}
	w.call = func(n int) error {
		for range n {
			if err := add.Call(args); err != nil {
				return err
			}
		}
		return nil
	}
	roots := []config.Root{{Name: "embedded", FS: configs.FS()}}
	experiment, err := config.LoadExperiment(file, config.Options{Presets: roots, Overrides: overrides})
	if err != nil {
		return err
	}
	module, err := experiment.Module("pre_trainer")
	if err != nil {
		return err
	}
	w.bench, _, err = native.NewBench(module, w.manager, dev, slog.New(slog.DiscardHandler))
	return err
}

// measureCalls times batches of calls in turn.
func measureCalls(ways []*way) error {
	const rounds, batch = 3000, 1000
	for range rounds {
		for _, w := range ways {
			began := time.Now()
			if err := w.call(batch); err != nil {
				return err
			}
			if ns := float64(time.Since(began).Nanoseconds()) / batch; w.callNS == 0 || ns < w.callNS {
				w.callNS = ns
			}
		}
	}
	return nil
}

// measureSteps times steps in turn, after two that are not counted.
func measureSteps(ways []*way, steps int) error {
	for i := range steps + 2 {
		for _, w := range ways {
			before := served(w.manager)
			began := time.Now()
			if _, err := w.bench.Step(); err != nil {
				return err
			}
			if i >= 2 {
				w.steps = append(w.steps, time.Since(began))
				w.calls = max(w.calls, served(w.manager)-before)
			}
		}
	}
	for _, w := range ways {
		w.calls = max(w.calls, ways[len(ways)-1].calls) // also where they are not counted
	}
	return nil
}

// served returns the calls that a manager has counted.
func served(m *opmanager.Manager) (calls float64) {
	for _, s := range m.Stats() {
		calls += float64(s.Calls)
	}
	return calls
}

// medianRatio returns the median of the ratios of steps that were made in turn.
func medianRatio(a, b []time.Duration) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i].Seconds() / b[i].Seconds()
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
