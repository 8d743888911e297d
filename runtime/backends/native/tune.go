package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/runtime/backend"
)

// The stages of the trainer.
const (
	stagePretrain = "pretrain"
	stageSFT      = "sft" // supervised fine-tuning
	stageDPO      = "dpo" // direct preference optimization
)

// corpus is what a run learns from.
type corpus interface {
	Fingerprint() string
	Corpus() string // with which the fingerprint begins
	Close() error
}

// feed gives the batches of training. The position is its whole state.
type feed interface {
	Batch(b *model.Batch) error
	Position() uint64
	Seek(position uint64)
}

// windows are a fixed choice of what is held out.
type windows interface {
	Len() int // rows
	Reset()
	Batch(b *model.Batch) error
}

// textFeed gives windows of text with the masks of the run.
type textFeed struct {
	*data.Sampler
	args *Args
}

// Batch implements feed.
func (f textFeed) Batch(b *model.Batch) error {
	err := f.Sampler.Batch(b.Tokens)
	f.args.mask(b)
	return err
}

// textWindows are windows of text with the masks of the run.
type textWindows struct {
	*data.Validation
	args *Args
}

// Batch implements windows.
func (w textWindows) Batch(b *model.Batch) error {
	err := w.Validation.Batch(b.Tokens)
	w.args.mask(b)
	return err
}

// tunes reports whether the run learns from examples in place of text.
func (a *Args) tunes() bool { return a.stage == stageSFT || a.stage == stageDPO }

// validateStage returns the faults of parameters that contradict the stage.
func (a *Args) validateStage() error {
	var faults []error
	refuse := func(given bool, key, why string) {
		if given {
			faults = append(faults, fmt.Errorf("%s: it has no effect in stage %s: %s", key, a.stage, why))
		}
	}
	if !a.tunes() {
		const only = "it is for primus train posttrain"
		refuse(a.ChatTemplate != "", "chat_template", only)
		refuse(a.Packing, "packing", only)
		refuse(a.PromptKey != "", "prompt_key", only)
		return errors.Join(faults...)
	}
	const examples = "examples are JSON lines with masks of their own"
	refuse(a.MaskConfig.Any(), a.firstMask(), examples)
	refuse(a.TextKey != "", "text_key", examples)
	refuse(a.TrainDataFormat != "" && a.TrainDataFormat != "auto", "train_data_format", examples)
	refuse(a.VerifyData, "verify_data", "examples are read for each run")
	refuse(a.Split != "", "split", "use valid_fraction or valid_data_path")
	refuse(a.TestDataPath != "", "test_data_path", "use valid_data_path")
	refuse(a.TrainDataMax != 0, "train_data_max_bytes", examples)
	refuse(a.DumpBatches != 0, "dump_batches", "batches of examples are not written")
	if a.stage == stageDPO {
		refuse(a.Packing, "packing", "a pair takes two sequences")
		if a.MicroBatchSize%2 != 0 {
			faults = append(faults, fmt.Errorf("micro_batch_size: given %d, want an even number: a pair takes two sequences", a.MicroBatchSize))
		}
		if a.DPOBeta == 0 {
			faults = append(faults, errors.New("dpo_beta: given 0, want a number > 0, such as 0.1"))
		}
	}
	return errors.Join(faults...)
}

// readExamples reads the examples of a path.
func (t *trainer) readExamples(ctx context.Context, path string) (*posttrain.Source, error) {
	files, err := posttrain.Find(path)
	if err != nil {
		return nil, err
	}
	r, err := posttrain.NewReader(t.args.Tuning, t.args.tokenizer, t.args.stage == stageDPO, t.args.OnBadRecord)
	if err != nil {
		return nil, err
	}
	source, err := r.Read(ctx, files)
	if err == nil {
		t.left(source.Bad)
	}
	return source, err
}

