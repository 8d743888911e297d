// Package firstrun makes an experiment for a text: it trains a tokenizer, measures how fast this
// machine trains, and chooses the model and the number of steps for the time there is.
package firstrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
)

// DefaultTime is how long a run takes about, unless something else is asked for.
const DefaultTime = 10 * time.Minute

// Settings say what to train on, for how long, and with what.
type Settings struct {
	Texts    []string // files, folders or globs
	Time     time.Duration
	Name     string          // of the run and of the files; "" goes by the first text
	Model    string          // a model preset; "" chooses by the time
	DryRun   bool            // choose, and write nothing
	Corpus   corpus.Settings // how the texts are read: Format, TextKey and OnBad
	Training experiments.TrainingOptions
}

// head begins each file that this package writes.
const head = "# Written by primus init for "

// Experiment returns the file with the experiment for the texts. If it is not there, it is made,
// together with the file of a tokenizer. made is what was chosen, nil for a file that was there.
func Experiment(ctx context.Context, prog cli.Program, s Settings) (file string, made *Choice, err error) {
	if s.Time <= 0 {
		return "", nil, cli.UsageError{Err: fmt.Errorf("--time: given %v, want a time such as 10m or 8h", s.Time)}
	}
	if s.Name == "" {
		s.Name = nameOf(s.Texts[0])
	}
	if !names.MatchString(s.Name) {
		return "", nil, badName(s.Name)
	}
	file = s.Name + ".yaml"
	there, err := durable.ReadRegular(file, document.MaxSize)
	switch {
	case err == nil && strings.HasPrefix(string(there), head+strings.Join(s.Texts, " ")+"\n"):
		return file, nil, nil
	case err == nil:
		return "", nil, fmt.Errorf("%s is there already and is not the experiment for %s: train it with --config %[1]s, or give another name with exp_name=NAME", file, strings.Join(s.Texts, " "))
	case !errors.Is(err, fs.ErrNotExist):
		return "", nil, durable.Explain(err)
	}
	c, err := choose(ctx, prog, s)
	if err != nil {
		return "", nil, err
	}
	if s.DryRun {
		return file, c, nil
	}
	if c.tokenizer != nil {
		if err := writeNew(c.TokenizerFile, c.tokenizer); err != nil {
			return "", nil, err
		}
	}
	return file, c, writeNew(file, []byte(c.yaml(s)))
}

var (
	names    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	unusable = regexp.MustCompile(`[^A-Za-z0-9._-]+`)
)

func badName(name string) error {
	return cli.UsageError{Err: fmt.Errorf("given the name %q, want letters, digits, dots, hyphens and underscores", name)}
}

// nameOf returns a name for a text, that of its file or folder.
func nameOf(text string) string {
	absolute, err := filepath.Abs(text)
	if err != nil {
		absolute = text
	}
	name := filepath.Base(absolute)
	for _, ext := range []string{".gz", ".zst", ".txt", ".md", ".jsonl", ".ndjson", ".parquet"} {
		name = strings.TrimSuffix(name, ext)
	}
	if name = strings.Trim(unusable.ReplaceAllString(name, "-"), "-._"); name == "" {
		return "text"
	}
	return name
}

func writeNew(file string, text []byte) error {
	err := durable.WriteFile(file, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", file, durable.Explain(err))
	}
	return nil
}

// text is what is known of the texts.
type text struct {
	path      string // for train_data_path
	bytes     int64  // of text, estimated for large ones
	tokens    int64
	vocab     int    // of the tokenizer; 256 for bytes
	tokenizer []byte // its file, nil for bytes
}

// sample is how much text a tokenizer learns from, at most, and probe how much it encodes to find
// out how many bytes a token has.
const (
	sample = 64 << 20
	probe  = 256 << 10
)

// vocabulary returns the number of tokens for a text: the larger the text, the more words occur
// often enough to be learned. 0 is for bytes.
func vocabulary(bytes int64) int {
	switch {
	case bytes < 100<<10:
		return 0
	case bytes < 4<<20:
		return 1024
	case bytes < 64<<20:
		return 4096
	}
	return 8192
}

// read measures the texts, which are read as how says, and trains a tokenizer on them.
func read(ctx context.Context, texts []string, how corpus.Settings) (*text, error) {
	t := &text{vocab: 256}
	found := make([]*corpus.Corpus, len(texts))
	files := int64(0)
	for i, path := range texts {
		how.Key, how.Path = "given text", path
		c, err := corpus.Find(ctx, how)
		if err != nil {
			return nil, err
		}
		found[i] = c
		files += c.FileBytes()
	}
	config := trainer.Default()
	config.SpecialTokens = append(config.SpecialTokens, "<|im_start|>", "<|im_end|>") // of a conversation, for later training
	size := vocabulary(files)
	if size > 0 {
		config.VocabSize = size
	}
	learner, err := trainer.New(config)
	if err != nil {
		return nil, err
	}
	var sizes []int64
	var held []byte
	for _, c := range found {
		bytes, err := learn(ctx, c, learner, sample/int64(len(texts)), &held)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, bytes)
		t.bytes += bytes
	}
	if t.path, err = blend(texts, sizes); err != nil || size == 0 {
		t.tokens = t.bytes
		return t, err
	}
	learned, err := learner.Train(ctx)
	if err != nil {
		return nil, err
	}
	t.tokenizer, t.vocab = learned.JSON, learned.Tokens
	perByte, err := tokensPerByte(learned.JSON, held)
	t.tokens = int64(float64(t.bytes) * perByte)
	return t, err
}

