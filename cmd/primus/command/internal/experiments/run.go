package experiments

import (
	"context"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/spf13/pflag"
)

// RunOptions are the flags about how a run goes.
type RunOptions struct {
	DryRun        bool
	Verbose       bool // of a dry run
	strictPatches bool
	Patches       string
	dataPath      string
	backendPath   string
	Grace         time.Duration
	Elsewhere     bool // the files of the run are not those of this machine
	launchOptions
}

// AddFlags gives a command the flags of a run.
func (o *RunOptions) AddFlags(flags *pflag.FlagSet) {
	o.AddPlanFlags(flags)
	flags.BoolVar(&o.DryRun, "dry-run", false, "print what would be done without doing it")
	flags.BoolVar(&o.Verbose, "verbose", false, "with --dry-run, also print the resolved configuration, all arguments with their places, the environment and the patches")
	cli.WithoutVariable(flags, "verbose")
	flags.DurationVar(&o.Grace, "grace", 30*time.Second, "`TIME` that an interrupted run may take; half of it is for the current step, the rest for saving")
	o.launchOptions.addFlags(flags)
	flags.BoolVar(&o.strictPatches, "strict-patches", false, "end the run at the first patch that fails")
}

// AddPlanFlags gives a command the flags that decide what is planned.
func (o *RunOptions) AddPlanFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Patches, "patches", "", "only these patches: `IDS` separated by commas, all or none")
	flags.StringVar(&o.dataPath, "data-path", "./data", "`DIR` of data sets and models of frameworks that have some")
	flags.StringVar(&o.backendPath, "backend-path", "", "`DIR` of the framework's source tree, before BACKEND_PATH and the usual places")
}

// Settings returns what the flags say about the run of an experiment.
func (o *RunOptions) Settings(e *config.Experiment, s Stage, log *slog.Logger) train.Settings {
	return train.Settings{
		Experiment: e, ModuleName: s.Module, Stage: s.name, Log: log, Filter: patch.ParseFilter(o.Patches),
		StrictPatches: o.strictPatches, PrimusVersion: buildinfo.Read().Version, DataPath: o.dataPath, BackendPath: o.backendPath,
		Grace: o.Grace, Launch: o.Launch, Elsewhere: o.Elsewhere,
	}
}

// PlanRun plans the run of an experiment.
func PlanRun(ctx context.Context, prog cli.Program, o *RunOptions, s Stage, e *config.Experiment) (*train.Plan, error) {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	LogReport(log, e.Report)
	var plan *train.Plan
	err := graph.WithBackends(ctx, prog, log, func(p graph.PlanParams) (err error) {
		settings := o.Settings(e, s, log)
		settings.Backends, settings.Patches = p.Backends, p.Patches
		plan, err = train.NewPlan(ctx, settings)
		return err
	})
	return plan, err
}
