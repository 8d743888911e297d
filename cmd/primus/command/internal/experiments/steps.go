package experiments

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"go.uber.org/fx"
)

// StepParams are what steps of a module of the native backend need. They are built in the order of
// the fields: values that depend on the environment, which may be wrong, come before those that
// have to be closed.
type StepParams struct {
	fx.In
	Policy   oppolicy.Policy
	Device   device.Backend
	Exec     *opregistry.Exec
	Registry *opregistry.Registry
	Manager  *opmanager.Manager
	Log      *slog.Logger   `optional:"true"`
	Module   *config.Module `optional:"true"`
}

// WithSteps runs f with what makes steps of the module that pretrain trains. name is that of the
// command, for errors.
func (o *TrainingOptions) WithSteps(ctx context.Context, prog cli.Program, name string, overrides []string, f func(StepParams) error) error {
	experiment, err := o.Load(ctx, Pretrain.Module, overrides)
	if err != nil {
		return err
	}
	module, err := experiment.Module(Pretrain.Module)
	if err != nil {
		return err
	}
	if module.Framework != native.Framework {
		return cli.UsageError{Err: fmt.Errorf("%s: module %q has framework %q, want %s: it makes steps of that backend only", name, Pretrain.Module, module.Framework, native.Framework)}
	}
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	LogReport(log, experiment.Report)
	return o.StepsOf(ctx, prog, log, module, f)
}

// StepsOf runs f with what makes steps of a module.
func (o *TrainingOptions) StepsOf(ctx context.Context, prog cli.Program, log *slog.Logger, module *config.Module, f func(StepParams) error) error {
	var p StepParams
	set := graph.Config{Threads: int(o.Threads), Log: log, Policy: o.PolicySources(module), Extras: prog.Extras, Module: module}
	return graph.Run(ctx, func() error { return f(p) }, graph.Core(set), fx.Invoke(func(built StepParams) {
		p = built
		p.Log, p.Module = log, module
	}))
}
