// Package train runs a module of an experiment from configuration to the end of training.
//
// # Concepts
//
// Run owns the order: module, adapter, arguments, trainer, then Setup, Init, Train and Cleanup. It knows no framework by
// name and no implementation of an op.
//
// # Errors
//
// Errors keep the cause for errors.Is and errors.As behind the text "Training execution failed: …", which users of Primus
// search for. A configuration that cannot be used is returned as it is: nothing was executed.
package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
)

// Settings are what code passes to Run. All fields are required.
type Settings struct {
	Experiment *config.Experiment
	ModuleName string // "pre_trainer"
	Stage      string // "pretrain"
	Backends   *backend.Registry
	Manager    *opmanager.Manager
	Device     device.Backend
	Observer   backend.Observer
	Log        *slog.Logger
	LogFile    *backend.LogFile
}

// Run trains a module of an experiment and returns when that has ended. When ctx ends, the run stops after the step in
// hand, saves, and the error wraps backend.ErrInterrupted.
func Run(ctx context.Context, s Settings) error {
	module, err := s.Experiment.Module(s.ModuleName)
	if err != nil {
		return err
	}
	adapter, err := s.Backends.Get(module.Framework)
	if err != nil {
		return fmt.Errorf("module %q: %w", module.Name, err)
	}
	args, warnings, err := adapter.ConvertConfig(module)
	for _, w := range warnings {
		if !reported(s.Experiment.Report, w) {
			s.Log.Warn(w.String())
		}
	}
	if err != nil {
		return err
	}
	trainer, err := adapter.NewTrainer(s.Stage, args, backend.TrainContext{
		Experiment: s.Experiment, Module: module, Manager: s.Manager, Device: s.Device,
		Observer: s.Observer, Log: s.Log, LogFile: s.LogFile,
	})
	if err != nil {
		return err
	}
	if err := lifecycle(ctx, trainer, s.Log); err != nil {
		if errors.Is(err, backend.ErrInterrupted) {
			return err
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return fmt.Errorf("%w before the first step: nothing was trained or saved", backend.ErrInterrupted)
		}
		//lint:ignore ST1005 users of Primus search for this text
		return fmt.Errorf("Training execution failed: %w", err)
	}
	return nil
}

// reported tells whether loading the experiment warned about the same value.
func reported(r config.Report, w config.Warning) bool {
	return slices.ContainsFunc(r.Warnings, func(known config.Warning) bool { return known.Origin == w.Origin })
}

// lifecycle calls the methods of a trainer; Cleanup always, exactly once.
func lifecycle(ctx context.Context, t backend.Trainer, log *slog.Logger) (err error) {
	defer func() {
		if cleanupErr := t.Cleanup(err); cleanupErr != nil {
			if err != nil {
				log.Warn("error during trainer cleanup", "error", cleanupErr)
				return
			}
			err = fmt.Errorf("cleanup: %w", cleanupErr)
		}
	}()
	for _, step := range []func(context.Context) error{t.Setup, t.Init, t.Train} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}
