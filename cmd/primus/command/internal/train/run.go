package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/report"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/internal/watchdog"
	"github.com/primus-fl/primus/metrics"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/primus-fl/primus/vendors/mpi"
	"go.uber.org/fx"
)

// lastWord is how much longer than its processes, which have --grace, a launcher may take to end.
const lastWord = 10 * time.Second

// runTrain trains the module of a stage.
func runTrain(ctx context.Context, prog cli.Program, s experiments.Stage, opts Options, overrides []string) error {
	prog.Ending.SetGrace(opts.run.Grace + lastWord)
	experiment, err := opts.Load(ctx, s.Module, overrides)
	if err != nil {
		return err
	}
	module, err := experiment.Module(s.Module)
	if err != nil {
		return err
	}
	if opts.run.DryRun {
		return dryRun(ctx, prog, s, opts, experiment)
	}
	if module.Framework == native.Framework {
		if err := setRankVariables(); err != nil {
			return cli.UsageError{Err: err}
		}
	}
	job, starts, err := opts.members(module)
	if err != nil {
		return err
	}
	if starts {
		if err := opts.taps.trace.clear(); err != nil {
			return fmt.Errorf("--trace-file: %w", err)
		}
		if err := startRanks(ctx, prog, job, module, opts.line); err != nil {
			return err
		}
		if job.Members > 1 {
			return nil // the files of other nodes are not here
		}
		return opts.taps.trace.join(prog.Err)
	}
	return leaveError(trainHere(ctx, prog, s, opts, experiment, module))
}

