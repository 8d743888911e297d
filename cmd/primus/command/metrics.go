package command

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

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// metricsConfig is where metrics go, and what tells one process from another.
type metricsConfig struct {
	addr      string // "" serves none
	textfile  string // "" writes none
	run       string
	rank      int
	peakFLOPS float64       // of the devices; 0 when it is not known
	linger    time.Duration // how long to wait for a last scrape; below 0 is as long as it takes to the next one, if there were any
}

// metricsFlags are the flags about the metrics of a run.
type metricsFlags struct {
	addr, textfile string
	linger         time.Duration
	peakTFLOPS     float64
}

// addFlags gives a command the flags about metrics.
func (o *metricsFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "metrics-addr", "", "serve Prometheus metrics on `HOST:PORT`, such as 127.0.0.1:9400")
	flags.StringVar(&o.textfile, "metrics-textfile", "", "keep Prometheus metrics in `FILE`.prom, for node_exporter")
	flags.DurationVar(&o.linger, "linger", -1, "serve metrics after the end until they are scraped once more, at most for `TIME`; by default for those who have scraped them before")
	flags.Lookup("linger").DefValue = ""
	flags.Float64Var(&o.peakTFLOPS, "peak-tflops", 0, "the devices reach `N` TFLOP/s at best, for primus_train_mfu_ratio; 0 is unknown")
}

// check returns the first mistake in the flags.
func (o *metricsFlags) check(cmd *cobra.Command) error {
	if o.addr != "" {
		if _, _, err := net.SplitHostPort(o.addr); err != nil {
			return usagef(cmd, "--metrics-addr: got %q, want %s", o.addr, wants(cmd.Flags().Lookup("metrics-addr")))
		}
	}
	if o.textfile != "" && filepath.Ext(o.textfile) != ".prom" {
		return usagef(cmd, "--metrics-textfile: got %q, want %s", o.textfile, wants(cmd.Flags().Lookup("metrics-textfile")))
	}
	if cmd.Flags().Changed("linger") && o.linger < 0 {
		return usagef(cmd, "--linger: got %s, want %s", o.linger, wants(cmd.Flags().Lookup("linger")))
	}
	if !(o.peakTFLOPS >= 0) || math.IsInf(o.peakTFLOPS, 0) {
		return usagef(cmd, "--peak-tflops: got %v, want %s", o.peakTFLOPS, wants(cmd.Flags().Lookup("peak-tflops")))
	}
	return nil
}

// config returns what the flags say about the metrics of an experiment. A rank that cannot be read ends the run before its
// first step, so that it does not matter here.
func (o *metricsFlags) config(e *config.Experiment) metricsConfig {
	d, _ := backend.ReadDistributed(backend.ProcessEnviron())
	return metricsConfig{addr: o.addr, textfile: o.textfile, run: e.ExpName, rank: d.Rank, peakFLOPS: o.peakTFLOPS * 1e12, linger: o.linger}
}

// metricsOptions wires the collectors and where they go.
func metricsOptions() fx.Option {
	return fx.Provide(
		prometheus.NewRegistry,
		func(r *prometheus.Registry) *metrics.Scrapes { return metrics.NewScrapes(r) },
		func(r *prometheus.Registry, set serviceConfig) prometheus.Registerer {
			return prometheus.WrapRegistererWith(prometheus.Labels{"run": set.metrics.run, "rank": strconv.Itoa(set.metrics.rank)}, r)
		},
		func(set serviceConfig) metrics.TrainingSettings {
			return metrics.TrainingSettings{PeakFLOPS: set.metrics.peakFLOPS}
		},
		func() metrics.Build {
			v := buildVersion()
			return metrics.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}
		},
		metrics.NewDispatch, metrics.NewTraining, metrics.NewProcess, newMetricsOutput,
		fx.Annotate(func(d *metrics.Dispatch) opmanager.Listener { return d }, fx.ResultTags(groupListeners)),
	)
}

// metricsOutput serves the metrics of a run and keeps them in a file while the graph runs, where this is asked for.
type metricsOutput struct {
	set     serviceConfig
	scrapes *metrics.Scrapes // by whoever asks over HTTP
	server  *metrics.Server
	file    *metrics.Textfile
}

func newMetricsOutput(set serviceConfig, reg *prometheus.Registry, scrapes *metrics.Scrapes, lc fx.Lifecycle) *metricsOutput {
	o := &metricsOutput{set: set, scrapes: scrapes}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { return o.start(reg) },
		OnStop:  o.stop,
	})
	return o
}

func (o *metricsOutput) start(reg *prometheus.Registry) (err error) {
	if o.set.metrics.textfile != "" {
		if o.file, err = metrics.NewTextfile(o.set.metrics.textfile, reg, o.set.log); err != nil {
			return err
		}
	}
	if o.set.metrics.linger > 0 && o.set.metrics.addr == "" && o.set.serve.Addr == "" {
		o.set.log.Warn("--linger has no effect: nobody can scrape the metrics without --metrics-addr or --serve")
	}
	if o.set.metrics.addr == "" {
		return nil
	}
	if o.server, err = metrics.Serve(o.set.metrics.addr, o.scrapes); err != nil {
		return errors.Join(err, o.stop(context.Background()))
	}
	o.set.log.Info("metrics on http://" + o.server.Addr() + "/metrics")
	return nil
}

// Bounds on how long the end of a run waits for a scrape without --linger: a scraper that comes rarely is not waited for,
// and after an interrupt somebody waits for the process to end.
const (
	maxLinger            = 2 * time.Minute
	maxLingerInterrupted = 20 * time.Second
	firstLinger          = 30 * time.Second // after one scrape, when it is not known how often they come
)

// linger waits after the end of a run until its metrics were scraped once more, so that alerts see how it ended. Without
// --linger it waits for those who have scraped it before, half as long again as they let pass between two scrapes. An
// interrupt ends it.
func (o *metricsOutput) linger(ctx context.Context) {
	wait := o.set.metrics.linger
	if interval, ok := o.scrapes.Interval(); wait < 0 && ok {
		wait = min(cmp.Or(interval*3/2, firstLinger), maxLinger)
		if ctx.Err() != nil {
			wait = min(wait, maxLingerInterrupted)
		}
	}
	if wait <= 0 || o.set.metrics.addr == "" && o.set.serve.Addr == "" {
		return
	}
	interrupted := ctx.Done()
	if ctx.Err() != nil {
		interrupted = nil // the interrupt ended the run; the next one ends the process
	}
	o.set.log.Info(fmt.Sprintf("waiting for a last scrape of the metrics, at most %s; an interrupt ends this", wait.Round(time.Second)))
	select {
	case <-o.scrapes.Next():
	case <-time.After(wait):
	case <-interrupted:
	}
}

// stop ends what start has begun.
func (o *metricsOutput) stop(ctx context.Context) error {
	var faults []error
	if o.server != nil {
		faults = append(faults, o.server.Close(ctx))
	}
	if o.file != nil {
		faults = append(faults, o.file.Close())
	}
	return errors.Join(faults...)
}
