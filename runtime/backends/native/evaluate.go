package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/data"
)

// evaluation is a fixed choice of validation windows, in whole micro batches.
type evaluation struct {
	windows *data.Validation
	batches int
	tokens  int // of the windows, each counted once
}

// newEvaluation chooses at most limit windows of a set, in whole micro batches of size windows, and
// at least one micro batch.
func newEvaluation(set *data.Set, limit, size int) (*evaluation, error) {
	batches := max(min(limit, set.ValidWindows())/size, 1)
	windows, err := data.NewValidation(set, batches*size)
	if err != nil {
		return nil, err
	}
	return &evaluation{windows: windows, batches: batches, tokens: windows.Len() * set.SeqLength()}, nil
}

// chooseWindows chooses the windows to evaluate every eval_interval steps and after the last step.
func (t *trainer) chooseWindows() (err error) {
	size := t.args.MicroBatchSize
	if t.valid, err = newEvaluation(t.set, t.args.EvalIters*size, size); err != nil {
		return err
	}
	t.final, err = newEvaluation(t.set, max(t.args.FinalWindows, t.args.EvalIters*size), size)
	return err
}

// validate evaluates after step s if an evaluation is due, and sets the validation loss of s.
func (t *trainer) validate(ctx context.Context, s *backend.Step) error {
	e := t.valid
	switch {
	case e == nil:
		return nil
	case s.Step == t.args.TrainIters:
		e = t.final
		t.tc.Log.Info(fmt.Sprintf("the last evaluation takes %d of the %d windows that are held out, %d tokens", e.windows.Len(), t.set.ValidWindows(), e.tokens))
	case s.Step%t.args.EvalInterval != 0:
		return nil
	}
	loss, err := t.evaluate(ctx, e)
	switch {
	case errors.Is(err, errGivenUp):
		t.tc.Log.Warn(fmt.Sprintf("the evaluation after step %d is left out: half of the grace period is over", s.Step))
	case err != nil:
		return err
	case !finite(loss):
		return &NonFiniteError{Step: s.Step, What: "validation loss", Value: loss}
	default:
		s.ValidLoss, s.ValidTokens = &loss, e.tokens
		t.state.ValidLoss, t.state.ValidTokens = &loss, e.tokens
	}
	return nil
}

// evaluate returns the mean loss over validation windows, without the effect of patches. It returns
// errGivenUp if ctx ends first.
func (t *trainer) evaluate(ctx context.Context, e *evaluation) (float64, error) {
	e.windows.Reset()
	t.pass.SetLoss(t.points.loss.Original())
	t.pass.KeepAll()
	micro := t.batch.Slice(0, t.args.MicroBatchSize)
	sum, weight := 0.0, 0.0
	for i := range e.batches {
		if ctx.Err() != nil && t.world.Alone() {
			return 0, errGivenUp
		}
		if err := e.windows.Batch(micro.Tokens); err != nil {
			return 0, err
		}
		if i%t.world.Ranks != t.world.Rank {
			continue
		}
		if err := t.pass.SetBatch(micro); err != nil {
			return 0, err
		}
		loss, err := t.pass.Loss()
		if err != nil {
			return 0, fmt.Errorf("evaluation: %w", err)
		}
		sum, weight = sum+loss*micro.Weight(), weight+micro.Weight()
	}
	if err := t.world.Sum("add up the validation losses", &sum, &weight); err != nil {
		return 0, err
	}
	return sum / weight, nil
}

// crossEntropy returns the loss of the step without the effect of patches, nil if no patch changes
// it.
func (t *trainer) crossEntropy() *float64 {
	if !t.points.loss.Patched() {
		return nil
	}
	ce := t.ce
	return &ce
}