// trainHere trains in this process.
func trainHere(ctx context.Context, prog cli.Program, s experiments.Stage, opts Options, experiment *config.Experiment, module *config.Module) error {
	opLevel, err := oppolicy.ParseLogLevel(os.Getenv(oppolicy.EnvLogLevel))
	if err != nil {
		return cli.UsageError{Err: err}
	}
	opFormat, err := opts.format()
	if err != nil {
		return cli.UsageError{Err: err}
	}
	levels, err := train.ReadLogLevels(module.Params, os.Getenv("PRIMUS_LOG_LEVEL"))
	if err != nil {
		return cli.UsageError{Err: err}
	}
	if os.Getenv(oppolicy.EnvLogLevel) == "" && levels.Console >= slog.LevelInfo {
		opLevel = slog.LevelWarn // the log file has the rest
	}
	identity, err := opts.fleet.Member(experiment, module)
	if err != nil {
		return err
	}
	place := placeOf(module)
	if place.follows() {
		opts.metrics, opts.serve.Addr = service.MetricsFlags{}, ""
	}
	outer, stderr, restore := endWithReader(ctx, prog.Err)
	defer restore()
	ctx, stop := context.WithCancelCause(outer)
	defer stop(nil)
	if opFormat == oppolicy.LogJSON {
		prog.Width, prog.Color = nil, false // no status line among the objects
	}
	screen := &plaintext.Console{Out: stderr, Width: prog.Width}
	defer screen.SetStatus("")
	logFile, tail, requests := &backend.LogFile{}, &runs.Tail{}, &backend.Requests{}
	both := io.MultiWriter(tail, logFile)
	inFile := cli.NewLineHandler(both, levels.File, cli.DateTime)
	toFile, opFile := slog.Handler(inFile), slog.Handler(inFile.As(opFormat))
	toScreen, opScreen := slog.Handler(prog.Lines(screen, levels.Console)), slog.Handler(prog.Lines(screen, opLevel).As(opFormat))
	if opFormat == oppolicy.LogJSON {
		toFile = cli.NewJSONHandler(both, levels.File, experiment.ExpName, place.Rank)
		toScreen, opScreen = cli.NewJSONHandler(screen, levels.Console, experiment.ExpName, place.Rank), cli.NewJSONHandler(screen, opLevel, experiment.ExpName, place.Rank)
		opFile = toFile
	}
	log := train.OfRank(slog.New(slog.NewMultiHandler(toScreen, toFile)), place.Rank)
	logRestart(slog.New(toFile))
	experiments.LogReport(log, experiment.Report)
	if opts.note != "" {
		log.Info(opts.note)
	}
	if err := tuneFirst(ctx, prog, &opts, module, place, log); err != nil {
		return err
	}

	display := report.Screen{SetStatus: screen.Status(), Width: prog.Width, Height: prog.Height, Log: log, FileLog: slog.New(toFile), Out: prog.Out}
	losses := &lossPlot{}
	if opts.plot {
		display.Plot, display.Color = losses.Text, prog.Color
		if prog.Width == nil && !place.follows() {
			log.Info("--plot: there is no terminal to draw on while the run goes on: the plot comes before the summary, and " + rundir.PlotName + " has it too")
		}
	}
	show := report.NewProgress(display)
	set := graph.Config{
		Threads: place.threads(opts.Threads), Log: log, Policy: opts.PolicySources(module), Extras: prog.Extras, Module: module, LocalRank: place.LocalRank,
		Interrupted: func() bool { return ctx.Err() != nil },
		OpLog:       slog.NewMultiHandler(opScreen, opFile),
	}
	services := service.Config{
		Log: log, Metrics: opts.metrics.Config(experiment), Serve: opts.serve.Config, Trains: true,
		Fleet: identity, RunLog: tail, Operator: serve.Operator{Save: requests.Save, Stop: stop},
	}
	settings := opts.run.Settings(experiment, s, log)
	settings.LogFile, settings.Requests, settings.Progress = logFile, requests, backend.NewProgress()
	var board *runs.Board
	var output *service.MetricsOutput
	var library *mpi.Library
	var member *service.FleetMember
	watchers := backend.Observers{}
	wire := func(p Params) {
		board, output, library, member = p.Board, p.Output, p.MPI, p.Fleet
		p.Dispatch.Watch(p.Manager)
		p.Process.WatchPlugins(p.Sources)
		settings.Manager, settings.Device, settings.Backends, settings.Patches = p.Manager, p.Device, p.Backends, p.Patches
		watchers = append(watchers, p.Training, p.Dispatch, p.Board, p.Fleet)
		if !place.follows() {
			watchers = append(watchers, runs.NewRecorder(p.Board, log), p.Hub, losses, show)
			if opFormat == oppolicy.LogJSON {
				p.Hub.LogTo(slog.New(slog.NewMultiHandler(toScreen, toFile)))
			}
		}
	}
	err = graph.Run(ctx, func() (err error) {
		prog.Ending.Last(member.EndsNow)
		defer func() { member.Ended(cli.ExitCode(ctx, err), err) }()
		if err := checkManifest(opts.manifest, settings.Manager); err != nil {
			return err
		}
		f, err := settings.Backends.Get(module.Framework)
		if opts.tapped() && err == nil && f.Launches {
			return cli.UsageError{Err: fmt.Errorf("--record-ops, --check-finite and --trace-file see ops of primus, which framework %s does not call", module.Framework)}
		}
		if err != nil || !f.Launches { // a launcher ends its processes, and logs that, itself
			prog.Ending.SetGrace(opts.run.Grace)
			if !place.follows() {
				defer warnWhenInterrupted(ctx, &settings, opts.run.Grace)()
			}
		}
		around, err := newTaps(&opts, settings.Manager, experiment.ExpName, place, log)
		if err != nil {
			return err
		}
		settings.Provide = func(n backend.Needs) error {
			around.finite.ForwardOnly = n.ScaledLoss
			library.Limit(n.CollectiveTimeout)
			if n.Overlap {
				if err := library.Yield(); err != nil {
					return err
				}
			}
			return meet(ctx, &settings, library, place, opts.run.Rendezvous)
		}
		settings.Observer = append(watchers, around)
		settings.Progress.Waits(library.Waits)
		defer watchdog.Start(opts.watch(prog, settings, place, library.Recent, member))()
		err = errors.Join(train.Run(ctx, settings), around.close(), show.Err())
		switch {
		case errors.Is(err, backend.ErrInterrupted) && errors.Is(err, context.Canceled): // this rank alone knows
			library.Leave(err)
		case err == nil, errors.Is(err, backend.ErrInterrupted), common(err):
			err = errors.Join(err, library.Close()) // after another error the launcher ends the other ranks
		}
		if lost, ok := errors.AsType[*mpi.LostError](err); ok && lost.Interrupted {
			err = fmt.Errorf("%w with another rank: %w", backend.ErrInterrupted, err)
		}
		member.Ended(cli.ExitCode(ctx, err), err)
		if board.Ready() == nil {
			output.Linger(outer)
		}
		return err
	}, Graph(set, services, wire))
	if place.WorldSize > 1 && err != nil {
		err = fmt.Errorf("rank %d of %d: %w", place.Rank, place.WorldSize, err)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.Is(err, backend.ErrInterrupted) {
		return fmt.Errorf("%w before the run began", backend.ErrInterrupted)
	}
	return err
}

// format returns the format of log lines.
func (o *Options) format() (oppolicy.LogFormat, error) {
	if o.logFormat == "" {
		return oppolicy.ParseLogFormat(os.Getenv(oppolicy.EnvLogFormat))
	}
	switch o.logFormat {
	case "text":
		return oppolicy.LogPlain, nil
	case "json":
		return oppolicy.LogJSON, nil
	}
	return 0, fmt.Errorf("--log-format: given %q, want text or json", o.logFormat)
}

// warnWhenInterrupted logs what follows when ctx ends, until the function that it returns is
// called, which returns after that line is written.
func warnWhenInterrupted(ctx context.Context, s *train.Settings, grace time.Duration) (stop func()) {
	written := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(written)
		by := ""
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			by = fmt.Sprintf(" by %v", cause)
		}
		if at, running := s.Progress.Look(); !running || at.Step == 0 || at.Phase == backend.PhaseStart || at.Phase == backend.PhaseRendezvous {
			s.Log.Warn(fmt.Sprintf("interrupted%s: no further step begins, and the run ends within %v (--grace); interrupt again to exit at once", by, grace))
			return
		}
		s.Log.Warn(fmt.Sprintf("interrupted%s: the current step is finished, for %v at most, and saved, within %v (--grace); interrupt again to exit at once", by, grace/2, grace))
	})
	return func() {
		if !cancel() {
			<-written
		}
	}
}

