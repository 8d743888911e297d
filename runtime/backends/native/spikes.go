package native

import (
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/health"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/runtime/backend"
)

// SpikeError ends a run because of a spike, or sends it back to a checkpoint.
type SpikeError struct {
	Step   int
	Why    string // what is wrong with the step
	What   string // follows from it
	rewind bool
}

// Error says what is wrong with the step and what follows.
func (e *SpikeError) Error() string { return fmt.Sprintf("step %d: %s; %s", e.Step, e.Why, e.What) }

// Is reports whether target is backend.ErrDiverged.
func (e *SpikeError) Is(target error) bool { return target == backend.ErrDiverged }

// newMonitor returns the judge of the losses of a run.
func (a *Args) newMonitor() *health.Monitor {
	guessing := math.Log(float64(max(a.VocabSize, 2)))
	if a.stage == stageDPO {
		guessing = math.Ln2
	}
	return health.New(a.SpikeConfig, guessing, a.ClipGrad)
}

// judgeStep judges a step before the weights change. failure is the error of computing it. It
// reports whether the weights are to be updated.
func (e *engine) judgeStep(s *backend.Step, failure error) (update bool, err error) {
	m := e.monitor
	if m == nil {
		return failure == nil, failure
	}
	var why string
	verdict := health.Good
	bad, isBad := errors.AsType[*NonFiniteError](failure)
	acts := e.args.OnSpike == health.Skip || e.args.OnSpike == health.Rewind
	switch {
	case failure != nil && (!isBad || !acts):
		return false, failure
	case isBad:
		verdict, why = health.NotFinite, fmt.Sprintf("the %s is %v", bad.What, bad.Value)
		if bad.What == "loss" {
			s.Loss = bad.Value
		} else {
			s.GradNorm = bad.Value
		}
	case e.lossScale != nil && !finite(s.GradNorm): // the factor of losses is for that
		return false, nil
	default:
		verdict, why = m.Judge(s.Loss, s.GradNorm)
	}
	if verdict, why, err = e.agree(verdict, why); err != nil {
		return false, err
	}
	update = verdict == health.Good || e.args.OnSpike == health.Warn || e.args.OnSpike == ""
	wasDiverged := m.Diverged
	change, cause := m.Take(s.Step, verdict, s.Loss, s.GradNorm, update)
	if wasDiverged == 0 && verdict != health.Good {
		e.report(verdict, s.Step, why, update)
	}
	switch change {
	case health.Diverged:
		e.tell(backend.HealthDiverged, s.Step, "training has diverged: "+cause)
	case health.Recovered:
		e.tell(backend.HealthRecovered, s.Step, fmt.Sprintf("training has recovered from the divergence at step %d", wasDiverged))
	case health.Same:
	}
	if change == health.Diverged && verdict == health.Good {
		why = "training has diverged: " + cause
	}
	ends := &SpikeError{Step: s.Step, Why: why}
	switch {
	case verdict == health.Good && change != health.Diverged:
	case e.args.OnSpike == health.Stop:
		ends.What = "the run ends, because on_spike is stop, with the weights before this step"
		return false, ends
	case e.args.OnSpike == health.Rewind:
		ends.rewind = true
		return false, ends
	case e.args.OnSpike == health.Skip && m.InARow > e.args.MaxSkips:
		ends.What = fmt.Sprintf("the updates of the last %d steps were dropped, and max_skips is %d: lower lr or clip_grad, look at the data, or go on from an earlier checkpoint", m.InARow, e.args.MaxSkips)
		return false, ends
	}
	return update, nil
}

// agree takes the worst of the judgements of all ranks if it decides what they do: their numbers
// may differ in their last bits.
func (e *engine) agree(v health.Verdict, why string) (health.Verdict, string, error) {
	if e.world.Alone() || e.args.OnSpike == health.Warn || e.args.OnSpike == "" {
		return v, why, nil
	}
	worst := []float64{float64(v)}
	if err := e.world.Largest("judge the step", worst); err != nil {
		return v, why, e.sent(err)
	}
	if all := health.Verdict(worst[0]); all != v {
		return all, all.String() + " on another rank", nil
	}
	return v, why, nil
}

// report says that a step is a spike.
func (e *engine) report(v health.Verdict, step int, why string, updated bool) {
	switch {
	case updated:
		e.tell(backend.HealthSpike, step, fmt.Sprintf("%s: %s", v, why))
	case e.args.OnSpike == health.Skip:
		e.tell(backend.HealthSkipped, step, fmt.Sprintf("%s: %s; the update is dropped, %d in a row of at most %d (max_skips)", v, why, e.monitor.InARow, e.args.MaxSkips))
	default: // what follows is said later
		e.tell(backend.HealthSpike, step, fmt.Sprintf("%s: %s; the update is dropped", v, why))
	}
}

