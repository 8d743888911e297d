package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backend"
)

// Inspect checks the corpus, the checkpoint to continue from, the directories to write and the
// memory needed, and returns the errors with which the run itself would end. It lists the corpus
// without reading it, so it does not notice if the directory holds a run on another text.
func (t *trainer) Inspect(ctx context.Context) ([]backend.Finding, error) {
	var found []backend.Finding
	var faults []error
	for _, look := range []struct {
		name string
		at   func(context.Context) (string, error)
	}{{"model", t.inspectModel}, {"corpus", t.inspectCorpus}, {"checkpoints", t.inspectDirs}, {"start", t.inspectStart}, {"loss", t.inspectLoss}, {"memory", t.inspectMemory}, {"pipeline", t.inspectPipeline}, {"unusual", t.inspectUnusual}} {
		text, err := look.at(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		faults = append(faults, err)
		if text != "" {
			found = append(found, backend.Finding{Name: look.name, Text: text})
		}
	}
	return found, errors.Join(faults...)
}

// inspectModel says how large the model and the training are.
func (t *trainer) inspectModel(context.Context) (string, error) {
	tokens := float64(t.args.GlobalBatchSize) * float64(t.args.SeqLength)
	all := tokens * float64(t.args.TrainIters)
	return fmt.Sprintf("%d parameters, vocabulary of %d (%s); %d steps of %.0f tokens are %.4g tokens and %.4g FLOPs",
		t.args.NumParameters(), t.args.VocabSize, t.args.tokens(), t.args.TrainIters, tokens, all, all*t.args.FLOPsPerToken()), nil
}

// inspectUnusual names what a run of this kind seldom has.
func (t *trainer) inspectUnusual(context.Context) (string, error) {
	a := t.args
	var all []string
	is := func(unusual bool, format string, args ...any) {
		if unusual {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	unused := a.UnusedParameters(a.tokenizer.VocabSize())
	is(unused > 0, "%d parameters are of tokens that never occur", unused)
	if a.LoadHF == "" && !a.tunes() {
		perParameter := float64(a.TrainIters) * float64(a.GlobalBatchSize) * float64(a.SeqLength) / float64(max(a.NumParameters(), 1))
		is(perParameter < 0.5, "%.2g tokens for each parameter are few: a smaller model learns as much", perParameter)
	}
	is(a.EvalInterval == 0, "nothing is evaluated (eval_interval 0)")
	is(a.SaveInterval == 0 || a.SaveInterval > a.TrainIters, "nothing is saved before the end (save_interval %d)", a.SaveInterval)
	is(a.LRWarmupIters >= a.TrainIters, "the learning rate only rises (lr_warmup_iters %d)", a.LRWarmupIters)
	return strings.Join(all, "; "), nil
}

// inspectDirs checks that the run directory and that of the checkpoints can be made and written.
func (t *trainer) inspectDirs(context.Context) (string, error) {
	location := t.location()
	if err := location.Validate(); err != nil {
		return "", err
	}
	if err := durable.MayWrite(location.Path()); err != nil {
		return "", fmt.Errorf("run directory %s: %w", location.Path(), err)
	}
	if err := t.openStore(); err != nil {
		return "", err
	}
	dir := t.store.Dir()
	if err := durable.MayWrite(dir); err != nil {
		t.store = nil
		return "", describe(t.tc, fmt.Errorf("save: nothing can be saved in %s: %w", dir, err))
	}
	return "saved in " + dir, nil
}

// inspectStart opens the checkpoint from which the run would continue and compares it with the run.
func (t *trainer) inspectStart(context.Context) (string, error) {
	if t.store == nil { // inspectDirs has returned the error
		return "", nil
	}
	name, err := t.readName()
	if err != nil {
		return "", err
	}
	if t.args.Save != "" {
		t.store.SetRun(name)
	}
	c, err := t.findCheckpoint()
	if err != nil {
		return "", err
	}
	if c == nil {
		if t.args.LoadHF != "" {
			return "from the weights in " + t.args.LoadHF, nil
		}
		return "from new weights", t.args.checkStart(t.tc, false)
	}
	left := max(0, t.args.TrainIters-int(c.Step()))
	return fmt.Sprintf("from %s; steps left: %d of %d", c.Path(), left, t.args.TrainIters), t.inspectCheckpoint(c)
}

// inspectMemory estimates the memory of the run.
func (t *trainer) inspectMemory(context.Context) (string, error) {
	if t.tc.Manager == nil { // a plan without a manager
		return "", nil
	}
	return t.args.checkMemory(t.tc.Manager, t.tc.Device, t.world.Ranks)
}

// inspectCheckpoint compares a checkpoint with the parameters of the run.
func (t *trainer) inspectCheckpoint(c *checkpoint.Checkpoint) error {
	s, err := readState(c)
	if err != nil {
		return err
	}
	return cmp.Or(t.checkModel(c), t.checkSeed(c, s), t.checkRemaining(c, s.Step))
}

var _ backend.Inspector = (*trainer)(nil)
