package train

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

const rule = "================================================================================"

// run prepares the framework, makes the trainer and calls its methods.
func (r *session) run(ctx context.Context) error {
	if !r.factory.Launches { // the processes of a framework make progress, not this one
		r.tc.Progress.Begin()
		defer r.tc.Progress.End()
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	trainer, err := r.class.New(r.tc)
	if err != nil {
		return &configError{err}
	}
	return r.lifecycle(ctx, trainer)
}

// lifecycle calls the methods of a trainer and applies the patches between them. It always calls
// Cleanup, once.
func (r *session) lifecycle(ctx context.Context, t backend.Trainer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("trainer %s panicked: %v\n%s", r.class.Name, p, debug.Stack())
		}
		cleanupErr := r.step("Cleanup", func() error { return t.Cleanup(err) })
		switch {
		case cleanupErr != nil && err != nil:
			r.tc.Log.Warn(fmt.Sprintf("Error during trainer.cleanup: %v", cleanupErr))
		case cleanupErr != nil:
			err = fmt.Errorf("cleanup: %w", cleanupErr)
		}
	}()
	if err := r.makeDataDirs(); err != nil {
		return err
	}
	if a, ok := r.tc.Adapter.(backend.TrainerInitializer); ok {
		if err := a.InitTrainer(t, r.tc); err != nil {
			return fmt.Errorf("initialise trainer %s: %w", r.class.Name, err)
		}
	}
	if e, ok := t.(patch.Extensible); ok {
		r.points = e.Points()
	}
	for _, step := range []func() error{
		func() error { return r.patches(patch.Setup) },
		func() error { return r.step("Setup", func() error { return t.Setup(ctx) }) },
		func() error { return r.step("Init", func() error { return t.Init(ctx) }) },
		func() error { return r.patches(patch.BeforeTrain) },
		func() error { r.showPoints(); return nil },
		func() error { return r.step("Training", func() error { return t.Train(ctx) }) },
		func() error { return r.patches(patch.AfterTrain) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// step calls one method of a trainer and logs its beginning and its end.
func (r *session) step(name string, f func() error) error {
	log := r.tc.Log
	banner := func(text string) {
		log.Debug(rule)
		backend.Detail(log, text)
		log.Debug(rule)
	}
	banner(name + " started.")
	if err := f(); err != nil {
		return err
	}
	banner(name + " completed.")
	return nil
}

// patches applies the patches of a phase.
func (r *session) patches(phase patch.Phase) error {
	r.tc.Log.Debug(fmt.Sprintf("[Runtime] Applying %s patches...", phase))
	c := r.patchContext(phase)
	if r.dry {
		r.planPhase(c)
	}
	plan, planErr := r.s.Patches.Plan(c, r.s.Filter)
	report, err := r.s.Patches.Run(c, patch.Options{Filter: r.s.Filter, StopOnError: r.s.StrictPatches, IdleLevel: slog.LevelDebug})
	if o, ok := r.tc.Observer.(backend.PatchObserver); ok {
		o.PatchesApplied(string(phase), report.Applied)
	}
	if planErr == nil { // else Run has failed with the same error
		r.tc.PatchResults = append(r.tc.PatchResults, patchResults(phase, plan, report)...)
	}
	return err
}

// patchResults returns the results of the patches of a phase.
func patchResults(phase patch.Phase, plan *patch.Plan, report patch.Report) []backend.PatchResult {
	failed := map[string]error{}
	for _, f := range report.Failed {
		failed[f.ID] = f.Err
	}
	var all []backend.PatchResult
	for _, d := range plan.Decisions {
		result := backend.PatchResult{Phase: string(phase), ID: d.Patch.ID, Result: backend.PatchSkipped, Reason: d.Reason, By: backend.ByPrimus}
		switch err := failed[d.Patch.ID]; {
		case err != nil:
			result.Result, result.Reason = backend.PatchFailed, err.Error()
		case slices.Contains(report.Applied, d.Patch.ID):
			result.Result = backend.PatchApplied
		case d.Run:
			result.Reason = "a patch before it failed, which ended the run"
		}
		all = append(all, result)
	}
	return all
}

// patchContext returns the context that the patches of a phase read and change.
func (r *session) patchContext(phase patch.Phase) *patch.Context {
	tc := r.tc
	c := &patch.Context{
		Backend: tc.Framework, Phase: phase, BackendVersion: tc.Version, PrimusVersion: r.s.PrimusVersion,
		ModelName: tc.Module.Model, ModuleName: tc.ModuleName, Params: tc.Module.Params, Args: tc.Args, Environ: tc.Environ,
		Points: r.points, Train: tc, Log: tc.Log,
	}
	if name, ok := tc.Experiment.Platform.Get("name"); ok {
		c.Platform = name.Text()
	}
	if phase != patch.BuildArgs {
		c.Params = tc.Args.Map()
	}
	return c
}

// showPoints logs the extension points that patches have changed, with the layers in their order.
func (r *session) showPoints() {
	if r.points == nil {
		return
	}
	for _, p := range r.points.List() {
		if len(p.Layers) > 0 {
			r.tc.Log.Info("[Patch] extension point " + p.String())
		}
	}
}
