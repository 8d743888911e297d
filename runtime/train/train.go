package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
)

// Settings are the settings of Run and NewPlan.
type Settings struct {
	Experiment *config.Experiment
	ModuleName string // "pre_trainer"
	Stage      string // "pretrain", for modules without the parameter stage
	Backends   *backend.Registry
	Log        *slog.Logger

	Patches       *patch.Set // nil for none
	Filter        patch.Filter
	StrictPatches bool // a patch that fails ends the run
	PrimusVersion string

	Launch      launch.Options // for frameworks that are started as processes
	DataPath    string         // datasets and models; empty means ./data
	BackendPath string         // the source tree of the framework; empty means that it is looked for

	// Elsewhere says that a plan is for another machine, whose files this one does not see.
	Elsewhere bool

	// Environ is the environment of the run; nil means that of the process.
	Environ *backend.Environ

	// DetectArch returns the architecture of the GPUs; nil means backend.DetectArch.
	DetectArch func() backend.Arch

	// The remaining fields are for Run only.
	Manager  *opmanager.Manager
	Device   device.Backend
	Observer backend.Observer
	Requests *backend.Requests
	Progress *backend.Progress // where the run is; nil when nobody looks
	Grace    time.Duration     // how long an interrupted run may take to end
	LogFile  *backend.LogFile

	// Provide is called before the trainer is made, with what the run needs of this program. It may be
	// nil, and is not called for a framework that trains in processes of its own.
	Provide func(backend.Needs) error
}

// Run trains a module of an experiment. When ctx ends, the run finishes the current step and saves,
// and the error wraps backend.ErrInterrupted. Before the first step it also wraps the error of ctx:
// other ranks of the job may not know yet.
func Run(ctx context.Context, s Settings) (err error) {
	r, err := open(s)
	if err != nil {
		return err
	}
	before := len(r.tc.Environ.Changes())
	defer func() { err = errors.Join(err, r.tc.Environ.Rewind(before)) }()
	err = r.run(ctx)
	var configuration *configError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &configuration):
		return configuration.err
	case errors.Is(err, backend.ErrInterrupted):
		r.tc.Log.Info(interruptedBy(ctx))
		return err
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return &earlyEnd{cause: err}
	}
	//lint:ignore ST1005 users of Primus search for this text
	return fmt.Errorf("Training execution failed: %w", err)
}

// earlyEnd says that ctx has ended before the first step.
type earlyEnd struct{ cause error }

func (e *earlyEnd) Error() string {
	return fmt.Sprintf("%v before the first step: nothing was trained or saved", backend.ErrInterrupted)
}

func (e *earlyEnd) Unwrap() []error { return []error{backend.ErrInterrupted, e.cause} }

// interruptedBy describes what ended ctx: its cause or, without one, an interrupt from the
// keyboard.
func interruptedBy(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Sprintf("Interrupted by %v", cause)
	}
	return "Interrupted by user (Ctrl+C)"
}

// configError marks an error in the configuration, after which nothing was executed.
type configError struct{ err error }

func (e *configError) Error() string { return e.err.Error() }

func (e *configError) Unwrap() error { return e.err }

// session is one run, or the plan of one.
type session struct {
	s       Settings
	factory backend.Factory
	tc      *backend.TrainContext
	class   backend.TrainerClass
	points  *patch.Points // of the trainer
	plan    *Plan         // set if the run is only planned
	dry     bool
}

// open finds the module and its framework.
func open(s Settings) (*session, error) {
	module, err := s.Experiment.Module(s.ModuleName)
	if err != nil {
		return nil, err
	}
	factory, err := s.Backends.Get(module.Framework)
	if err != nil {
		return nil, fmt.Errorf("module %q: %w", module.Name, err)
	}
	if s.Environ == nil {
		s.Environ = backend.ProcessEnviron()
	}
	if s.DetectArch == nil {
		s.DetectArch = backend.DetectArch
	}
	if s.Patches == nil {
		if s.Patches, err = patch.NewSet(); err != nil {
			return nil, err
		}
	}
	if s.DataPath == "" {
		s.DataPath = "./data"
	}
	r := &session{s: s, factory: factory, plan: &Plan{}}
	r.tc = &backend.TrainContext{
		Experiment: s.Experiment, Module: module, ModuleName: s.ModuleName, Framework: factory.Framework, Stage: s.Stage,
		DataPath: s.DataPath, Environ: s.Environ, Manager: s.Manager, Device: s.Device, Observer: s.Observer, Log: s.Log,
		Requests: s.Requests, Progress: s.Progress, Grace: s.Grace, LogFile: s.LogFile,
		PatchKey: func(name string) bool { return s.Patches.HasKey(factory.Framework, name) },
	}
	if ids, only := s.Filter.IDs(); only {
		r.tc.OnlyPatches = append([]string{}, ids...)
	}
	r.tc.StrictPatches = s.StrictPatches
	for _, w := range s.Filter.Unknown(s.Patches) {
		s.Log.Warn(w)
	}
	return r, nil
}
