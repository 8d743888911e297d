package command

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/runs"
	"github.com/primus-fl/primus/serve"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// serviceFlags are the flags of the service.
type serviceFlags struct{ serve.Config }

// addFlags gives a command the flags of the service. They begin with a prefix, and the address has a name of its own.
func (o *serviceFlags) addFlags(flags *pflag.FlagSet, addr, usual, prefix string) {
	flags.StringVar(&o.Addr, addr, usual, "serve API, page and metrics on `HOST:PORT`")
	flags.StringVar(&o.TokenFile, prefix+"token-file", "", "let those with a token of `FILE` change policy and quarantine; without it nobody may")
	flags.StringVar(&o.CertFile, prefix+"tls-cert", "", "serve over TLS with the certificate in `FILE`")
	flags.StringVar(&o.KeyFile, prefix+"tls-key", "", "the key of the certificate, in `FILE`")
	flags.BoolVar(&o.Insecure, prefix+"insecure", false, "allow an address that others can reach without TLS")
	flags.StringArrayVar(&o.Hosts, prefix+"host", nil, "a `NAME` by which clients call the service, besides addresses and the hostname; may be repeated")
	flags.BoolVar(&o.Pprof, prefix+"pprof", false, "serve Go profiles at /debug/pprof/")
}

// serveOptions are the flags of `primus serve`.
type serveOptions struct {
	serviceFlags
	run     string // directory of runs to show
	patches patchesServed
}

func newServeCommand(prog program) *cobra.Command {
	var opts serveOptions
	var policy policyOptions
	var of fleetOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve what dispatch would decide on this machine, and a page that shows it",
		Long: `Serve an HTTP API, a page and metrics about the ops and implementations of this machine
and the policy in force. train --serve ADDR serves the same about a run, with its
progress; docs/service.md has the whole API, which /openapi.json describes.

Reading is open to whoever reaches the address. Changing the policy, or a quarantine,
takes a token of --token-file. Other addresses than those of this machine alone need
--tls-cert and --tls-key, or --insecure. An interrupt ends the service.

With --run the page shows runs from what they leave in their directories: those that have
ended, those that were killed, and those that go on in other processes.

With --repo the page and /v1/patches have the patches of a checkout of Primus, too, and with
--config which patches an experiment gets and why: those of the checkout, or without one
those of this program.

With --fleet, Prometheus finds the runs of the fleet at /v1/sd. Flags may also be given as
PRIMUS_LISTEN, PRIMUS_TOKEN_FILE, PRIMUS_FLEET and so on.`,
		Example: `  primus serve
  primus serve --listen 127.0.0.1:9400 --token-file tokens --policy policy.yaml
  primus serve --run output
  primus serve --repo ~/Primus --config exp.yaml --backend-version 0.16.0
  primus train pretrain --config exp.yaml --serve 127.0.0.1:9400 --serve-token-file tokens`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := of.check(cmd); err != nil {
				return err
			}
			if err := opts.Check(); err != nil {
				return usagef(cmd, "%w", err)
			}
			if err := opts.patches.check(cmd); err != nil {
				return err
			}
			return runServe(cmd.Context(), prog, opts, policy, of)
		},
	}
	opts.addFlags(cmd.Flags(), "listen", "127.0.0.1:9400", "")
	cmd.Flags().StringVar(&opts.run, "run", "", "show runs from their files: `DIR` is a run directory, or holds some, such as output")
	opts.patches.extras = prog.extras
	opts.patches.addFlags(cmd)
	policy.addFlags(cmd.Flags())
	of.addFlags(cmd.Flags())
	return cmd
}

// openArchive returns the runs that are to be shown, nil for those of this process.
func (o *serveOptions) openArchive(log *slog.Logger) (*runs.Archive, error) {
	if o.run == "" {
		return nil, nil
	}
	archive, err := runs.OpenArchive(o.run)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	if len(archive.Runs()) == 0 {
		log.Warn(fmt.Sprintf("there is no run in %s yet; one that begins there will be shown", o.run))
	}
	return archive, nil
}

