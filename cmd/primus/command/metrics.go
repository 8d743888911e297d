package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/prometheus/client_golang/prometheus"
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

// metrics returns what the flags say about the metrics of an experiment. A rank that cannot be read ends the run before
// its first step, so that it does not matter here.
func (o *trainOptions) metrics(e *config.Experiment) metricsConfig {
	d, _ := backend.ReadDistributed(backend.ProcessEnviron())
	return metricsConfig{addr: o.metricsAddr, textfile: o.textfile, run: e.ExpName, rank: d.Rank, peakFLOPS: o.peakTFLOPS * 1e12, linger: o.linger}
}

// metricsOptions wires the collectors and where they go.
func metricsOptions() fx.Option {
	return fx.Provide(
		prometheus.NewRegistry,
		func(r *prometheus.Registry) *metrics.Scrapes { return metrics.NewScrapes(r) },
		func(r *prometheus.Registry, set appConfig) prometheus.Registerer {
			return prometheus.WrapRegistererWith(prometheus.Labels{"run": set.metrics.run, "rank": strconv.Itoa(set.metrics.rank)}, r)
		},
		func(set appConfig) metrics.TrainingSettings {
			return metrics.TrainingSettings{PeakFLOPS: set.metrics.peakFLOPS}
		},
		func() metrics.Build {
			v := buildVersion()
			return metrics.Build{Version: v.Version, Revision: v.Revision, GoVersion: v.Go}
		},
		metrics.NewDispatch, metrics.NewTraining, metrics.NewProcess, newMetricsOutput,
		fx.Annotate(func(d *metrics.Dispatch) opmanager.Listener { return d }, fx.ResultTags(Listeners)),
	)
}

// metricsOutput serves the metrics of a run and keeps them in a file while the graph runs, where this is asked for.
type metricsOutput struct {
	set     appConfig
	scrapes *metrics.Scrapes // by whoever asks over HTTP
	server  *metrics.Server
	file    *metrics.Textfile
}

func newMetricsOutput(set appConfig, reg *prometheus.Registry, scrapes *metrics.Scrapes, lc fx.Lifecycle) *metricsOutput {
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

// Plugins implements metrics.PluginLister.
func (s *sourceList) Plugins() []metrics.Plugin {
	var plugins []metrics.Plugin
	for _, r := range s.rows() {
		plugins = append(plugins, metrics.Plugin{
			Name: cmp.Or(r.Source, filepath.Base(r.Module)), Version: r.Version, State: r.State, Usable: r.usable() > 0,
		})
	}
	return plugins
}

var _ metrics.PluginLister = (*sourceList)(nil)
