package train

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strconv"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/launch/elastic"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"go.uber.org/fx"
)

// dryParams are what a dry run needs of the graph: what the run itself makes its decisions with.
type dryParams struct {
	fx.In
	Policy   oppolicy.Policy
	Device   device.Backend
	Manager  *opmanager.Manager
	Backends *backend.Registry
	Patches  *patch.Set
}

// dryRun prints what training the module of a stage would do. It returns the error that the run
// would end with, if that is known without training.
func dryRun(ctx context.Context, prog cli.Program, s experiments.Stage, opts Options, e *config.Experiment) error {
	module, err := e.Module(s.Module)
	if err != nil {
		return err
	}
	if _, err := opts.fleet.Member(e, module); err != nil {
		return err
	}
	job, starts, err := opts.members(module)
	if err != nil {
		return err
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	experiments.LogReport(log, e.Report)
	if opts.Tune() == dispatch.TuneAuto {
		log.Warn("--tune auto measures when a run begins; what follows is without it")
		opts.SetTune(dispatch.TuneOff)
	}
	set := graph.Config{Log: log, Threads: int(opts.Threads), Policy: opts.PolicySources(module), Extras: prog.Extras, Module: module}
	var p dryParams
	var plan *train.Plan
	err = graph.Run(ctx, func() error {
		if err := checkManifest(opts.manifest, p.Manager); err != nil {
			return err
		}
		settings := opts.run.Settings(e, s, log)
		settings.Manager, settings.Device, settings.Backends, settings.Patches = p.Manager, p.Device, p.Backends, p.Patches
		if starts {
			if settings.Environ, err = environOfFirst(job); err != nil {
				return err
			}
		}
		plan, err = train.NewPlan(ctx, settings)
		return err
	}, graph.Core(set), fx.Invoke(func(built dryParams) { p = built }))
	if err != nil {
		return err
	}
	if starts {
		plan.Ranks = rankText(job)
	}
	text, err := report.Plan(plan, opts.run.Verbose)
	if err != nil {
		return err
	}
	_, err = io.WriteString(prog.Out, text)
	return err
}

// environOfFirst returns the environment of the first rank of a job, whose nodes start as many
// ranks as this one.
func environOfFirst(job elastic.Settings) (*backend.Environ, error) {
	env := backend.ProcessEnviron().Overlay()
	var faults []error
	for name, value := range map[string]int{"RANK": 0, "WORLD_SIZE": job.Slots * job.Members, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": job.Slots} {
		faults = append(faults, env.Set(name, strconv.Itoa(value), "--nproc"))
	}
	return env, errors.Join(faults...)
}
