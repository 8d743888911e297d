package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/config"
)

// ErrUnknown is wrapped when an experiment names a framework that is not compiled in.
var ErrUnknown = errors.New("unknown framework")

// ErrInterrupted says that training stopped early because its context ended, with everything saved.
var ErrInterrupted = errors.New("interrupted")

// Adapter connects a training framework to the runtime.
type Adapter interface {
	// Framework returns the name that experiments use.
	Framework() string

	// ConvertConfig turns a module's parameters into the arguments of its trainers and checks them. Warnings are what is
	// legal and probably a mistake.
	ConvertConfig(module *config.Module) (args any, warnings []config.Warning, err error)

	// NewTrainer makes the trainer of a stage, such as "pretrain", from what ConvertConfig returned. It does no I/O.
	NewTrainer(stage string, args any, tc TrainContext) (Trainer, error)
}

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

// TrainContext is what the runtime gives to a trainer.
type TrainContext struct {
	Experiment *config.Experiment
	Module     *config.Module
	Manager    *opmanager.Manager
	Device     device.Backend
	Observer   Observer
	Log        *slog.Logger
	LogFile    *LogFile
}

// Observer is told what happens in a run. Its methods return soon.
type Observer interface {
	RunStarted(Run)
	StepDone(Step)
	RunEnded(Result)
}

// Observers tells several observers in turn.
type Observers []Observer

// RunStarted tells every observer.
func (o Observers) RunStarted(r Run) {
	for _, each := range o {
		each.RunStarted(r)
	}
}

// StepDone tells every observer.
func (o Observers) StepDone(s Step) {
	for _, each := range o {
		each.StepDone(s)
	}
}

// RunEnded tells every observer.
func (o Observers) RunEnded(r Result) {
	for _, each := range o {
		each.RunEnded(r)
	}
}

// Run describes a run that starts.
type Run struct {
	Name          string // of the experiment
	Model         string
	Dir           string
	Parameters    int
	FirstStep     int // 1, or the step after the checkpoint
	Steps         int // the last step
	TokensPerStep int
	LogInterval   int // steps between lines of the log
}

// Step is one step of training.
type Step struct {
	Step            int
	Loss            float64  // mean of the global batch, nats a token
	ValidLoss       *float64 // when the step was followed by an evaluation
	LR              float64
	GradNorm        float64 // before clipping
	Tokens          int
	TokensPerSecond float64
	Duration        time.Duration
}

// Result is how a run ended.
type Result struct {
	Run
	LastStep  int
	FirstLoss float64
	Loss      float64
	ValidLoss *float64
	Duration  time.Duration
	Impls     []opmanager.ImplStats // what each impl did in training
	Sample    string                // generated text
	Err       error                 // nil when the run went to its last step
}

// Registry holds the adapters that are compiled in, by framework.
type Registry struct{ adapters map[string]Adapter }

// NewRegistry returns a registry of these adapters. Two for one framework are an error.
func NewRegistry(adapters ...Adapter) (*Registry, error) {
	r := &Registry{adapters: map[string]Adapter{}}
	for _, a := range adapters {
		if _, taken := r.adapters[a.Framework()]; taken {
			return nil, fmt.Errorf("backend: two adapters for framework %q", a.Framework())
		}
		r.adapters[a.Framework()] = a
	}
	return r, nil
}

// Names returns the frameworks in order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.adapters)) }

// Get returns the adapter of a framework.
func (r *Registry) Get(framework string) (Adapter, error) {
	if a, ok := r.adapters[framework]; ok {
		return a, nil
	}
	hint := ""
	if name, ok := suggest.Nearest(framework, r.Names()); ok {
		hint = fmt.Sprintf("; did you mean %q?", name)
	}
	return nil, fmt.Errorf("%w %q: available are %s%s", ErrUnknown, framework, strings.Join(r.Names(), ", "), hint)
}
