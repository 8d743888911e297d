package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
)

// NonFiniteError reports a loss or a gradient that is NaN or infinite.
type NonFiniteError struct {
	Step  int
	What  string // "loss" or "gradient norm"
	Value float64
	// Reason replaces Origin if no op of a step computed the value.
	Reason string
	// Origin names the first op of the step whose result is not finite; nil if none was found.
	Origin *model.NonFiniteError
}

// Error returns the step, what is not finite, and its origin.
func (e *NonFiniteError) Error() string {
	where := cmp.Or(e.Reason, "no single op was found at fault: the sum over the batch overflows")
	if e.Origin != nil {
		where = "it began at " + e.Origin.Error()
	}
	return fmt.Sprintf("step %d: the %s is %v; %s; the checkpoints are untouched: lower lr or clip_grad, or find the call with --check-finite ops", e.Step, e.What, e.Value, where)
}

// Is reports whether target is backend.ErrNonFinite.
func (e *NonFiniteError) Is(target error) bool { return target == backend.ErrNonFinite }

// maxAttempts bounds the number of times that a step is computed after failed ops. It is large
// enough for a quarantine of the failing impl.
const maxAttempts = 5

// computeGradients computes the mean loss and the clipped gradients of the current batch. Since
// weights do not change, it starts again if an op failed and the manager could not fall back.
func (e *engine) computeGradients(ctx context.Context, s *backend.Step) error {
	e.manager.BeginStep(e.args.Seed, s.Step)
	for attempt := 1; ; attempt++ {
		err := e.tryGradients(ctx, s)
		if err == nil || attempt == maxAttempts || e.together() || e.links.begun() || !e.canRepeat(err) {
			return err
		}
		e.log.Warn("the step is computed again", "step", s.Step, "attempt", attempt, "error", err)
	}
}

// canRepeat reports whether a step may succeed if it is computed again: if an impl failed, since
// another one may be selected by then, or if the policy or a quarantine changed between forward and
// backward.
func (e *engine) canRepeat(err error) bool {
	if _, sent := errors.AsType[*sentError](err); sent {
		return false
	}
	if _, sent := errors.AsType[*world.Error](err); sent || errors.Is(err, device.ErrLost) {
		return false
	}
	call, ok := errors.AsType[*opmanager.CallError](err)
	if !ok {
		return false
	}
	if len(call.Tried) == 0 || call.PutBack {
		return errors.Is(err, opmanager.ErrSavedState)
	}
	return !e.manager.Policy().Strict
}

// means are the means of losses over the tokens of a step.
type means struct{ loss, aux, crossEntropy float64 }

// add adds the losses of the last forward pass on a share of the tokens.
func (m *means) add(p *model.Pass, loss, share float64) {
	m.loss += loss * share
	m.aux += p.AuxLoss() * share
	m.crossEntropy += p.CrossEntropy() * share
}

func (e *engine) tryGradients(ctx context.Context, s *backend.Step) error {
	begin, before := time.Now(), e.waited()
	var m means
	e.gradients.Scaled(e.scale())
	if err := e.computeMicroBatches(ctx, s.Step, &m); err != nil {
		return err
	}
	waited := e.waited() - before
	computed := time.Since(begin) - waited
	e.computed += computed
	begin = time.Now()
	var err error
	if !e.world.Alone() {
		e.progress.Enter(backend.PhaseCollective, s.Step)
	}
	s.Ranks, err = e.reduce(ctx, &m, computed)
	waited += time.Since(begin)
	e.exchanged += waited
	if s.Ranks != nil {
		s.Ranks.Waited = waited
	}
	if err != nil {
		return err
	}
	if !finite(m.loss) {
		return e.nonFinite(s.Step, "loss", m.loss)
	}
	s.Loss = m.loss
	if e.points.loss.Patched() {
		s.CrossEntropy = &m.crossEntropy
	}
	if e.args.Balanced() {
		s.AuxLoss = &m.aux
	}
	e.progress.Enter(backend.PhaseOptimizer, s.Step)
	if s.GradNorm, err = e.gradients.Clip(); err != nil {
		return e.sent(err)
	}
	if !finite(s.GradNorm) && (e.lossScale == nil || e.lossScale.Exhausted()) {
		return e.nonFinite(s.Step, "gradient norm", s.GradNorm)
	}
	return nil
}

