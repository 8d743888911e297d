package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/runtime/backend"
)

// evaluation is a fixed choice of windows, in whole micro batches.
type evaluation struct {
	windows windows
	of      int // rows that are held out
	batches int
	tokens  int // of the windows that count, each once
	bytes   int // of their text
}

// newEvaluation chooses at most limit windows of a Blend, in whole micro batches, and at least one
// micro batch. It returns nil without a Blend.
func (a *Args) newEvaluation(from *data.Blend, limit int) (*evaluation, error) {
	if from == nil {
		return nil, nil
	}
	return a.evaluationOf(from.Len(), limit, func(rows int) (windows, error) {
		v, err := data.NewValidation(from, rows)
		return textWindows{v, a}, err
	})
}

// evaluationOf chooses at most limit rows of those held out, in whole micro batches, and at least
// one micro batch; choose returns a choice of some rows.
func (a *Args) evaluationOf(held, limit int, choose func(rows int) (windows, error)) (*evaluation, error) {
	batches := max(min(limit, held)/a.MicroBatchSize, 1)
	chosen, err := choose(batches * a.MicroBatchSize)
	if err != nil {
		return nil, err
	}
	e := &evaluation{windows: chosen, of: held, batches: batches}
	return e, e.count(a)
}

// count counts the tokens of the windows, each window once, and the bytes of their text.
func (e *evaluation) count(a *Args) error {
	rows := 1
	if a.stage == stageDPO {
		rows = 2
	}
	b := model.NewBatch(rows, a.SeqLength)
	for range e.windows.Len() / rows {
		if err := e.windows.Batch(&b); err != nil {
			return err
		}
		for i := range rows {
			row := b.Slice(i, i+1)
			e.tokens += counting(row)
			e.bytes += a.textBytes(row)
		}
	}
	e.windows.Reset()
	return nil
}

// counting returns the number of targets that count.
func counting(b model.Batch) int {
	n := b.Rows() * b.Seq
	for _, w := range b.Weights {
		if w == 0 {
			n--
		}
	}
	return n
}

// textBytes returns the bytes of the text of the targets of a row that count, without ends of
// documents. Each run of such targets is decoded with the token before it, since the text of a
// token may depend on that.
func (a *Args) textBytes(row model.Batch) int {
	eod, total := data.EndOfDocument(a.tokenizer), 0
	counts := func(i int) bool {
		return i < len(row.Tokens) && row.Tokens[i] != eod && (row.Weights == nil || row.Weights[i-1] > 0)
	}
	for i := 1; i < len(row.Tokens); i++ {
		first := i
		for counts(i) {
			i++
		}
		if i > first {
			total += len(a.tokenizer.Decode(nil, row.Tokens[first-1:i])) - len(a.tokenizer.Decode(nil, row.Tokens[first-1:first]))
		}
	}
	return total
}

// chooseWindows chooses the windows to evaluate every eval_interval steps and after the last step.
func (t *trainer) chooseWindows(from *data.Dataset) (err error) {
	each := t.args.evalWindows
	if t.valid, err = t.args.newEvaluation(from.Valid, each); err != nil {
		return err
	}
	if t.final, err = t.args.newEvaluation(from.Valid, max(t.args.FinalWindows, each)); err != nil {
		return err
	}
	t.test, err = t.args.newEvaluation(from.Test, max(t.args.FinalWindows, each))
	return err
}

// validate evaluates after step s if an evaluation is due, and sets the losses of validation and
// test in s.
func (t *trainer) validate(ctx context.Context, s *backend.Step) error {
	e, last := t.valid, s.Step == t.args.TrainIters
	if e != nil && (last || s.Step%t.args.EvalInterval == 0) {
		if last {
			e = t.final
			t.tc.Log.Info(fmt.Sprintf("the last evaluation takes %d of the %d windows that are held out, %d tokens", e.windows.Len(), e.of, e.tokens))
		}
		loss, err := t.evaluateAt(ctx, e, s.Step, "validation")
		if err != nil {
			return err
		}
		if loss != nil {
			s.ValidLoss, s.ValidTokens, s.ValidBytes = loss, e.tokens, e.bytes
			t.validStep = s.Step
			t.judge(s.Step, *loss)
		}
	}
	if t.test == nil || !last {
		return nil
	}
	loss, err := t.evaluateAt(ctx, t.test, s.Step, "test")
	if loss != nil {
		s.TestLoss, s.TestTokens = loss, t.test.tokens
	}
	return err
}

// judge compares a validation loss with the best one, for early stopping.
func (t *trainer) judge(step int, loss float64) {
	if t.args.Patience == 0 {
		return
	}
	if t.state.Best == nil {
		t.state.Best = &optim.BestLoss{}
	}
	t.state.Best.Update(t.args.EarlyStoppingConfig, step, loss)
}

// endsEarly reports whether the validation loss has not fallen for as long as the run waits.
func (t *trainer) endsEarly() bool {
	return t.state.Best != nil && t.state.Best.Ends(t.args.EarlyStoppingConfig)
}

// evaluateAt is evaluate with the faults of a step. It returns nil if there is no time for it.
func (t *trainer) evaluateAt(ctx context.Context, e *evaluation, step int, what string) (*float64, error) {
	loss, err := t.evaluate(ctx, e)
	switch {
	case errors.Is(err, errGivenUp):
		t.tc.Log.Warn(fmt.Sprintf("the evaluation after step %d is skipped: half of the grace period is over", step))
		return nil, nil
	case err != nil:
		return nil, err
	case !finite(loss):
		return nil, &NonFiniteError{Step: step, What: what + " loss", Value: loss}
	}
	return &loss, nil
}

// evaluate returns the mean loss over validation windows, without the effect of patches. It returns
// errGivenUp if ctx ends first.
func (t *trainer) evaluate(ctx context.Context, e *evaluation) (mean float64, err error) {
	restore, err := t.averaged()
	if err != nil {
		return 0, err
	}
	defer func() {
		if failure := restore(); failure != nil {
			err = errors.Join(err, failure)
		}
	}()
	e.windows.Reset()
	micro := t.batch.Slice(0, t.args.MicroBatchSize)
	sum, weight := 0.0, 0.0
	for i := range e.batches {
		if ctx.Err() != nil && t.world.Alone() {
			return 0, errGivenUp
		}
		t.progress.Enter(backend.PhaseEvaluation, t.state.Step)
		if err := e.windows.Batch(&micro); err != nil {
			return 0, err
		}
		if i%t.groups.Data.Ranks != t.groups.Data.Rank {
			continue
		}
		loss, counts, err := t.plainLoss(micro)
		if err != nil {
			return 0, fmt.Errorf("evaluation: %w", err)
		}
		sum, weight = sum+loss*counts, weight+counts
	}
	if rest := e.batches % t.groups.Data.Ranks; t.divided() && rest > 0 && t.groups.Data.Rank >= rest {
		if _, _, err := t.plainLoss(micro); err != nil { // the last ones of other ranks need this rank, too
			return 0, fmt.Errorf("evaluation: %w", err)
		}
	}
	if err := t.world.Sum("add up the validation losses", &sum, &weight); err != nil {
		return 0, err
	}
	return sum / max(weight, 1), nil
}
