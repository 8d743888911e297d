package models

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/inference"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/primus-fl/primus/opmanager"
	"github.com/spf13/cobra"
)

// evaluateOptions are the flags of the command.
type evaluateOptions struct {
	Options
	data, tasks []string
	maxBytes    uint64
	stride      uint
	task        inference.TaskSettings
	output      cli.OutputFormat
}

// NewEvaluate returns the command `primus evaluate`.
func NewEvaluate(prog cli.Program) *cobra.Command {
	var o evaluateOptions
	cmd := &cobra.Command{
		Use:   "evaluate --checkpoint DIR --data FILE",
		Short: "Measure how well a trained model predicts texts",
		Long: `Measure how well a trained model predicts texts.

--data takes what train_data_path takes. The loss is the mean of −ln p in nats per
token, over every token but the first; perplexity is e to that; bits per byte is the
loss of all tokens in bits, divided by the bytes of their text, which can be compared
between tokenizers. A window of the text has --context tokens and begins --stride tokens
after the one before.

--task takes multiple-choice questions, a JSON object per line:

  {"query": "The sky is", "choices": ["blue", "green"], "gold": 0}

The model answers with the choice that is the most likely continuation of the query and
--delimiter. acc is the share of right answers; acc_norm compares log probabilities per
character of a choice; both have their standard errors. These are the fields and figures
of multiple_choice tasks of lm-evaluation-harness.`,
		Example: `  primus evaluate --checkpoint output/local/local/my_run --data book.txt
  primus evaluate --checkpoint DIR --data heldout/ --stride 256 -o json
  primus evaluate --checkpoint DIR --task hellaswag.jsonl --task arc_easy.jsonl`,
		Args: onlyFlags,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context(), prog)
		},
	}
	o.AddFlags(cmd, "checkpoint")
	flags := cmd.Flags()
	flags.StringArrayVar(&o.data, "data", nil, "predict the text of `PATH`; may be repeated")
	flags.StringArrayVar(&o.tasks, "task", nil, "answer the questions of a `FILE`; may be repeated")
	flags.Uint64Var(&o.maxBytes, "max-bytes", 0, "at most `N` bytes of each text; 0 is all")
	flags.UintVar(&o.stride, "stride", 0, "tokens from one window to the next; 0 is --context, so that each token is computed once")
	flags.StringVar(&o.task.Delimiter, "delimiter", " ", "`TEXT` between a query and a choice")
	flags.BoolVar(&o.task.BOS, "bos", false, "queries begin with the token that the tokenizer puts before a text")
	o.output.AddFlag(cmd)
	cli.WithoutVariable(flags, "data", "task", "max-bytes", "stride", "delimiter", "bos", "context")
	return cmd
}

// check returns the first mistake in the flags.
func (o *evaluateOptions) check(cmd *cobra.Command) error {
	if err := o.Options.Check(cmd); err != nil {
		return err
	}
	if len(o.data)+len(o.tasks) == 0 {
		return cli.Usagef(cmd, "nothing to evaluate, want --data PATH or --task FILE")
	}
	return nil
}

// textResult is the outcome for one text.
type textResult struct {
	Path        string  `json:"path"`
	Tokens      int     `json:"tokens"` // that were predicted
	Bytes       int     `json:"bytes"`  // of their text
	Loss        float64 `json:"loss"`
	Perplexity  float64 `json:"perplexity"`
	BitsPerByte float64 `json:"bits_per_byte"`
}

// taskResult is the outcome for one task.
type taskResult struct {
	Path string `json:"path"`
	inference.TaskResult
}

// evaluateResults are what the command prints.
type evaluateResults struct {
	Checkpoint string       `json:"checkpoint"`
	Data       []textResult `json:"data"`
	Tasks      []taskResult `json:"tasks"`
}