// learn counts the words of a corpus, of so many bytes at most, keeps its beginning, and returns
// how many bytes of text it has, which is estimated if it has more.
func learn(ctx context.Context, c *corpus.Corpus, learner *trainer.Trainer, most int64, held *[]byte) (int64, error) {
	read, enough := int64(0), errors.New("enough")
	err := c.Read(ctx, func(p corpus.Piece) error {
		read += int64(len(p.Text))
		learner.AddText(p.Text)
		if len(*held) < probe {
			*held = append(*held, p.Text...)
		}
		if read > most {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return int64(float64(read) * float64(c.FileBytes()) / float64(max(c.BytesRead(), 1))), nil
	}
	return read, err
}

// tokensPerByte returns how many tokens a text has for each of its bytes.
func tokensPerByte(file, text []byte) (perByte float64, err error) {
	dir, err := os.MkdirTemp("", "primus-tokenizer-")
	if err != nil {
		return 0, durable.Explain(err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "tokenizer.json")
	if err := writeNew(path, file); err != nil {
		return 0, err
	}
	tok, err := tokenizer.Load(path)
	if err != nil {
		return 0, err
	}
	text = text[:min(len(text), probe)]
	return float64(len(tok.Encode(nil, text))) / float64(max(len(text), 1)), nil
}

// blend returns the train_data_path of several texts, each with the weight of its size.
func blend(texts []string, sizes []int64) (string, error) {
	if len(texts) == 1 {
		return texts[0], nil
	}
	var words []string
	for i, path := range texts {
		if strings.ContainsAny(path, " \t\n\"'") {
			return "", cli.UsageError{Err: fmt.Errorf("given %q among several texts: names with spaces or quotes cannot be blended, put the files in one folder", path)}
		}
		words = append(words, strconv.FormatInt(max(sizes[i], 1), 10), path)
	}
	return strings.Join(words, " "), nil
}

// Summary says what was chosen and why, a line each.
func (c *Choice) Summary() string {
	var b strings.Builder
	tok := "bytes are its tokens"
	if c.tokenizer != nil {
		tok = fmt.Sprintf("%s tokens of %s, which has %d", plaintext.Count(uint64(c.text.tokens)), c.TokenizerFile, c.text.vocab)
	}
	how := "measured here"
	if c.Computed {
		how = "computed from a smaller model, which was measured here"
	}
	fmt.Fprintf(&b, "text        %s: %s bytes, %s\n", c.text.path, plaintext.Count(uint64(c.text.bytes)), tok)
	fmt.Fprintf(&b, "model       %s with %.1f million parameters\n", c.Model, float64(c.Parameters)/1e6)
	fmt.Fprintf(&b, "training    %d steps of %d tokens, %s, about %v at %.0f tokens/s, %s\n",
		c.Steps, c.StepTokens, c.share(), c.Expected.Round(time.Second), c.Rate, how)
	for _, note := range c.notes {
		fmt.Fprintf(&b, "note        %s\n", note)
	}
	return b.String()
}

func (c *Choice) epochs() float64 {
	return float64(c.Steps) * float64(c.StepTokens) / float64(max(c.text.tokens, 1))
}

// share says how much of the text is trained on.
func (c *Choice) share() string {
	if c.epochs() < 1 {
		return fmt.Sprintf("%.2g %% of the text", 100*c.epochs())
	}
	return fmt.Sprintf("%.1f times the text", c.epochs())
}

// yaml returns the experiment.
func (c *Choice) yaml(s Settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", head, strings.Join(s.Texts, " "))
	for line := range strings.Lines(c.Summary()) {
		b.WriteString("# " + line)
	}
	fmt.Fprintf(&b, `
exp_name: %s

platform:
  config: platform_local.yaml

modules:
  pre_trainer:
    framework: native
    config: pre_trainer.yaml
    model: %s.yaml

    overrides:
      train_data_path: %q
`, s.Name, c.Model, c.text.path)
	set := func(name string, value any) { fmt.Fprintf(&b, "      %s: %v\n", name, value) }
	if c.tokenizer != nil {
		set("tokenizer_type", "HuggingFaceTokenizer")
		set("tokenizer_model", c.TokenizerFile)
		set("vocab_size", "0 # that of the tokenizer")
	} else {
		set("vocab_size", 256)
	}
	for _, p := range []struct{ name, value string }{
		{"train_data_format", string(s.Corpus.Format)}, {"text_key", s.Corpus.TextKey}, {"on_bad_record", string(s.Corpus.OnBad)},
	} {
		if p.value != "" {
			set(p.name, strconv.Quote(p.value))
		}
	}
	for _, p := range c.params() {
		set(p.name, p.value)
	}
	return b.String()
}

// param is a parameter of the experiment.
type param struct {
	name  string
	value any
}

// params returns the parameters of the model's own training, with the lengths chosen.
func (c *Choice) params() []param {
	all := slices.Clone(c.candidate.params)
	return append(all,
		param{"train_iters", c.Steps},
		param{"lr_warmup_iters", min(max(1, c.Steps/20), 500)},
		param{"log_interval", min(max(10, c.Steps/100), 50)},
		param{"eval_interval", max(1, c.Steps/c.evaluations)},
		param{"save_interval", max(1, c.Steps/5)},
		param{"final_eval_windows", c.windows},
		param{"valid_fraction", c.validFraction},
	)
}
