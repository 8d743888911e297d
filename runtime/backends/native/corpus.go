package native

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/runtime/backend"
)

// vocabMultiple is what a derived vocab_size is a multiple of, so that products have even shapes.
const vocabMultiple = 64

// loadTokenizer reads the tokenizer, unless load_hf has one, and sets vocab_size by it if that is
// 0, or is the number of a model preset that is too small for the tokenizer.
func (a *Args) loadTokenizer(tc *backend.TrainContext) (err error) {
	if a.tokenizer == nil {
		if a.tokenizer, err = a.TokenizerConfig.Load(); err != nil {
			return err
		}
	}
	n := a.tokenizer.VocabSize()
	if a.VocabSize == 0 {
		a.VocabSize = n
	}
	if a.VocabSize > 0 && a.VocabSize < n && vocabOfPreset(tc) {
		a.VocabSize = n
		if a.VocabDivisor == 0 {
			a.VocabSize = (n + vocabMultiple - 1) / vocabMultiple * vocabMultiple
		}
	}
	if a.VocabSize > 0 && a.VocabSize < n {
		return fmt.Errorf("vocab_size: given %d, and the tokenizer has %d tokens: want at least as many, or 0 for their number", a.VocabSize, n)
	}
	if a.MaskConfig.Any() && data.EndOfDocument(a.tokenizer) < 0 {
		return fmt.Errorf("%s: given true, and the tokenizer %s has no token that ends documents: want false, or a tokenizer_model with one", a.firstMask(), a.tokenizer.Name())
	}
	return nil
}

// vocabOfPreset reports whether vocab_size was written in the model preset that the experiment
// names, and not by the experiment itself.
func vocabOfPreset(tc *backend.TrainContext) bool {
	v, ok := tc.Args.Lookup("vocab_size")
	origin := v.Origin()
	preset := tc.Module.Model
	return ok && preset != "" && origin.Token == "" && path.Base(origin.File) == preset && (tc.Experiment == nil || origin.File != tc.Experiment.File)
}

// firstMask returns the name of a parameter that asks for masks.
func (a *Args) firstMask() string {
	switch {
	case a.ResetPositions:
		return "reset_position_ids"
	case a.ResetAttention:
		return "reset_attention_mask"
	default:
		return "eod_mask_loss"
	}
}

// findData lists the files of the run.
func (t *trainer) findData(ctx context.Context) (*data.Plan, error) {
	plan, err := data.NewPlan(ctx, t.args.SourceConfig, data.PlanSettings{
		SeqLength: t.args.SeqLength, CacheDir: filepath.Join(t.tc.Experiment.Workspace, "cache"),
		Tokenizer: t.args.tokenizer, Evaluate: t.args.EvalInterval > 0, Progress: t.encodingProgress(),
	})
	if err != nil {
		return nil, describe(t.tc, err)
	}
	return plan, nil
}

// progressInterval is the time between two lines about text that is encoded.
const progressInterval = 10 * time.Second

// encodingProgress returns a function that marks that text is encoded, and logs how much, from time
// to time.
func (t *trainer) encodingProgress() func(read, total int64) {
	last := time.Now()
	return func(read, total int64) {
		t.progress.Enter(backend.PhaseData, 0)
		if now := time.Now(); now.Sub(last) >= progressInterval {
			last = now
			t.tc.Log.Info(fmt.Sprintf("encoding the text: %d of %d MB", read/1e6, total/1e6))
		}
	}
}

// loadData loads the tokens and chooses the windows to evaluate.
func (t *trainer) loadData(ctx context.Context) error {
	if t.args.tunes() {
		return t.loadExamples(ctx)
	}
	plan, err := t.findData(ctx)
	if err != nil {
		return err
	}
	if err := t.describeFiles(plan.Paths()); err != nil {
		return describe(t.tc, err)
	}
	set, err := plan.Load(ctx, func(r data.Report) {
		t.warn(r.Warnings)
		t.left(r.Bad)
		if r.Tokens > 0 {
			t.tc.Log.Info(r.String())
		}
	})
	if err != nil {
		return describe(t.tc, err)
	}
	t.data, t.sampler = set, textFeed{data.NewSampler(set.Train, uint64(t.args.Seed)), t.args}
	return t.chooseWindows(set)
}

// mask sets the masks of a batch.
func (a *Args) mask(b *model.Batch) {
	a.MaskConfig.Apply(b, data.EndOfDocument(a.tokenizer))
}

// inspectCorpus lists the files of the run and checks that they are long enough.
func (t *trainer) inspectCorpus(ctx context.Context) (string, error) {
	if t.args.tunes() {
		return t.inspectExamples(ctx)
	}
	plan, err := t.findData(ctx)
	if err != nil {
		return "", err
	}
	if err := plan.Check(); err != nil {
		return "", describe(t.tc, err)
	}
	var all []string
	for _, r := range plan.Reports() {
		all = append(all, r.String())
	}
	return strings.Join(all, "; "), nil
}

// tokens says what the tokens are.
func (a *Args) tokens() string {
	if a.tokenizer.Name() == (tokenizer.Byte{}).Name() {
		return fmt.Sprintf("tokens are the %d bytes", a.tokenizer.VocabSize())
	}
	return fmt.Sprintf("the tokenizer has %d", a.tokenizer.VocabSize())
}

// modelConfig returns the config.json of a checkpoint, with the special tokens of the tokenizer.
func (a *Args) modelConfig() map[string]any {
	config := a.HFConfig()
	f, ok := a.tokenizer.(*tokenizer.File)
	if !ok {
		return config
	}
	for key, id := range map[string]int32{"bos_token_id": f.BOS(), "eos_token_id": f.EOS(), "pad_token_id": f.PAD()} {
		if id >= 0 {
			config[key] = id
		}
	}
	return config
}

// tokenizerFiles returns the files of the tokenizer, which belong to the weights, with the chat
// template of the conversations that the run learns from.
func (t *trainer) tokenizerFiles() []tokenizer.Raw {
	var files []tokenizer.Raw
	if f, ok := t.args.tokenizer.(*tokenizer.File); ok {
		files = f.Raw()
	}
	if t.examples == nil || t.examples.Template() == "" {
		return files
	}
	files = slices.DeleteFunc(files, func(f tokenizer.Raw) bool { return f.Name == tokenizer.TemplateName })
	return append(files, tokenizer.Raw{Name: tokenizer.TemplateName, Data: []byte(t.examples.Template())})
}
