package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// MetricsConfig says where metrics go, and has the labels of the process.
type MetricsConfig struct {
	Addr      string // "" serves none
	Textfile  string // "" writes none
	run       string
	rank      int
	peakFLOPS float64       // of the devices; 0 when it is not known
	linger    time.Duration // how long to wait for a last scrape; below 0 until the next one, if there were any
}

// ModelMetrics returns the metrics of a process that serves a model.
func ModelMetrics(name string) MetricsConfig { return MetricsConfig{run: name} }

// MetricsFlags are the flags about the metrics of a run.
type MetricsFlags struct {
	addr, textfile string
	linger         time.Duration
	peakTFLOPS     float64
}

// AddFlags gives a command the flags about metrics.
func (o *MetricsFlags) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "metrics-addr", "", "serve Prometheus metrics on `HOST:PORT`, such as 127.0.0.1:9400")
	flags.StringVar(&o.textfile, "metrics-textfile", "", "keep Prometheus metrics in `FILE`.prom, for node_exporter")
	flags.DurationVar(&o.linger, "linger", -1, "serve metrics after the end until they are scraped once more, at most for `TIME`; by default only if they have been scraped before")
	flags.Lookup("linger").DefValue = ""
	flags.Float64Var(&o.peakTFLOPS, "peak-tflops", 0, "the peak of the devices is `N` TFLOP/s, for primus_train_mfu_ratio; 0 is unknown")
}

// Check returns the first mistake in the flags.
func (o *MetricsFlags) Check(cmd *cobra.Command) error {
	if o.addr != "" {
		if _, _, err := net.SplitHostPort(o.addr); err != nil {
			return cli.Usagef(cmd, "--metrics-addr: given %q, want %s", o.addr, cli.Wants(cmd.Flags().Lookup("metrics-addr")))
		}
	}
	if o.textfile != "" && filepath.Ext(o.textfile) != ".prom" {
		return cli.Usagef(cmd, "--metrics-textfile: given %q, want %s", o.textfile, cli.Wants(cmd.Flags().Lookup("metrics-textfile")))
	}
	if cmd.Flags().Changed("linger") && o.linger < 0 {
		return cli.Usagef(cmd, "--linger: given %s, want %s", o.linger, cli.Wants(cmd.Flags().Lookup("linger")))
	}
	if !(o.peakTFLOPS >= 0) || math.IsInf(o.peakTFLOPS, 0) {
		return cli.Usagef(cmd, "--peak-tflops: given %v, want %s", o.peakTFLOPS, cli.Wants(cmd.Flags().Lookup("peak-tflops")))
	}
	return nil
}

// Config returns the metrics of an experiment by the flags. A wrong rank is no error here: it ends
// the run before its first step.
func (o *MetricsFlags) Config(e *config.Experiment) MetricsConfig {
	d, _ := backend.ReadDistributed(backend.ProcessEnviron())
	return MetricsConfig{Addr: o.addr, Textfile: o.textfile, run: e.ExpName, rank: d.Rank, peakFLOPS: o.peakTFLOPS * 1e12, linger: o.linger}
}

// MetricsOptions wires the collectors and where they go.
func MetricsOptions() fx.Option {
	return fx.Provide(
		prometheus.NewRegistry,
		func(r *prometheus.Registry) *metrics.Scrapes { return metrics.NewScrapes(r) },
		func(r *prometheus.Registry, set Config) prometheus.Registerer {
			return prometheus.WrapRegistererWith(prometheus.Labels{"run": set.Metrics.run, "rank": strconv.Itoa(set.Metrics.rank)}, r)
		},
		func(set Config) metrics.TrainingSettings {
			return metrics.TrainingSettings{PeakFLOPS: set.Metrics.peakFLOPS}
		},
		func() metrics.Build {
			v := buildinfo.Read()
			return metrics.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}
		},
		metrics.NewDispatch, metrics.NewTraining, metrics.NewProcess, newMetricsOutput,
		fx.Annotate(func(d *metrics.Dispatch) opmanager.Listener { return d }, fx.ResultTags(graph.Listeners)),
	)
}

// MetricsOutput serves the metrics of a run and writes them to a file while the graph runs, if the
// flags say so.
type MetricsOutput struct {
	set     Config
	scrapes *metrics.Scrapes // by whoever asks over HTTP
	server  *metrics.Server
	file    *metrics.Textfile
}

func newMetricsOutput(set Config, reg *prometheus.Registry, scrapes *metrics.Scrapes, lc fx.Lifecycle) *MetricsOutput {
	o := &MetricsOutput{set: set, scrapes: scrapes}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { return o.start(reg) },
		OnStop:  o.stop,
	})
	return o
}

func (o *MetricsOutput) start(reg *prometheus.Registry) (err error) {
	if o.set.Metrics.Textfile != "" {
		if o.file, err = metrics.NewTextfile(o.set.Metrics.Textfile, reg, o.set.Log); err != nil {
			return err
		}
	}
	if o.set.Metrics.linger > 0 && o.set.Metrics.Addr == "" && o.set.Serve.Addr == "" {
		o.set.Log.Warn("--linger has no effect: nobody can scrape the metrics without --metrics-addr or --serve")
	}
	if o.set.Metrics.Addr == "" {
		return nil
	}
	if o.server, err = metrics.Serve(o.set.Metrics.Addr, o.scrapes); err != nil {
		return errors.Join(err, o.stop(context.Background()))
	}
	o.set.Log.Info("metrics on http://" + o.server.Addr() + "/metrics")
	return nil
}

// Bounds on how long the end of a run waits for a scrape without --linger. It does not wait for a
// scraper that comes rarely, and not long after an interrupt.
const (
	maxLinger            = 2 * time.Minute
	maxLingerInterrupted = 20 * time.Second
	firstLinger          = 30 * time.Second // after one scrape, when it is not known how often they come
)

// Linger waits after the end of a run until its metrics are scraped once more, so that alerts see
// how it ended. Without --linger it waits for 1.5 times the interval between two scrapes, if there
// were any. An interrupt ends it.
func (o *MetricsOutput) Linger(ctx context.Context) {
	wait := o.set.Metrics.linger
	if interval, ok := o.scrapes.Interval(); wait < 0 && ok {
		wait = min(cmp.Or(interval*3/2, firstLinger), maxLinger)
		if ctx.Err() != nil {
			wait = min(wait, maxLingerInterrupted)
		}
	}
	if wait <= 0 || o.set.Metrics.Addr == "" && o.set.Serve.Addr == "" {
		return
	}
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil // the interrupt ended the run; the next one ends the process
	}
	o.set.Log.Info(fmt.Sprintf("waiting for a last scrape of the metrics, at most %s; an interrupt ends this", wait.Round(time.Second)))
	select {
	case <-o.scrapes.Next():
	case <-time.After(wait):
	case <-interrupted:
	}
}

// stop ends what start began.
func (o *MetricsOutput) stop(ctx context.Context) error {
	var faults []error
	if o.server != nil {
		faults = append(faults, o.server.Close(ctx))
	}
	if o.file != nil {
		faults = append(faults, o.file.Close())
	}
	return errors.Join(faults...)
}
