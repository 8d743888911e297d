package backend

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/config"
)

var (
	// ErrUnknown is wrapped when an experiment names a framework that is not compiled in.
	ErrUnknown = errors.New("unknown framework")

	// ErrInterrupted says that training stopped early because its context ended, with everything
	// saved.
	ErrInterrupted = errors.New("interrupted")

	// ErrNonFinite says that training stopped at a loss or gradient that is NaN or infinite.
	ErrNonFinite = errors.New("loss or gradient is not finite")
)

// Adapter connects a training framework to the runtime. Package train calls the methods, in the
// order of the interface.
type Adapter interface {
	// SetupPath finds the source tree of the framework. given is the value of --backend-path, "" if it
	// is not set. SetupPath changes nothing. A framework that is compiled in returns the zero Paths.
	SetupPath(given string, tc *TrainContext) (Paths, error)

	// Prepare prepares the framework. It is called once, after the defaults of the environment and the
	// setup hooks, and not in a dry run.
	Prepare(ctx context.Context, tc *TrainContext) error

	// ConvertConfig converts the parameters of tc.Module to the arguments of the framework. It may
	// leave out parameters that are not for the framework; they are added after the patches of phase
	// build_args. Warnings describe values that are valid but probably mistakes. ConvertConfig does no
	// I/O.
	ConvertConfig(tc *TrainContext) (*Args, []document.Warning, error)

	// DetectVersion returns the version of the framework. It is called after Prepare, unless the
	// adapter is an EarlyVersioner that has returned the version before.
	DetectVersion(tc *TrainContext) (string, error)

	// LoadTrainer returns a trainer class of a stage, the default one if class is empty.
	LoadTrainer(stage, class string) (TrainerClass, error)

	// Stages returns the stages that LoadTrainer accepts.
	Stages() []string
}

// EarlyVersioner is an Adapter that can return the version of the framework before Prepare.
type EarlyVersioner interface {
	EarlyVersion(tc *TrainContext) (string, error)
}

// EnvDefaulter is an Adapter with default values for environment variables.
type EnvDefaulter interface {
	EnvDefaults(env *Environ) []EnvDefault
}

// ParameterLister is an Adapter that lists the parameters of its framework, for completion on the
// command line.
type ParameterLister interface {
	Parameters() []document.Parameter
}

// TrainerInitializer is an Adapter that initialises each new trainer before patches are applied to
// it.
type TrainerInitializer interface {
	InitTrainer(t Trainer, tc *TrainContext) error
}

// DataUser is an Adapter whose framework reads datasets and models below the data directory and
// HF_HOME. These directories are created before training.
type DataUser interface{ UsesData() }

// InProcess is an Adapter whose framework trains in this program, which prepares for that.
type InProcess interface {
	// Needs returns what arguments ask of the program. It is called with the parameters of the module
	// before anything is prepared, and with the arguments after the patches of phase build_args. A
	// wrong value counts as one that is not given: the trainer reports it.
	Needs(args *Args) Needs
}

// Needs is what a run needs of the program that it trains in.
type Needs struct {
	// Device is the device to train on, such as opencl:0; "" leaves the choice to the program. It is
	// chosen by the parameters of the module, because registry and op manager depend on it, so that
	// training ends before its first step if a patch of phase build_args changes it.
	Device       string
	DeviceSource string // where Device was given

	// What follows is read after the patches of phase build_args.

	CollectiveTimeout time.Duration // how long a rank waits for the others in a collective
	Overlap           bool          // ranks compute while they exchange gradients or weights
	ScaledLoss        bool          // gradients may overflow in steps that are then skipped
}

// Trainer is one training run. Each method is called once, in the order of the interface.
type Trainer interface {
	// Setup acquires the run directory and other resources that the run does not share.
	Setup(ctx context.Context) error

	// Init builds model, optimizer and data, and loads a checkpoint.
	Init(ctx context.Context) error

	// Train trains to the last step. When ctx ends, it finishes the current step, saves, and returns
	// ErrInterrupted.
	Train(ctx context.Context) error

	// Cleanup releases all resources. It is also called after an earlier method failed, with its
	// error.
	Cleanup(cause error) error
}

// Inspector is a Trainer that can check what a run would read and write. Dry runs call it.
type Inspector interface {
	// Inspect returns its findings, and an error if the run would fail. It changes nothing.
	Inspect(ctx context.Context) ([]Finding, error)
}

// Finding describes a part of a run before it begins.
type Finding struct{ Name, Text string }

// TrainContext describes a run to its backend. Its fields are filled as the run proceeds.
type TrainContext struct {
	Experiment *config.Experiment
	Module     *config.Module
	ModuleName string // as requested
	Framework  string
	Stage      string
	DataPath   string
	Distributed

	// OnlyPatches are the ids of the patches that may run, nil for all. StrictPatches says that a
	// patch that fails ends the run.
	OnlyPatches   []string
	StrictPatches bool

	// PatchResults are the results of the patches of this program so far.
	PatchResults []PatchResult

	// PatchKey reports whether a patch of the framework reads a parameter. It is nil without patches.
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
	Progress *Progress // where the run is, for a watchdog; nil when nobody looks

	Grace   time.Duration  // how long an interrupted run may take to end
	Launch  launch.Options // how the processes of a Python framework are started
	Log     *slog.Logger   // log of this rank; ranks other than the first log warnings and errors only
	LogFile *LogFile
}
