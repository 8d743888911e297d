package command

import (
	"context"

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// metricsOptions wires the collectors and their server.
func metricsOptions() fx.Option {
	return fx.Provide(
		prometheus.NewRegistry,
		func(r *prometheus.Registry) prometheus.Registerer { return r },
		metrics.NewDispatch, metrics.NewTraining, newMetricsServer,
		fx.Annotate(func(d *metrics.Dispatch) opmanager.Listener { return d }, fx.ResultTags(listenerGroup)),
	)
}

// metricsServer serves the metrics of a run while the graph runs, if an address is given.
type metricsServer struct{ server *metrics.Server }

func newMetricsServer(set appConfig, reg *prometheus.Registry, lc fx.Lifecycle) *metricsServer {
	s := &metricsServer{}
	if set.metricsAddr == "" {
		return s
	}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) (err error) {
			if s.server, err = metrics.Serve(set.metricsAddr, reg); err != nil {
				return err
			}
			set.log.Info("metrics on http://" + s.server.Addr() + "/metrics")
			return nil
		},
		OnStop: func(ctx context.Context) error { return s.server.Close(ctx) },
	})
	return s
}
