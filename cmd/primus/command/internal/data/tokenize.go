package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

// tokenizeOptions are the flags of primus data tokenize.
type tokenizeOptions struct {
	inputs    []string
	tokenizer string
	prefix    string
	textKey   string
	format    string
	appendEOD bool
	force     bool
	workers   int
}

func newTokenizeCommand(prog cli.Program) *cobra.Command {
	o := tokenizeOptions{textKey: corpus.DefaultTextKey, format: string(corpus.Auto), appendEOD: true}
	cmd := &cobra.Command{
		Use:   "tokenize --input PATH… --tokenizer FILE -o PREFIX [flags]",
		Short: "Write the tokens of text as a dataset, PREFIX.bin and PREFIX.idx",
		Long: `Write the tokens of text as a dataset, PREFIX.bin and PREFIX.idx.

A path is a file, a directory or a glob. Each line of *.jsonl, each row of *.parquet and
each other file is one document; lines and text may be compressed (*.gz, *.zst). The
dataset appears once it is complete, and it is the same for any number of workers.`,
		Example: `  primus data tokenize --input corpus.jsonl.gz --tokenizer tokenizer.json -o data/corpus
  primus data tokenize --input 'shards/*.jsonl' --text-key content -t models/llama -o shards
  primus data tokenize --input book.txt --tokenizer byte --append-eod=false -o book`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd, prog)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.inputs, "input", nil, "read documents from `PATH`; may be repeated")
	flags.StringVarP(&o.tokenizer, "tokenizer", "t", "", "the tokenizer's `FILE` or folder, or "+bytesName)
	flags.StringVarP(&o.prefix, "output", "o", "", "write the dataset under `PREFIX`")
	flags.StringVar(&o.textKey, "text-key", o.textKey, "`KEY` of a JSON object that holds the document")
	flags.StringVar(&o.format, "format", o.format, "`FORMAT` of the files: auto, which goes by their names, or "+strings.Join(corpus.Format("").Values()[1:], ", "))
	flags.BoolVar(&o.appendEOD, "append-eod", o.appendEOD, "put the token that ends texts after each document")
	flags.BoolVar(&o.force, "force", false, "replace an existing dataset")
	flags.IntVar(&o.workers, "workers", 0, "`NUMBER` of documents that are encoded at the same time (default the processors)")
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(corpus.Format("").Values(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

func (o *tokenizeOptions) check(cmd *cobra.Command) error {
	switch {
	case len(o.inputs) == 0:
		return cli.Usagef(cmd, "no text given: want --input PATH")
	case o.tokenizer == "":
		return cli.Usagef(cmd, "no tokenizer given: want --tokenizer FILE, or --tokenizer %s", bytesName)
	case o.prefix == "":
		return cli.Usagef(cmd, "no dataset named: want -o PREFIX")
	case !slices.Contains(corpus.Format("").Values(), o.format):
		return cli.Usagef(cmd, "--format: given %q, want %s", o.format, strings.Join(corpus.Format("").Values(), ", "))
	case o.workers < 0:
		return cli.Usagef(cmd, "--workers: given %d, want 1 or more, or 0 for the processors", o.workers)
	}
	return nil
}

func (o *tokenizeOptions) run(cmd *cobra.Command, prog cli.Program) error {
	tok, err := loadTokenizer(o.tokenizer)
	if err != nil {
		return err
	}
	if o.appendEOD && data.EndOfDocument(tok) < 0 {
		return cli.Usagef(cmd, "the tokenizer %s has no token that ends texts: want another one, or --append-eod=false", o.tokenizer)
	}
	begin := time.Now()
	console := &plaintext.Console{Out: prog.Err, Width: prog.Width}
	defer console.SetStatus("")
	show := &progress{console: console, begin: begin}
	s := data.TokenizeSettings{
		Tokenizer: tok, Prefix: o.prefix, Replace: o.force, EndDocs: o.appendEOD, Workers: o.workers, Progress: show.update,
	}
	for _, input := range o.inputs {
		s.Inputs = append(s.Inputs, corpus.Settings{Key: "--input", Path: input, Format: corpus.Format(o.format), TextKey: o.textKey})
	}
	done, err := data.Tokenize(cmd.Context(), s)
	if exists, ok := errors.AsType[*indexed.ExistsError](err); ok {
		return fmt.Errorf("%w: give another PREFIX, or --force to replace the dataset", exists)
	}
	if err != nil {
		return err
	}
	console.SetStatus("")
	took := time.Since(begin)
	bin, idx := indexed.Paths(o.prefix)
	_, err = fmt.Fprintf(prog.Out, "%s, %s: %s, %s tokens of %v from %s bytes, in %s (%.1f MB/s)\n", bin, idx,
		plaintext.Quantity(done.Documents, "document", "documents"), plaintext.Count(uint64(done.Tokens)), indexed.DTypeOf(tok.VocabSize()),
		plaintext.Count(uint64(done.Bytes)), took.Round(10*time.Millisecond), float64(done.Bytes)/1e6/took.Seconds())
	return err
}

// progress shows how far the command has come: in the status line of a terminal, or else in a line
// every half minute.
type progress struct {
	console     *plaintext.Console
	begin, last time.Time
}

func (p *progress) update(d data.Tokenized) {
	every := time.Second / 5
	if p.console.Width == nil {
		every = 30 * time.Second
	}
	now := time.Now()
	if p.last.IsZero() {
		p.last = p.begin
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	line := fmt.Sprintf("%.1f %%, %s, %s tokens, %.1f MB/s", 100*float64(d.Bytes)/float64(max(d.Total, 1)),
		plaintext.Quantity(d.Documents, "document", "documents"), plaintext.Count(uint64(d.Tokens)), float64(d.Bytes)/1e6/now.Sub(p.begin).Seconds())
	if p.console.Width != nil {
		p.console.SetStatus(line)
	} else {
		fmt.Fprintln(p.console.Out, line)
	}
}