// rows returns how examples become rows.
func (a *Args) rows() posttrain.SetConfig {
	c := posttrain.SetConfig{SeqLength: a.SeqLength, Packing: a.Packing, Seed: uint64(a.Seed), ValidFraction: a.ValidFraction}
	if f, ok := a.tokenizer.(*tokenizer.File); ok {
		c.Pad = max(cmp.Or(max(f.PAD(), 0), f.EOS()), 0)
	}
	if a.EvalInterval == 0 || a.ValidDataPath != "" {
		c.ValidFraction = 0
	}
	return c
}

// loadExamples reads the examples and chooses those to evaluate.
func (t *trainer) loadExamples(ctx context.Context) error {
	c, evaluates := t.args.rows(), t.args.EvalInterval > 0
	source, err := t.readExamples(ctx, t.args.TrainDataPath)
	if err != nil {
		return describe(t.tc, err)
	}
	set, err := posttrain.NewSet(source, c)
	if err != nil {
		return describe(t.tc, err)
	}
	t.warn(set.Warnings())
	t.tc.Log.Info(set.String())
	if err := t.describeFiles(source.Files); err != nil {
		return describe(t.tc, err)
	}
	t.data, t.sampler, t.examples = set, posttrain.NewSampler(set), set
	held := set
	if evaluates && t.args.ValidDataPath != "" {
		if source, err = t.readExamples(ctx, t.args.ValidDataPath); err != nil {
			return describe(t.tc, fmt.Errorf("valid_data_path: %w", err))
		}
		c.ValidFraction = 1
		if held, err = posttrain.NewSet(source, c); err != nil {
			return describe(t.tc, fmt.Errorf("valid_data_path: %w", err))
		}
		t.warn(held.Warnings())
	}
	if !evaluates || held.ValidRows() == 0 {
		return nil
	}
	choose := func(limit int) (*evaluation, error) {
		return t.args.evaluationOf(held.ValidRows(), limit, func(rows int) (windows, error) { return posttrain.NewEvaluation(held, rows) })
	}
	each := t.args.evalWindows
	if t.valid, err = choose(each); err != nil {
		return err
	}
	t.final, err = choose(max(t.args.FinalWindows, each))
	return err
}

// inspectExamples reads the examples.
func (t *trainer) inspectExamples(ctx context.Context) (string, error) {
	source, err := t.readExamples(ctx, t.args.TrainDataPath)
	if err != nil {
		return "", describe(t.tc, err)
	}
	set, err := posttrain.NewSet(source, t.args.rows())
	if err != nil {
		return "", describe(t.tc, err)
	}
	return strings.Join(append([]string{set.String()}, set.Warnings()...), "; "), nil
}

// checkStart returns an error if the run would tune weights that nobody has trained.
func (a *Args) checkStart(tc *backend.TrainContext, found bool) error {
	if found || a.LoadHF != "" || !a.tunes() {
		return nil
	}
	return describe(tc, fmt.Errorf("load_hf: given null in stage %s, want the weights to begin with: a run directory, a checkpoint or a folder of Hugging Face", a.stage))
}

// refer loads the weights that the loss of preferences compares with.
func (t *trainer) refer() (err error) {
	if t.preference == nil {
		return nil
	}
	if t.args.LoadHF == "" {
		return describe(t.tc, fmt.Errorf("load_hf: given null in stage %s, want the weights to compare with", t.args.stage))
	}
	c := t.args.Config
	c.LoRA = model.LoRA{}
	if t.reference, err = model.NewFrozen(c, t.tc.Device); err != nil {
		return err
	}
	if _, err := loadFolder(t.args.LoadHF, t.reference, t.found()); err != nil {
		return err
	}
	t.preference.Reference, err = t.reference.NewPass(t.manager, t.args.MicroBatchSize, t.args.SeqLength, false)
	return err
}

// closeReference releases the memory of the weights to compare with.
func (t *trainer) closeReference() error {
	var faults []error
	if t.preference != nil && t.preference.Reference != nil {
		faults = append(faults, t.preference.Reference.Close())
	}
	if t.reference != nil {
		faults = append(faults, t.reference.Close())
	}
	return errors.Join(faults...)
}
