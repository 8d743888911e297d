package service

import (
	"context"
	"fmt"

	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// Flags are the flags of the service.
type Flags struct{ serve.Config }

// AddFlags gives a command the flags of the service. They begin with a prefix, and the address has
// a name of its own.
func (o *Flags) AddFlags(flags *pflag.FlagSet, addr, usual, prefix string) {
	flags.StringVar(&o.Addr, addr, usual, "serve API, page and metrics on `HOST:PORT`")
	flags.StringVar(&o.TokenFile, prefix+"token-file", "", "let clients with a token of `FILE` change policy and quarantine; without it nobody may")
	flags.StringVar(&o.CertFile, prefix+"tls-cert", "", "serve over TLS with the certificate in `FILE`")
	flags.StringVar(&o.KeyFile, prefix+"tls-key", "", "the key of the certificate, in `FILE`")
	flags.BoolVar(&o.Insecure, prefix+"insecure", false, "allow an address that others can reach without TLS")
	flags.StringArrayVar(&o.Hosts, prefix+"host", nil, "a `NAME` by which clients call the service, besides addresses and the hostname; may be repeated")
	flags.BoolVar(&o.Pprof, prefix+"pprof", false, "serve Go profiles at /debug/pprof/")
}

// Options wires the service and what it listens to.
func Options() fx.Option {
	return fx.Options(
		fx.Provide(serve.NewHub, newBoard, newService),
		fx.Provide(fx.Annotate(func(h *serve.Hub) opmanager.Listener { return h }, fx.ResultTags(graph.Listeners))),
	)
}

// newBoard returns where the service finds the run of this process.
func newBoard(set Config, m *opmanager.Manager) *runs.Board {
	return runs.NewBoard(runs.BoardSettings{Rank: set.Fleet.identity.Rank, WorldSize: set.Fleet.identity.WorldSize, Stats: m.Stats, Log: set.RunLog})
}

type serviceParams struct {
	fx.In
	Set      Config
	Manager  *opmanager.Manager
	Registry *opregistry.Registry
	Hub      *serve.Hub
	Board    *runs.Board
	Metrics  *metrics.Scrapes
	Sources  *graph.SourceList
	Output   *MetricsOutput
	Backends *backend.Registry
	Patches  *patch.Set
}

// Service is the HTTP service while the graph runs, if an address is given.
type Service struct {
	set    Config
	output *MetricsOutput
	server *serve.Server
}

func newService(p serviceParams, lc fx.Lifecycle) *Service {
	s := &Service{set: p.Set, output: p.Output}
	if p.Set.Serve.Addr == "" {
		return s
	}
	shown := serve.Runs(p.Board)
	if p.Set.Archive != nil {
		shown = p.Set.Archive
	}
	settings := serve.Settings{
		Manager: p.Manager, Registry: p.Registry, Hub: p.Hub, Runs: shown, Archive: p.Set.Archive != nil, Log: p.Set.Log, Operator: p.Set.Operator,
		Version: buildinfo.Read().Version, Gatherer: p.Metrics,
		Plugins: func(context.Context) (any, error) { return p.Sources.Rows(), nil },
		Backends: func(context.Context) (any, error) {
			return ListBackends(graph.PlanParams{Backends: p.Backends, Patches: p.Patches})
		},
		Discovery: s.discovery(lc), Model: p.Set.Model,
	}
	settings.Patches, settings.PatchesPlan = p.Set.Patches.lists(p.Patches)
	if p.Set.Trains {
		settings.Ready = p.Board.Ready
	}
	if p.Set.Model != nil {
		settings.Ready = p.Set.Model.Ready
	}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) (err error) {
			if s.server, err = serve.New(p.Set.Serve, settings); err != nil {
				return err
			}
			if err := s.server.Start(); err != nil {
				return err
			}
			p.Set.Log.Info(fmt.Sprintf("service on %s/", s.server.URL()))
			return nil
		},
		OnStop: func(ctx context.Context) error { return s.server.Close(ctx) },
	})
	return s
}