func (o *evaluateOptions) run(ctx context.Context, prog cli.Program) error {
	tasks := make([][]inference.Question, len(o.tasks))
	for i, path := range o.tasks {
		file, err := durable.OpenRegular(path)
		if err != nil {
			return fmt.Errorf("--task: %w", err)
		}
		tasks[i], err = inference.ReadTask(path, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return o.Run(ctx, prog, func(m *inference.Loaded, mgr *opmanager.Manager) (err error) {
		s, err := inference.NewScorer(m.Model, mgr, int(o.Context))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		all := evaluateResults{Checkpoint: m.Path, Data: []textResult{}, Tasks: []taskResult{}}
		texts, err := o.find(ctx, m.Tokenizer)
		if err != nil {
			return err
		}
		for i, path := range o.data {
			r, err := o.text(ctx, s, m.Tokenizer, path, texts[i])
			if err != nil {
				return err
			}
			all.Data = append(all.Data, r)
		}
		for i, questions := range tasks {
			r, err := s.Task(ctx, m.Tokenizer, questions, o.task)
			if err != nil {
				return fmt.Errorf("--task: %s: %w", o.tasks[i], err)
			}
			all.Tasks = append(all.Tasks, taskResult{o.tasks[i], r})
		}
		return o.output.Print(prog.Out, all, func() error { return all.print(prog) })
	})
}

// find looks for all texts, so that none is missing when the others have been predicted.
func (o *evaluateOptions) find(ctx context.Context, tok tokenizer.Tokenizer) ([]*data.Source, error) {
	texts := make([]*data.Source, len(o.data))
	for i, path := range o.data {
		var err error
		texts[i], err = data.Find(ctx, data.Settings{Settings: corpus.Settings{Key: "--data", Path: path, MaxBytes: int64(o.maxBytes)}, Tokenizer: tok})
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// text predicts the text of a path.
func (o *evaluateOptions) text(ctx context.Context, s *inference.Scorer, tok tokenizer.Tokenizer, path string, text *data.Source) (r textResult, err error) {
	tokens, _, err := text.Load(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tokens.Close()) }()
	score, err := s.Text(ctx, tokens.Len(), tokens.Read, int(o.stride))
	if err != nil {
		return r, fmt.Errorf("--data: %s: %w", path, err)
	}
	bytes, err := bytesOf(tokens, tok)
	if err != nil {
		return r, fmt.Errorf("--data: %s: %w", path, err)
	}
	return textResult{
		Path: path, Tokens: score.Tokens, Bytes: bytes, Loss: score.Loss(), Perplexity: score.Perplexity(),
		BitsPerByte: score.Nats / math.Ln2 / float64(max(bytes, 1)),
	}, nil
}

// bytesOf returns the bytes of the text of all tokens but the first, without ends of documents.
func bytesOf(tokens *data.Tokens, tok tokenizer.Tokenizer) (int, error) {
	ids, text, end := make([]int32, 4096), []byte(nil), data.EndOfDocument(tok)
	total := 0
	for at := 1; at < tokens.Len(); at += len(ids) {
		ids = ids[:min(len(ids), tokens.Len()-at)]
		if err := tokens.Read(ids, at); err != nil {
			return 0, err
		}
		text = tok.Decode(text[:0], slices.DeleteFunc(ids, func(id int32) bool { return id == end }))
		total += len(text)
	}
	return total, nil
}

func (r evaluateResults) print(prog cli.Program) error {
	var parts []string
	if len(r.Data) > 0 {
		t := plaintext.NewTable(table.Row{"data", "tokens", "bytes", "loss", "perplexity", "bits per byte"}, 2, 3, 4, 5, 6)
		for _, d := range r.Data {
			t.AppendRow(table.Row{plaintext.Printable(d.Path), d.Tokens, d.Bytes, fmt.Sprintf("%.4f", d.Loss), fmt.Sprintf("%.4g", d.Perplexity), fmt.Sprintf("%.4f", d.BitsPerByte)})
		}
		parts = append(parts, plaintext.Render(prog.Out, t))
	}
	if len(r.Tasks) > 0 {
		t := plaintext.NewTable(table.Row{"task", "questions", "acc", "± error", "acc_norm", "± error"}, 2, 3, 4, 5, 6)
		for _, d := range r.Tasks {
			t.AppendRow(table.Row{plaintext.Printable(d.Path), d.Questions, fmt.Sprintf("%.4f", d.Acc), fmt.Sprintf("%.4f", d.AccStderr), fmt.Sprintf("%.4f", d.AccNorm), fmt.Sprintf("%.4f", d.AccNormError)})
		}
		parts = append(parts, plaintext.Render(prog.Out, t))
	}
	for i, part := range parts {
		if i > 0 {
			part = "\n" + part
		}
		if _, err := fmt.Fprintln(prog.Out, part); err != nil {
			return err
		}
	}
	return nil
}
