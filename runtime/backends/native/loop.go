package native

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// errGivenUp reports that the current work was abandoned because half of the grace period was over.
var errGivenUp = errors.New("given up, because half of the grace period is over")

// Train runs the remaining steps. When ctx ends, the current step and its evaluation may take half
// of the grace period; after that they are abandoned, and the last whole step is saved. The last
// whole step is also saved if anything else ends training, a panic included, unless the weights are
// at fault.
func (t *trainer) Train(ctx context.Context) (err error) {
	if t.clock, err = newStepClock(t.tc.Manager, t.tc.Device); err != nil {
		return err
	}
	t.begin()
	if err := t.checkPoints(); err != nil {
		return err
	}
	late, cancel := endLater(ctx, t.tc.Grace/2)
	defer cancel()
	defer func() {
		cause := recover()
		if err != nil || cause != nil {
			t.saveBeforeEnd(err)
		}
		if cause != nil {
			panic(cause)
		}
	}()
	for t.state.Step < t.args.TrainIters && !t.endsEarly() && !t.stopping(ctx) && !t.endsOnTime() {
		err := t.step(ctx, late)
		if errors.Is(err, errGivenUp) {
			t.tc.Log.Warn(fmt.Sprintf("step %d is abandoned: half of the grace period is over", t.state.Step+1))
			break
		}
		if spike, ok := errors.AsType[*SpikeError](err); ok {
			if err := t.follow(spike); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, backend.ErrNonFinite) {
			return errors.Join(t.awaitSave(), err) // which may say that the weights were at fault before
		}
		if err != nil {
			return err
		}
		if err := t.followSave(); err != nil {
			return err
		}
		switch {
		case !t.saveIsDue():
			err = nil
		case t.args.AsyncSave && t.state.Step < t.args.TrainIters && !t.endsEarly() && !t.endsOnTime():
			err = t.saveAside()
		default:
			err = t.save()
		}
		if err != nil {
			return err
		}
	}
	if err := t.awaitSave(); err != nil {
		return err
	}
	if err := t.compareTimes(); err != nil {
		return err
	}
	switch {
	case t.endsEarly():
		t.tc.Log.Info(fmt.Sprintf("early stopping at step %d: the validation loss was %.4f at step %d and has not fallen in %d evaluations since", t.state.Step, t.state.Best.Loss, t.state.Best.Step, t.state.Best.Since))
	case t.state.Step < t.args.TrainIters && t.endsOnTime():
		t.tc.Log.Info(fmt.Sprintf("the run ends at step %d of %d, which is saved, as %s asks for; %s", t.state.Step, t.args.TrainIters, t.whyOnTime(), t.howToGoOn()))
		return nil
	case t.state.Step < t.args.TrainIters:
		return t.interrupted(ctx)
	}
	if !t.world.Leads() && !t.divided() {
		return nil
	}
	t.progress.Enter(backend.PhaseEvaluation, t.state.Step)
	if err = t.generate(late); errors.Is(err, errGivenUp) {
		return nil
	}
	return err
}

// begin announces the run.
func (t *trainer) begin() {
	t.started, t.watch = time.Now(), opmanager.NewReferenceWatch(t.tc.Manager)
	t.result.Run = backend.Run{
		Name: t.tc.Experiment.ExpName, Model: t.args.ModelName, Dir: t.location().Path(), Parameters: t.args.NumParameters(),
		FirstStep: t.state.Step + 1, Steps: t.args.TrainIters, TokensPerStep: t.args.GlobalBatchSize * t.args.SeqLength,
		FLOPsPerToken: t.args.FLOPsPerToken(), LogInterval: t.args.LogInterval,
	}
	if t.args.stage == stageDPO {
		t.result.LossUnit = "nats per pair"
	}
	run, on := t.result.Run, ""
	if !t.world.Alone() {
		on = fmt.Sprintf(" on %d ranks", t.world.Ranks)
	}
	t.tc.Log.Info(fmt.Sprintf("training %s: %d parameters, %d steps of %d tokens%s, run directory %s",
		run.Model, run.Parameters, run.Steps, run.TokensPerStep, on, run.Dir))
	if n := t.args.tokenizer.VocabSize(); t.args.UnusedParameters(n) > 0 {
		t.tc.Log.Warn(fmt.Sprintf("%d of the parameters are of tokens that never occur: %s, and vocab_size is %d",
			t.args.UnusedParameters(n), t.args.tokens(), t.args.VocabSize))
	}
	if onDevice, err := onDevice(t.tc.Device); err == nil && t.args.EntropyFusion.Impl == LinearFusion && t.args.keepsLogits(onDevice) != "" {
		t.tc.Log.Warn(fmt.Sprintf("cross_entropy_fusion_impl=%s has no effect: logits are kept because of %s", LinearFusion, t.args.keepsLogits(onDevice)))
	}
	if t.state.Step >= t.args.TrainIters {
		t.tc.Log.Info(fmt.Sprintf("nothing to train: this run is finished at step %d; a larger train_iters trains further, exp_name=NAME begins another run, load=none starts over and keeps this one in %s", t.state.Step, filepath.Join(run.Dir, rundir.PreviousName)))
	}
	t.tc.Observer.RunStarted(run)
}

