package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/config"
)

var (
	// ErrUnknown is wrapped when an experiment names a framework that is not compiled in.
	ErrUnknown = errors.New("unknown framework")

	// ErrPlanOnly is wrapped when a run is asked of a backend that can only be planned.
	ErrPlanOnly = errors.New("this version of primus does not start the Python process of this framework")

	// ErrInterrupted says that training stopped early because its context ended, with everything saved.
	ErrInterrupted = errors.New("interrupted")

	// ErrNonFinite says that training stopped at a loss or gradient that is NaN or infinite.
	ErrNonFinite = errors.New("loss or gradient is not finite")
)

// Adapter connects a training framework to the runtime. Package train calls the methods, in the order of the interface.
type Adapter interface {
	// SetupPath finds the source tree of the framework, given what --backend-path says, "" for nothing. It only looks.
	// A framework that is compiled in returns the zero Paths.
	SetupPath(given string, tc *TrainContext) (Paths, error)

	// Prepare does what the framework needs once, behind the defaults of the environment and the setup hooks. A dry run
	// leaves it out.
	Prepare(ctx context.Context, tc *TrainContext) error

	// ConvertConfig makes the arguments of the framework from the parameters of tc.Module. Parameters that are not for the
	// framework may be left out; they are added after the patches of phase build_args. Warnings are what is legal and
	// probably a mistake. It does no I/O.
	ConvertConfig(tc *TrainContext) (*Args, []document.Warning, error)

	// DetectVersion returns the version of the framework. It is asked after Prepare, unless the adapter is an
	// EarlyVersioner that knew it before.
	DetectVersion(tc *TrainContext) (string, error)

	// LoadTrainer returns the trainer class of a stage, the default one when class is empty.
	LoadTrainer(stage, class string) (TrainerClass, error)

	// Stages returns the stages that LoadTrainer knows.
	Stages() []string
}

// EarlyVersioner is an Adapter that can tell the version of the framework before Prepare, so that the whole run knows it.
type EarlyVersioner interface {
	EarlyVersion(tc *TrainContext) (string, error)
}

// EnvDefaulter is an Adapter that wants variables to be set when nobody has set them.
type EnvDefaulter interface {
	EnvDefaults(env *Environ) []EnvDefault
}

// ParameterLister is an Adapter that knows which parameters its framework has, for completion on the command line.
type ParameterLister interface {
	Parameters() []document.Parameter
}

// TrainerInitializer is an Adapter that does something with each trainer that was made, before any patch sees it.
type TrainerInitializer interface {
	InitTrainer(t Trainer, tc *TrainContext) error
}

// DataUser is an Adapter whose framework reads data sets and models below the data directory and HF_HOME, which are made for
// it before training.
type DataUser interface{ UsesData() }

// Trainer is one training run. The methods are called once each, in the order of the interface.
type Trainer interface {
	// Setup takes the run directory and whatever else the run must own alone.
	Setup(ctx context.Context) error

	// Init builds model, optimizer and data, and loads a checkpoint.
	Init(ctx context.Context) error

	// Train runs to completion. When ctx ends it finishes the step, saves and returns ErrInterrupted.
	Train(ctx context.Context) error

	// Cleanup releases everything. It is called also when an earlier method failed, with that error.
	Cleanup(cause error) error
}

// Inspector is a Trainer that can look at what a run would read and write before anything is done. A dry run asks it.
type Inspector interface {
	// Inspect returns what it has found, and what would make the run fail. It changes nothing.
	Inspect(ctx context.Context) ([]Finding, error)
}

// Finding is what is known about a part of a run before it begins.
type Finding struct{ Name, Text string }

// TrainContext is what the runtime knows about a run; fields are filled as it goes on.
type TrainContext struct {
	Experiment *config.Experiment
	Module     *config.Module
	ModuleName string // as it was asked for
	Framework  string
	Stage      string
	DataPath   string
	Distributed

	// PatchKey reports whether a patch of the framework reads a parameter; nil when there are no patches.
	PatchKey func(name string) bool

	Adapter Adapter
	Paths   Paths
	Version string // of the framework, empty when it is unknown
	Args    *Args

	Environ  *Environ
	Manager  *opmanager.Manager
	Device   device.Backend
	Observer Observer
	Requests *Requests

	Grace   time.Duration // what an interrupted run may take to end
	Log     *slog.Logger  // of this rank: the first one says everything, the others what is wrong
	LogFile *LogFile
}