// tell logs a judgement and passes it to the observers.
func (e *engine) tell(change backend.HealthChange, step int, text string) {
	j := backend.Judgement{Change: change, Step: step, Text: fmt.Sprintf("step %d: %s", step, text)}
	e.log.Warn(j.Text)
	if e.judged != nil {
		e.judged(j)
	}
}

// health counts the judgements of the run.
func (e *engine) health() backend.Health {
	if e.monitor == nil {
		return backend.Health{}
	}
	s := e.monitor.State
	return backend.Health{Spikes: s.Spikes, Skipped: s.Skipped, Rewinds: s.Rewinds, LastSpike: s.LastSpike, Diverged: s.Diverged}
}

// mark says how the weights of the last step are judged.
func (t *trainer) mark() checkpoint.Mark {
	m := checkpoint.Mark{Judgement: checkpoint.Good}
	if t.validStep == t.state.Step {
		m.ValidLoss = t.state.ValidLoss
	}
	if t.monitor.Suspect(t.state.Step) {
		m.Judgement = checkpoint.Spike
	}
	if t.monitor.Diverged > 0 {
		m.Judgement = checkpoint.Diverged
	}
	return m
}

// follow goes back because of a spike, or saves the last step and returns the error that ends the
// run. All ranks do the same.
func (t *trainer) follow(cause *SpikeError) error {
	if err := t.awaitSave(); err != nil {
		return errors.Join(cause, err)
	}
	if cause.rewind && t.monitor.Rewinds < t.args.MaxRewinds {
		return t.rewind(cause)
	}
	if cause.rewind {
		cause.What = fmt.Sprintf("the run has gone back %d times, and max_rewinds is %d: lower lr or clip_grad, or look at the data", t.monitor.Rewinds, t.args.MaxRewinds)
	}
	if t.state.Step > 0 && t.state.Step != t.savedStep {
		if err := t.save(); err != nil {
			return errors.Join(cause, err)
		}
	}
	if t.world.Alone() {
		return cause
	}
	return &world.CommonError{Err: cause}
}

// rewind goes back to the last good checkpoint, and trains on with the data after the spike.
func (t *trainer) rewind(cause *SpikeError) error {
	fail := func(what string) error { return &SpikeError{Step: cause.Step, Why: cause.Why, What: what} }
	t.progress.Enter(backend.PhaseStart, cause.Step)
	if err := t.gathered(); err != nil {
		return err
	}
	position := t.sampler.Position()
	var failure error
	if t.world.Leads() {
		failure = t.loadGood(fail)
	}
	if err := t.world.Agree("go back to a checkpoint", failure); err != nil {
		return err
	}
	if err := t.share(true); err != nil {
		return err
	}
	if t.lossScale != nil && t.state.LossScale != nil {
		t.lossScale.Restore(*t.state.LossScale)
	}
	t.monitor.Rewound(t.state.Health)
	t.model.WeightsChanged()
	t.sampler.Seek(position)
	t.state.Position, t.savedStep = position, t.state.Step
	text := fmt.Sprintf("step %d: the run has gone back to the checkpoint of step %d, and passes over the data up to this step (%d of at most %d times, max_rewinds)",
		cause.Step, t.state.Step, t.monitor.Rewinds, t.args.MaxRewinds)
	t.tc.Log.Warn(text)
	t.judged(backend.Judgement{Change: backend.HealthRewound, Step: cause.Step, To: t.state.Step, Text: text})
	if !t.world.Leads() {
		return nil
	}
	return t.reopen()
}

// loadGood loads the last good checkpoint on the first rank.
func (t *trainer) loadGood(fail func(string) error) error {
	c, warnings, err := t.store.LastGood()
	t.warn(warnings)
	if errors.Is(err, checkpoint.ErrNone) {
		return fail("there is no good checkpoint to go back to: give save_initial=true or a shorter save_interval")
	}
	if err != nil {
		return err
	}
	return t.loadFrom(c)
}

// reopen continues the files of the run after the step that it has gone back to.
func (t *trainer) reopen() (err error) {
	if err := t.metrics.Close(); err != nil {
		return err
	}
	if t.metrics, err = t.dir.OpenMetrics(int64(t.state.Step)); err != nil || t.events == nil {
		return err
	}
	if err := t.events.Close(); err != nil {
		return err
	}
	t.events, err = tensorboard.Create(t.dir.Path(tensorboardName), int64(t.state.Step)+1)
	return err
}
