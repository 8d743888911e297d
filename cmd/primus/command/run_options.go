package command

import (
	"context"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/spf13/pflag"
	"go.uber.org/fx"
)

// runOptions are the flags about how a run goes.
type runOptions struct {
	dryRun        bool
	strictPatches bool
	patches       string
	dataPath      string
	backendPath   string
	grace         time.Duration
}

// addFlags gives a command the flags of a run.
func (o *runOptions) addFlags(flags *pflag.FlagSet) {
	o.addPlanFlags(flags)
	flags.BoolVar(&o.dryRun, "dry-run", false, "print what would be done, and do nothing of it")
	flags.DurationVar(&o.grace, "grace", 30*time.Second, "`TIME` that an interrupted run may take; half of it is for the step in hand, the rest for saving")
	flags.BoolVar(&o.strictPatches, "strict-patches", false, "end the run at the first patch that fails")
}

// addPlanFlags gives a command the flags that decide what is planned.
func (o *runOptions) addPlanFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.patches, "patches", "", "only these patches: `IDS` with commas, all or none")
	flags.StringVar(&o.dataPath, "data-path", "./data", "`DIR` of data sets and models of frameworks that have some")
	flags.StringVar(&o.backendPath, "backend-path", "", "`DIR` of the framework's source tree, before BACKEND_PATH and the usual places")
}

// settings returns what the flags say about the run of an experiment.
func (o *runOptions) settings(e *config.Experiment, s stage, log *slog.Logger) train.Settings {
	return train.Settings{
		Experiment: e, ModuleName: s.module, Stage: s.name, Log: log, Filter: patch.ParseFilter(o.patches),
		StrictPatches: o.strictPatches, PrimusVersion: buildVersion().Version, DataPath: o.dataPath, BackendPath: o.backendPath,
		Grace: o.grace,
	}
}

// planParams are what planning a run needs of the graph.
type planParams struct {
	fx.In
	Backends *backend.Registry
	Patches  *patch.Set
}

// planGraph wires what planning a run needs and hands it over.
func planGraph(set appConfig, wire func(planParams)) fx.Option {
	return fx.Options(core(set), fx.Invoke(wire))
}

// withBackends runs f with the backends and patches that are compiled in.
func withBackends(ctx context.Context, prog program, log *slog.Logger, f func(planParams) error) error {
	var p planParams
	return runApp(ctx, func() error { return f(p) }, planGraph(appConfig{log: log, extras: prog.extras}, func(built planParams) { p = built }))
}

// planRun plans the run of an experiment.
func planRun(ctx context.Context, prog program, o *runOptions, s stage, e *config.Experiment) (*train.Plan, error) {
	log := slog.New(prog.lines(prog.Err, slog.LevelWarn))
	logReport(log, e.Report)
	var plan *train.Plan
	err := withBackends(ctx, prog, log, func(p planParams) (err error) {
		settings := o.settings(e, s, log)
		settings.Backends, settings.Patches = p.Backends, p.Patches
		plan, err = train.NewPlan(ctx, settings)
		return err
	})
	return plan, err
}