// computeMicroBatches computes the losses and the gradients of the micro batches of this rank.
func (e *engine) computeMicroBatches(ctx context.Context, step int, m *means) error {
	if e.conveyor != nil {
		return e.conveyor.gradients(step, m)
	}
	for i := range e.own() {
		if ctx.Err() != nil && e.world.Alone() {
			return errGivenUp
		}
		e.early = e.args.OverlapGradReduce && i == e.own()-1
		loss, err := e.forwardBackward(step, i)
		e.early = false
		if err != nil {
			return err
		}
		m.add(e.pass, loss, e.pass.Weight()/e.weight())
		if !finite(m.loss) && e.world.Alone() {
			return e.nonFinite(step, "loss", m.loss)
		}
	}
	return nil
}

// weight returns the number by which the sums of losses and gradients over the tokens of a step are
// divided: how many count, on all ranks.
func (e *engine) weight() float64 {
	if w := e.batch.Weight(); w > 0 {
		return w
	}
	return 1
}

// reduce adds up the gradients and the losses of all ranks. It also lets all of them know when one
// wants to end, the time of the run is over, or all have done their part of a checkpoint, and
// returns how long each has computed, nil for one rank.
func (e *engine) reduce(ctx context.Context, m *means, computed time.Duration) (*backend.RankTimes, error) {
	if err := e.links.wait(); err != nil {
		return nil, e.sent(err)
	}
	stop := 0.0
	if ctx.Err() != nil {
		stop = 1
	}
	asked := 0.0
	if e.takeSave != nil && e.takeSave() {
		asked = 1
	}
	over := 0.0
	if e.timeIsUp != nil && e.world.Leads() && e.timeIsUp() { // one clock counts
		over = 1
	}
	ready := 0.0
	if e.saveReady != nil && e.saveReady() {
		ready = 1
	}
	if !e.groups.Tensor.Leads() && e.divided() && e.args.TensorRanks() > 1 { // the first of them counts
		*m = means{}
	}
	sums := []*float64{&m.loss, &m.aux, &m.crossEntropy, &stop, &asked, &over, &ready}
	seconds := make([]float64, e.world.Ranks) // each rank adds its own
	seconds[e.world.Rank] = computed.Seconds()
	for i := range seconds {
		sums = append(sums, &seconds[i])
	}
	err := e.world.Sum("add up the losses", sums...)
	e.stop, e.saveAsked, e.over = stop > 0, asked > 0, over > 0
	e.allReady = ready == float64(e.world.Ranks)
	if e.world.Alone() {
		return nil, err
	}
	return rankTimes(seconds, e.world.Traffic()), e.sent(err)
}

// sentError is an error after ranks have begun to exchange the results of a step. One rank alone
// cannot compute the step again.
type sentError struct{ error }

// Unwrap returns the error.
func (e *sentError) Unwrap() error { return e.error }

// sent marks an error that came after the exchange, if there was one.
func (e *engine) sent(err error) error {
	if err == nil || e.world.Alone() {
		return err
	}
	return &sentError{err}
}

// nonFinite returns the error of a value that is not finite, with the op that it comes from, on
// whichever rank that is.
func (e *engine) nonFinite(step int, what string, value float64) error {
	result := &NonFiniteError{Step: step, What: what, Value: value, Origin: e.origin(step)}
	own := ""
	if result.Origin != nil {
		own = result.Origin.Error()
	}
	all, err := e.world.Gather("compare what is not finite", []byte(own))
	if err != nil {
		return errors.Join(result, e.sent(err))
	}
	for rank, place := range all {
		if len(place) > 0 && !e.world.Alone() {
			result.Origin, result.Reason = nil, fmt.Sprintf("it began on rank %d at %s", rank, place)
			break
		}
	}
	return result
}

// origin repeats the forward and backward passes of this rank and returns the first op whose result
// is not finite, nil if there is none.
func (e *engine) origin(step int) *model.NonFiniteError {
	if e.together() { // the other ranks would have to repeat them too
		return nil
	}
	e.pass.CheckFinite(true)
	defer e.pass.CheckFinite(false)
	for i := range e.own() {
		_, err := e.forward(step, i)
		if err == nil {
			err = e.backward(step, i)
		}
		if found, ok := errors.AsType[*model.NonFiniteError](err); ok {
			return found
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