// maxManifest bounds the manifest of a run.
const maxManifest = 16 << 20

// checkManifest compares the decisions of m with the manifest in a file; "" is no file.
func checkManifest(file string, m *opmanager.Manager) error {
	if file == "" {
		return nil
	}
	text, err := durable.ReadRegular(file, maxManifest)
	if err != nil {
		return fmt.Errorf("--require-manifest: %w; want the manifest.json of another run", err)
	}
	want, err := opmanager.ParseManifest(text)
	if err != nil {
		return fmt.Errorf("--require-manifest %s: %w", file, err)
	}
	if err := want.Check(m.Manifest()); err != nil {
		return fmt.Errorf("--require-manifest %s: dispatch differs, so nothing was trained:\n%w", file, err)
	}
	return nil
}

// Params are what training needs of the graph. They are built in the order of the fields: values
// that depend on the environment, which may be wrong, come before those that have to be closed.
type Params struct {
	fx.In
	Policy   oppolicy.Policy
	Device   device.Backend
	Manager  *opmanager.Manager
	Watcher  *policyfile.Watcher
	Backends *backend.Registry
	Patches  *patch.Set
	Training *metrics.Training
	Dispatch *metrics.Dispatch
	Process  *metrics.Process
	Sources  *graph.SourceList
	Output   *service.MetricsOutput
	Board    *runs.Board
	Hub      *serve.Hub
	Service  *service.Service
	MPI      *mpi.Library
	Fleet    *service.FleetMember
}

// Graph wires everything that training needs and passes it to wire.
func Graph(set graph.Config, services service.Config, wire func(Params)) fx.Option {
	return fx.Options(graph.Core(set), fx.Supply(services), fx.Provide(service.NewPolicyWatcher, service.NewFleetMember), service.MetricsOptions(), service.Options(), fx.Invoke(wire))
}
