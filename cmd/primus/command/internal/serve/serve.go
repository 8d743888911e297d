// Package serve is the command that serves what dispatch would decide on this machine.
package serve

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

// serveOptions are the flags of `primus serve`.
type serveOptions struct {
	service.Flags
	run     string // directory of runs to show
	model   modelServed
	patches patchesServed
}

// New returns the command `primus serve`.
func New(prog cli.Program) *cobra.Command {
	var opts serveOptions
	var policy dispatch.Options
	var of service.FleetFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve what dispatch would decide on this machine, and a page that shows it",
		Long: `Serve an HTTP API, a page and metrics about the ops and implementations of this machine
and the policy in force. train --serve ADDR serves the same about a run, with its
progress; docs/reference/service.md has the whole API, which /openapi.json describes.

Anyone who can reach the address may read. Changing the policy or a quarantine needs a
token of --token-file. An address that other machines can reach needs --tls-cert and
--tls-key, or --insecure. An interrupt ends the service.

With --run the page shows runs from the files in their directories: runs that have ended,
that were killed, and that other processes are running.

With --repo the page and /v1/patches also have the patches of a checkout of Primus. With
--config they say which patches an experiment gets and why: patches of the checkout, or
without one those of this program.

With --model the service also generates texts, in the form of OpenAI's API: /v1/models,
/v1/completions and /v1/chat/completions, and a page to try it at /model. With a
--token-file only clients with a token get texts.

With --fleet, Prometheus finds the runs of the fleet at /v1/sd. Flags may also be given as
PRIMUS_LISTEN, PRIMUS_TOKEN_FILE, PRIMUS_FLEET and so on.`,
		Example: `  primus serve
  primus serve --listen 127.0.0.1:9400 --token-file tokens --policy policy.yaml
  primus serve --run output
  primus serve --model output/local/local/my_run --listen 127.0.0.1:8000
  primus serve --repo ~/Primus --config exp.yaml --backend-version 0.16.0
  primus train pretrain --config exp.yaml --serve 127.0.0.1:9400 --serve-token-file tokens`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := of.Check(cmd); err != nil {
				return err
			}
			if err := opts.Check(); err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			if err := opts.patches.check(cmd); err != nil {
				return err
			}
			if err := opts.model.check(cmd); err != nil {
				return err
			}
			return runServe(cmd.Context(), prog, opts, policy, of)
		},
	}
	opts.AddFlags(cmd.Flags(), "listen", "127.0.0.1:9400", "")
	cmd.Flags().StringVar(&opts.run, "run", "", "show runs from their files: `DIR` is a run directory, or holds some, such as output")
	opts.model.addFlags(cmd)
	opts.patches.Program = prog
	opts.patches.addFlags(cmd)
	policy.AddFlags(cmd.Flags())
	of.AddFlags(cmd.Flags())
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
func runServe(ctx context.Context, prog cli.Program, opts serveOptions, policy dispatch.Options, of service.FleetFlags) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelInfo))
	archive, err := opts.openArchive(log)
	if err != nil {
		return err
	}
	if err := opts.model.find(ctx); err != nil {
		return err
	}
	patches, err := opts.patches.open(ctx, prog)
	if err != nil {
		return err
	}
	set := graph.Config{
		Threads: int(opts.model.threads), Log: log, OpLog: prog.Lines(prog.Err, slog.LevelWarn),
		Policy: policy.Sources(nil), Device: opts.model.load.Device(), Extras: prog.Extras,
		ProbeDevices: opts.model.dir == "", // a model computes on a device that is known
	}
	services := service.Config{Log: log, Archive: archive, Patches: patches, Serve: opts.Config, Fleet: of.Process(), Model: opts.model.handler()}
	if services.Model != nil {
		services.Metrics = service.ModelMetrics(services.Model.Name())
	}
	var p modelParams
	// The service answers before the start has ended, so an interrupt stops it then as it does later.
	return graph.Run(context.WithoutCancel(ctx), func() error {
		if services.Model != nil && ctx.Err() == nil {
			return opts.model.serve(ctx, log, p, services.Model)
		}
		<-ctx.Done()
		return nil
	}, fx.Invoke(func(built modelParams) { p = built }), Graph(set, services), observeModel(services.Model))
}

// serveParams are what the service alone needs of the graph, in the order in which they are built.
type serveParams struct {
	fx.In
	Policy   oppolicy.Policy
	Manager  *opmanager.Manager
	Watcher  *policyfile.Watcher
	Dispatch *metrics.Dispatch
	Process  *metrics.Process
	Sources  *graph.SourceList
	Server   *service.Service
}

// Graph wires everything that the service alone needs.
func Graph(set graph.Config, services service.Config) fx.Option {
	return fx.Options(graph.Core(set), fx.Supply(services), service.Options(), service.MetricsOptions(), fx.Provide(service.NewPolicyWatcher),
		fx.Invoke(func(p serveParams) {
			p.Dispatch.Watch(p.Manager)
			p.Process.WatchPlugins(p.Sources)
		}))
}