// runServe serves until ctx ends.
func runServe(ctx context.Context, prog program, opts serveOptions, policy policyOptions, of fleetOptions) error {
	log := slog.New(prog.lines(prog.Err, slog.LevelInfo))
	archive, err := opts.openArchive(log)
	if err != nil {
		return err
	}
	patches, err := opts.patches.open(ctx, prog)
	if err != nil {
		return err
	}
	set := appConfig{log: log, timing: true, policy: policy.sources(nil), extras: prog.extras}
	services := serviceConfig{log: log, archive: archive, patches: patches, serve: opts.Config, fleet: of.process()}
	return runApp(ctx, func() error {
		<-ctx.Done()
		return nil
	}, serveGraph(set, services))
}

// serveParams are what the service alone needs of the graph, in the order in which they are built.
type serveParams struct {
	fx.In
	Policy   oppolicy.Policy
	Manager  *opmanager.Manager
	Watcher  *policyfile.Watcher
	Dispatch *metrics.Dispatch
	Process  *metrics.Process
	Sources  *sourceList
	Server   *service
}

// serveGraph wires everything that the service alone needs.
func serveGraph(set appConfig, services serviceConfig) fx.Option {
	return fx.Options(core(set), fx.Supply(services), serviceOptions(), metricsOptions(), fx.Provide(newLivePolicy, newPolicyWatcher),
		fx.Invoke(func(p serveParams) {
			p.Dispatch.Watch(p.Manager)
			p.Process.WatchPlugins(p.Sources)
		}))
}

// serviceOptions wires the service, what it listens to, and the control of the policy.
func serviceOptions() fx.Option {
	return fx.Options(
		fx.Provide(serve.NewHub, newBoard, serve.NewControl, newService),
		fx.Provide(fx.Annotate(func(h *serve.Hub) opmanager.Listener { return h }, fx.ResultTags(groupListeners))),
	)
}

// newBoard returns where the service finds the run of this process.
func newBoard(set serviceConfig, m *opmanager.Manager) *runs.Board {
	return runs.NewBoard(runs.BoardSettings{Rank: set.fleet.identity.Rank, WorldSize: set.fleet.identity.WorldSize, Stats: m.Stats, Log: set.runLog})
}

type serviceParams struct {
	fx.In
	Set      serviceConfig
	Manager  *opmanager.Manager
	Registry *opregistry.Registry
	Control  *serve.Control
	Hub      *serve.Hub
	Board    *runs.Board
	Metrics  *metrics.Scrapes
	Sources  *sourceList
	Output   *metricsOutput
	Backends *backend.Registry
	Patches  *patch.Set
}

// service is the HTTP service while the graph runs, if an address is given.
type service struct {
	set    serviceConfig
	output *metricsOutput
	server *serve.Server
}

func newService(p serviceParams, lc fx.Lifecycle) *service {
	s := &service{set: p.Set, output: p.Output}
	if p.Set.serve.Addr == "" {
		return s
	}
	shown := serve.Runs(p.Board)
	if p.Set.archive != nil {
		shown = p.Set.archive
	}
	settings := serve.Settings{
		Manager: p.Manager, Registry: p.Registry, Control: p.Control, Hub: p.Hub, Runs: shown, Archive: p.Set.archive != nil, Log: p.Set.log, Operator: p.Set.operator,
		Version: buildVersion().Version, Gatherer: p.Metrics,
		Plugins: func(context.Context) (any, error) { return p.Sources.rows(), nil },
		Backends: func(context.Context) (any, error) {
			return listBackends(planParams{Backends: p.Backends, Patches: p.Patches})
		},
		Discovery: s.discovery(lc),
	}
	settings.Patches, settings.PatchesPlan = p.Set.patches.lists(p.Patches)
	if p.Set.trains {
		settings.Ready = p.Board.Ready
	}
	lc.Append(fx.Hook{
		OnStart: func(context.Context) (err error) {
			if s.server, err = serve.New(p.Set.serve, settings); err != nil {
				return err
			}
			if err := s.server.Start(); err != nil {
				return err
			}
			p.Set.log.Info(fmt.Sprintf("service on %s/", s.server.URL()))
			return nil
		},
		OnStop: func(ctx context.Context) error { return s.server.Close(ctx) },
	})
	return s
}
