package backend

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// Factory makes the adapter of a framework. No code of the framework runs before a run needs it.
type Factory struct {
	Framework   string // the name that experiments use
	Description string
	New         func() Adapter
	Hooks       []Hook // the steps before Prepare, in order
	Launches    bool   // training starts processes, as TrainContext.Launch says
}

// origin describes a factory, to tell it from another one of the same framework.
func (f Factory) origin() string {
	return fmt.Sprintf("%q made by %s", f.Description, goruntime.FuncForPC(reflect.ValueOf(f.New).Pointer()).Name())
}

// Hook is a step in the preparation of a framework.
type Hook struct {
	Name string
	Run  func(ctx context.Context, tc *TrainContext) error
}

// Registry holds the factories that are compiled in, by framework.
type Registry struct{ factories map[string]Factory }

// NewRegistry returns a registry of factories. Two factories of the same framework are an error.
func NewRegistry(factories ...Factory) (*Registry, error) {
	r := &Registry{factories: map[string]Factory{}}
	for _, f := range factories {
		if f.Framework == "" || f.New == nil {
			return nil, fmt.Errorf("backend: the factory of framework %q lacks a name or a constructor", f.Framework)
		}
		if first, taken := r.factories[f.Framework]; taken {
			return nil, fmt.Errorf("backend: two adapters for framework %q: %s and %s; keep one", f.Framework, first.origin(), f.origin())
		}
		r.factories[f.Framework] = f
	}
	return r, nil
}

// Names returns the frameworks in order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.factories)) }

// Get returns the factory of a framework.
func (r *Registry) Get(framework string) (Factory, error) {
	if f, ok := r.factories[framework]; ok {
		return f, nil
	}
	hint := suggest.Hint(framework, r.Names())
	return Factory{}, fmt.Errorf("%w %q: available are %s%s", ErrUnknown, framework, strings.Join(r.Names(), ", "), hint)
}

// TrainerClass is a kind of trainer for a stage.
type TrainerClass struct {
	Stage, Name string

	// New checks the arguments of tc and makes a trainer. It does no I/O.
	New func(tc *TrainContext) (Trainer, error)
}

// Trainers are the trainer classes of a framework; the first one of a stage is its default.
type Trainers []TrainerClass

// Load returns the class of that name for a stage, the default one when the name is empty.
func (t Trainers) Load(framework, stage, name string) (TrainerClass, error) {
	var known []string
	for _, c := range t {
		if c.Stage != stage {
			continue
		}
		if name == "" || name == c.Name {
			return c, nil
		}
		known = append(known, c.Name)
	}
	if known == nil {
		return TrainerClass{}, fmt.Errorf("framework %s: given stage %q, want %s: set the parameter stage, or a module preset that has it", framework, stage, strings.Join(t.Stages(), " or "))
	}
	hint := suggest.Hint(name, known)
	return TrainerClass{}, fmt.Errorf("framework %s, stage %s: given trainer_class %q, want %s%s", framework, stage, name, strings.Join(known, " or "), hint)
}

// Stages returns the stages that have a class, in order.
func (t Trainers) Stages() []string {
	var stages []string
	for _, c := range t {
		if !slices.Contains(stages, c.Stage) {
			stages = append(stages, c.Stage)
		}
	}
	return stages
}
