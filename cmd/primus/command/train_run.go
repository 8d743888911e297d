package command

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/configs"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"go.uber.org/fx"
)

// stage is what a command trains: how the backend calls it, and the module of the experiment that holds its parameters.
type stage struct{ name, module string }

// runTrain trains the module of a stage.
func runTrain(ctx context.Context, streams Streams, s stage, opts trainOptions, overrides []string) error {
	experiment, err := loadExperiment(opts, s.module, overrides)
	if err != nil {
		return err
	}
	module, err := experiment.Module(s.module)
	if err != nil {
		return err
	}
	if opts.run.dryRun {
		return dryRun(ctx, streams, s, opts, experiment)
	}
	opLevel, err := opmanager.ParseLogLevel(os.Getenv(opmanager.EnvLogLevel))
	if err != nil {
		return usageError{err}
	}
	levels, err := sinkLevels(module.Params, os.Getenv("PRIMUS_LOG_LEVEL"))
	if err != nil {
		return usageError{err}
	}
	screen := &console{out: streams.Err, width: streams.Width}
	defer screen.setStatus("")
	logFile := &backend.LogFile{}
	toFile := newLineHandler(logFile, levels.file, dateTime)
	log := slog.New(slog.NewMultiHandler(newLineHandler(screen, levels.console, timeOfDay), toFile))
	reportTo(log, experiment.Report)
	defer context.AfterFunc(ctx, func() {
		log.Warn("interrupted: the step in hand is finished and saved; interrupt again to exit at once")
	})()

	show := &progress{streams: streams, console: screen, log: log, fileLog: slog.New(toFile)}
	set := appConfig{
		threads: int(opts.threads), timing: true, log: log, metricsAddr: opts.metricsAddr,
		policy: opts.policy.sources(module),
		opLog:  slog.NewMultiHandler(newLineHandler(screen, opLevel, timeOfDay), toFile),
	}
	settings := opts.run.settings(experiment, s, log)
	settings.LogFile = logFile
	wire := func(p trainParams) {
		p.Dispatch.Watch(p.Manager)
		settings.Manager, settings.Device, settings.Backends, settings.Patches = p.Manager, p.Device, p.Backends, p.Patches
		settings.Observer = backend.Observers{p.Training, show}
	}
	return runApp(ctx, func() error {
		return errors.Join(train.Run(ctx, settings), show.err)
	}, trainGraph(set, wire))
}

// reportTo logs what loading an experiment noticed.
func reportTo(log *slog.Logger, r config.Report) {
	for _, w := range r.Warnings {
		log.Warn(w.String())
	}
	for _, c := range r.Collisions {
		log.Warn(c.String())
	}
}

// trainParams are what training needs of the graph. They are built in the order of the fields, and what the environment
// may get wrong comes before whatever has to be closed again.
type trainParams struct {
	fx.In
	Policy   opmanager.Policy
	Device   device.Backend
	Manager  *opmanager.Manager
	Watcher  *policyfile.Watcher
	Backends *backend.Registry
	Patches  *patch.Set
	Training *metrics.Training
	Dispatch *metrics.Dispatch
	Server   *metricsServer
}

// trainGraph wires everything that training needs and hands it over.
func trainGraph(set appConfig, wire func(trainParams)) fx.Option {
	return fx.Options(core(set), fx.Provide(newPolicyWatcher), metricsOptions(), fx.Invoke(wire))
}

// loadExperiment reads the experiment with its presets, those of the user's directories first.
func loadExperiment(opts trainOptions, module string, overrides []string) (*config.Experiment, error) {
	var roots []config.Root
	for _, dir := range opts.configsDirs {
		root, err := config.DirRoot(dir)
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	roots = append(roots, config.Root{Name: "embedded presets", FS: configs.FS()})
	return config.LoadExperiment(opts.config, config.Options{Presets: roots, Overrides: overrides, Module: module})
}
