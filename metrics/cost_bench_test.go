package metrics_test

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/device/cpu"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/impls/flagos"
	"github.com/primus-fl/primus/impls/reference"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/internal/finite"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/tensor"
)

// watched is a manager over flagos whose calls are watched in some way.
type watched struct {
	unit    string
	manager *opmanager.Manager
	best    float64 // nanoseconds
	times   []float64
}

// newWatched returns managers whose calls are counted and timed, also with durations in a
// histogram, and with results looked at as --check-finite ops does.
func newWatched(b *testing.B) []*watched {
	durations, err := metrics.NewDispatch(prometheus.NewRegistry())
	require.NoError(b, err)
	pool := parallel.New(runtime.GOMAXPROCS(0))
	b.Cleanup(pool.Close)
	var all []*watched
	for _, w := range []struct {
		unit string
		set  opmanager.Settings
		tap  opmanager.Tap
	}{
		{unit: "counted"},
		{unit: "durations", set: opmanager.Settings{Listeners: []opmanager.Listener{durations}}},
		{unit: "finite", tap: &finite.Check{}},
	} {
		impls := opregistry.NewRegistry()
		require.NoError(b, impls.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
		require.NoError(b, impls.Register(flagos.Source()))
		w.set.Exec = opregistry.NewExec(pool, device.DefaultStream)
		m := opmanager.New(impls, oppolicy.Default(), w.set)
		b.Cleanup(m.Close)
		if w.tap != nil {
			m.Tap(w.tap)
		}
		all = append(all, &watched{unit: w.unit, manager: m})
	}
	return all
}

func (w *watched) add(d time.Duration) {
	w.times = append(w.times, float64(d.Nanoseconds()))
	w.best = slices.Min(w.times)
}

// BenchmarkWatchedCalls calls a small op in each way in turn, in batches of which the best counts.
func BenchmarkWatchedCalls(b *testing.B) {
	const batch = 1000
	all := newWatched(b)
	x, err := tensor.FromSlice([]float32{1})
	require.NoError(b, err)
	y, err := tensor.FromSlice([]float32{1})
	require.NoError(b, err)
	args := norm.ResidualAddArgs{A: x, B: x, Output: y}
	bound := make([]*opmanager.Bound[norm.ResidualAddArgs], len(all))
	for i, w := range all {
		bound[i] = opmanager.MustBind(w.manager, norm.ResidualAdd)
	}
	for b.Loop() {
		for i, w := range all {
			began := time.Now()
			for range batch {
				if err := bound[i].Call(args); err != nil {
					b.Fatal(err)
				}
			}
			took := float64(time.Since(began).Nanoseconds())
			if w.best == 0 || took < w.best {
				w.best = took
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, w := range all {
		b.ReportMetric(w.best/batch, w.unit+"-ns/call")
	}
}

// moduleOf returns the module that trains a model of the examples.
func moduleOf(b *testing.B, model string) *config.Module {
	file := filepath.Join("..", "examples", "native", "configs", model+"-pretrain.yaml")
	experiment, err := config.LoadExperiment(b.Context(), file, config.Options{Formats: formats.All(), Presets: []config.Root{{Name: "embedded", FS: configs.FS()}}})
	require.NoError(b, err)
	module, err := experiment.Module("pre_trainer")
	require.NoError(b, err)
	return module
}

// BenchmarkWatchedSteps trains llama_6M in each way in turn, and reports steps against those in
// which nothing is counted.
func BenchmarkWatchedSteps(b *testing.B) {
	all := newWatched(b)
	host := cpu.New()
	defer host.Close()
	benches := make([]*native.Bench, len(all))
	for i, w := range all {
		var err error
		benches[i], _, err = native.NewBench(moduleOf(b, "llama_6M"), w.manager, host, slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		defer func() { require.NoError(b, benches[i].Close()) }()
		_, err = benches[i].Step(b.Context())
		require.NoError(b, err)
	}
	before := served(all[1].manager)
	for b.Loop() {
		for i, w := range all {
			began := time.Now()
			if _, err := benches[i].Step(b.Context()); err != nil {
				b.Fatal(err)
			}
			w.add(time.Since(began))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(served(all[1].manager)-before)/float64(len(all[1].times)), "calls/step")
	for _, w := range all {
		b.ReportMetric(w.best/1e6, w.unit+"-best-ms")
		b.ReportMetric(medianRatio(w.times, all[0].times), w.unit+"-median-ratio")
	}
}

// BenchmarkVerifiedSteps trains llama_2M on impls that count as those of a vendor, in each mode of
// verification in turn, and reports the first step, and all steps against those in which nothing is
// verified.
func BenchmarkVerifiedSteps(b *testing.B) {
	host := cpu.New()
	defer host.Close()
	pool := parallel.New(runtime.GOMAXPROCS(0))
	defer pool.Close()
	vendor := flagos.Source()
	vendor.Name = "vendor"
	for i := range vendor.Impls {
		impl := &vendor.Impls[i]
		impl.ID, impl.Kind, impl.Vendor = "vendor.same", opregistry.KindVendor, "same"
	}
	modes := []string{"off", "first", "sampled"}
	var all []*watched
	var benches []*native.Bench
	for _, mode := range modes {
		impls := opregistry.NewRegistry()
		require.NoError(b, impls.Register(opregistry.Source{Name: "catalogue", Ops: ops.All()}))
		require.NoError(b, impls.Register(vendor))
		require.NoError(b, impls.Register(reference.Source()))
		policy := oppolicy.Default()
		require.NoError(b, policy.SetVerify(mode, "the benchmark"))
		policy.Prefer = opregistry.KindVendor
		m := opmanager.New(impls, policy, opmanager.Settings{Exec: opregistry.NewExec(pool, device.DefaultStream)})
		defer m.Close()
		bench, _, err := native.NewBench(moduleOf(b, "llama_2M"), m, host, slog.New(slog.DiscardHandler))
		require.NoError(b, err)
		defer func() { require.NoError(b, bench.Close()) }()
		all, benches = append(all, &watched{unit: mode, manager: m}), append(benches, bench)
	}
	for b.Loop() {
		for i, w := range all {
			began := time.Now()
			if _, err := benches[i].Step(b.Context()); err != nil {
				b.Fatal(err)
			}
			w.add(time.Since(began))
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, w := range all {
		b.ReportMetric(w.times[0]/1e6, w.unit+"-first-step-ms")
		b.ReportMetric(total(w.times)/total(all[0].times), w.unit+"-run-ratio")
		b.ReportMetric(medianRatio(w.times, all[0].times), w.unit+"-median-ratio")
		var verified uint64
		for _, s := range w.manager.Stats() {
			verified += s.Verify.Calls
			require.Zero(b, s.Verify.Violations, "%s on %s", s.Op, s.ID)
		}
		b.ReportMetric(float64(verified), w.unit+"-calls")
	}
}

func total(times []float64) (sum float64) {
	for _, t := range times {
		sum += t
	}
	return sum
}

// served returns the calls that a manager has counted.
func served(m *opmanager.Manager) (calls uint64) {
	for _, s := range m.Stats() {
		calls += s.Calls
	}
	return calls
}

// medianRatio returns the median of the ratios of steps that were made in turn.
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