// saveIsDue reports whether the last step is to be saved.
func (t *trainer) saveIsDue() bool {
	return t.saveAsked || t.args.SaveInterval > 0 && t.state.Step%t.args.SaveInterval == 0 || t.state.Step == t.args.TrainIters || t.endsEarly() || t.endsOnTime()
}

// endsOnTime reports whether exit_interval or exit_duration_in_mins ends the run after its last
// step. All ranks say the same.
func (t *trainer) endsOnTime() bool { return t.whyOnTime() != "" }

// whyOnTime returns the parameter that ends the run after its last step, "" for none.
func (t *trainer) whyOnTime() string {
	switch {
	case t.state.Step < t.result.Run.FirstStep: // no step of this run
		return ""
	case t.over:
		return fmt.Sprintf("exit_duration_in_mins %v", t.args.ExitDuration)
	case t.args.ExitInterval > 0 && t.state.Step%t.args.ExitInterval == 0:
		return fmt.Sprintf("exit_interval %d", t.args.ExitInterval)
	}
	return ""
}

// interrupted saves the last step and returns an error that says how to continue.
func (t *trainer) interrupted(ctx context.Context) error {
	if t.state.Step == 0 {
		return ctx.Err()
	}
	if t.state.Step != t.savedStep {
		if err := t.save(); err != nil {
			return err
		}
	}
	by := ""
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		by = fmt.Sprintf(" by %v", cause)
	}
	return fmt.Errorf("%w%s at step %d of %d, which is saved; %s", backend.ErrInterrupted, by, t.state.Step, t.args.TrainIters, t.howToGoOn())
}

// saveBeforeEnd saves the last whole step if training ends for a reason other than an interrupt or
// wrong weights.
func (t *trainer) saveBeforeEnd(cause error) {
	t.endSave()
	if !t.world.Leads() || errors.Is(cause, backend.ErrInterrupted) || t.state.Step == t.savedStep || t.saveFailed ||
		errors.Is(cause, backend.ErrNonFinite) {
		return
	}
	if errors.Is(cause, device.ErrLost) {
		t.tc.Log.Warn(fmt.Sprintf("step %d is lost with the device: the last checkpoint is that of step %d", t.state.Step, t.savedStep))
		return
	}
	if t.updating {
		t.tc.Log.Warn(fmt.Sprintf("step %d is not saved: the weights are half updated; the last checkpoint is that of step %d", t.state.Step+1, t.savedStep))
		return
	}
	if err := t.saveAlone(); err != nil {
		t.tc.Log.Warn(fmt.Sprintf("step %d could not be saved before the end: %v", t.state.Step, err))
		return
	}
	t.tc.Log.Warn(fmt.Sprintf("step %d is saved before the end; %s", t.state.Step, t.howToGoOn()))
}

// endLater returns a context that ends some time after ctx does.
func endLater(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	if after <= 0 {
		return context.WithCancel(ctx)
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(after, cancel)
		context.AfterFunc(late, func() { timer.Stop() })
	})
	return late, func() {
		stop()
		cancel()
	}
}
