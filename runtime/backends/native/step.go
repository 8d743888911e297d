package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/model"
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
	return fmt.Sprintf("step %d: the %s is %v; %s; the checkpoints are untouched: lower lr or clip_grad, or look at the op with TE_FL_PER_OP", e.Step, e.What, e.Value, where)
}

// Is reports whether target is backend.ErrNonFinite.
func (e *NonFiniteError) Is(target error) bool { return target == backend.ErrNonFinite }

// maxAttempts bounds the number of times that a step is computed after failed ops. It is large
// enough for a quarantine of the failing impl.
const maxAttempts = 5

// gradients computes the mean loss and the clipped gradients of the current batch. Since weights do
// not change, it starts again if an op failed and the manager could not fall back.
func (e *engine) gradients(ctx context.Context, step int) (loss, norm float64, err error) {
	for attempt := 1; ; attempt++ {
		loss, norm, err = e.tryGradients(ctx, step)
		if err == nil || attempt == maxAttempts || !e.canRepeat(err) {
			return loss, norm, err
		}
		e.log.Warn("the step is computed again", "step", step, "attempt", attempt, "error", err)
	}
}

// canRepeat reports whether a step may succeed if it is computed again: if an impl failed, since
// another one may be selected by then, or if the policy or a quarantine changed between forward and
// backward.
func (e *engine) canRepeat(err error) bool {
	var call *opmanager.CallError
	if !errors.As(err, &call) {
		return false
	}
	if len(call.Tried) == 0 {
		return errors.Is(err, opmanager.ErrSavedState)
	}
	return !e.manager.Policy().Strict
}

func (e *engine) tryGradients(ctx context.Context, step int) (loss, norm float64, err error) {
	micro := e.args.microBatches()
	rows := len(e.batch) / micro
	e.aux, e.ce = 0, 0
	for i := range micro {
		if ctx.Err() != nil {
			return 0, 0, errGivenUp
		}
		part, err := e.forward(step, i, e.batch[i*rows:(i+1)*rows])
		if err != nil {
			return 0, 0, err
		}
		loss += part / float64(micro)
		e.aux += e.pass.AuxLoss() / float64(micro)
		e.ce += e.pass.CrossEntropy() / float64(micro)
		if !finite(loss) {
			return 0, 0, e.nonFinite(step, "loss", loss)
		}
		if err := e.backward(step, i); err != nil {
			return 0, 0, err
		}
	}
	if norm, err = e.adam.Clip(); err != nil {
		return 0, 0, err
	}
	if !finite(norm) {
		return 0, 0, e.nonFinite(step, "gradient norm", norm)
	}
	return loss, norm, nil
}

// nonFinite repeats the forward and backward passes and checks the result of each op.
func (e *engine) nonFinite(step int, what string, value float64) error {
	result := &NonFiniteError{Step: step, What: what, Value: value}
	e.pass.CheckFinite(true)
	defer e.pass.CheckFinite(false)
	micro := e.args.microBatches()
	rows := len(e.batch) / micro
	for i := range micro {
		_, err := e.forward(step, i, e.batch[i*rows:(i+1)*rows])
		if err == nil {
			err = e.backward(step, i)
		}
		if errors.As(err, &result.Origin) {
			return result
		}
	}
	return result
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
