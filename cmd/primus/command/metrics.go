package command

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"

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
	peakFLOPS float64 // of the devices; 0 when it is not known
}

// metrics returns what the flags say about the metrics of an experiment. A rank that cannot be read ends the run before
// its first step, so that it does not matter here.
func (o *trainOptions) metrics(e *config.Experiment) metricsConfig {
	d, _ := backend.ReadDistributed(backend.ProcessEnviron())
	return metricsConfig{addr: o.metricsAddr, textfile: o.textfile, run: e.ExpName, rank: d.Rank, peakFLOPS: o.peakTFLOPS * 1e12}
}

// metricsOptions wires the collectors and where they go.
func metricsOptions() fx.Option {
	return fx.Provide(
		prometheus.NewRegistry,
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
	server *metrics.Server
	file   *metrics.Textfile
}

func newMetricsOutput(set appConfig, reg *prometheus.Registry, lc fx.Lifecycle) *metricsOutput {
	o := &metricsOutput{}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error { return o.start(set, reg) },
		OnStop:  o.stop,
	})
	return o
}

func (o *metricsOutput) start(set appConfig, reg *prometheus.Registry) (err error) {
	if set.metrics.textfile != "" {
		if o.file, err = metrics.NewTextfile(set.metrics.textfile, reg, set.log); err != nil {
			return err
		}
	}
	if set.metrics.addr == "" {
		return nil
	}
	if o.server, err = metrics.Serve(set.metrics.addr, reg); err != nil {
		return errors.Join(err, o.stop(context.Background()))
	}
	set.log.Info("metrics on http://" + o.server.Addr() + "/metrics")
	return nil
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
