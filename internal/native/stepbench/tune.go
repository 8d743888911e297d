package stepbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/tuning"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// TuneSettings say what Tune measures and with what.
type TuneSettings struct {
	Module  *config.Module
	Manager *opmanager.Manager
	Ops     *opregistry.Snapshot
	Device  device.Backend
	Log     *slog.Logger
	// Budget returns how long measurements may take, given the steps of the run and the time of one; 0
	// or less measures nothing.
	Budget func(steps int, step time.Duration) time.Duration
	// Progress is called before each call that is measured. It may be nil.
	Progress func(op, call string, n, of int)
	// Trial is called before each step with the choices or without. It may be nil.
	Trial func(step int)
}

// notOfCalls are parameters that usually change from run to run and on which the calls of a step do
// not depend.
var notOfCalls = []string{"train_iters", "lr", "min_lr", "lr_warmup_iters", "lr_decay_iters", "seed", "save_interval", "eval_interval", "log_interval", "load"}

// ParamsOfCalls returns the parameters of a module on which the calls of its steps may depend.
func ParamsOfCalls(m *config.Module) *document.Map { return m.Params.Without(notOfCalls...) }

// profiledSteps are the steps whose calls are profiled, after one that warms up and one that is
// timed.
const profiledSteps = 2

// trialShare is the part of the budget for whole steps with the choices and without.
const trialShare = 0.4

// MinSteps are the steps that fit into the smallest budget with which choices can be confirmed.
const MinSteps = 2 * tuning.MinPairs / trialShare

// ErrDevice says that an experiment does not train on the CPU, where calls are measured.
var ErrDevice = errors.New("calls are measured on the CPU only")

// Tune makes steps of a module, measures the calls that they made on each impl that may serve them,
// and returns the choices with which whole steps are clearly faster. The File is nil if the budget
// is 0 or the policy leaves no choice. The error wraps ErrDevice for a module that trains on a
// device.
func Tune(ctx context.Context, s TuneSettings) (*tuning.File, error) {
	if name := strings.ToLower(s.Device.Name()); name != device.TypeCPU.String() {
		return nil, fmt.Errorf("%w, and the experiment trains on %s: want device=cpu", ErrDevice, name)
	}
	policy := s.Manager.Policy()
	policy.Verify = oppolicy.Verify{Mode: oppolicy.VerifyOff} // it would count as time of the impls
	s.Manager = s.Manager.With(policy)
	defer s.Manager.Close()
	ops := tuning.Choices(s.Manager)
	if len(ops) == 0 {
		return nil, nil
	}
	profile := tuning.NewProfile(ops)
	step, args, err := s.profile(ctx, profile)
	if err != nil {
		return nil, err
	}
	budget := s.Budget(args.TrainIters, step)
	if budget <= 0 {
		return nil, nil
	}
	trial := time.Duration(trialShare * float64(budget))
	entries, err := tuning.Measure(ctx, profile, tuning.Settings{Manager: s.Manager, Ops: s.Ops, Budget: budget - trial, Progress: s.Progress})
	if err != nil {
		return nil, fmt.Errorf("measure impls: %w", err)
	}
	file := tuning.New(args.ModelName, entries, s.Ops, s.Manager.Exec().Pool().Workers())
	return file, s.confirm(ctx, file, trial)
}

// confirm makes steps with the choices and without.
func (s *TuneSettings) confirm(ctx context.Context, file *tuning.File, budget time.Duration) (err error) {
	families := map[string]string{}
	for _, op := range s.Ops.Ops() {
		families[op.Name()] = op.Family()
	}
	bench, _, err := native.NewBench(s.Module, s.Manager, s.Device, s.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	usual := s.Manager.Policy()
	count := 0
	return file.Confirm(ctx, budget, func(op string) string { return families[op] }, func(ctx context.Context, with *oppolicy.Tuning) (time.Duration, error) {
		if count++; s.Trial != nil {
			s.Trial(count)
		}
		policy := usual
		policy.Tuning, policy.PreferTuned = with, with != nil || usual.PreferTuned
		if _, err := s.Manager.SetPolicy(policy); err != nil {
			return 0, err
		}
		begin := time.Now()
		_, err := bench.Step(ctx)
		return time.Since(begin), err
	})
}

// profile makes the steps and returns the time of one and their parameters.
func (s *TuneSettings) profile(ctx context.Context, profile *tuning.Profile) (step time.Duration, args native.Args, err error) {
	bench, warnings, err := native.NewBench(s.Module, s.Manager, s.Device, s.Log)
	for _, w := range warnings {
		s.Log.Warn(w.String())
	}
	if err != nil {
		return 0, args, err
	}
	defer func() { err = errors.Join(err, bench.Close()) }()
	if _, err := bench.Step(ctx); err != nil {
		return 0, args, err
	}
	begin := time.Now()
	if _, err := bench.Step(ctx); err != nil {
		return 0, args, err
	}
	step = time.Since(begin) // without the profile, which copies operands
	defer s.Manager.Tap(profile)()
	for range profiledSteps {
		if _, err := bench.Step(ctx); err != nil {
			return 0, args, err
		}
	}
	return step, bench.Args(), nil
}
