package tokenizer

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/data/corpus"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer/trainer"
	"github.com/spf13/cobra"
)

func newTrainCommand(prog cli.Program) *cobra.Command {
	config := trainer.Default()
	var inputs []string
	file, force := "tokenizer.json", false
	format, textKey := string(corpus.Auto), corpus.DefaultTextKey
	cmd := &cobra.Command{
		Use:   "train --input PATH… [flags]",
		Short: "Train a byte-level BPE tokenizer on text",
		Long: `Train a byte-level BPE tokenizer on text and write it as a tokenizer.json, which the
libraries of Hugging Face read, too. Equal texts give equal files. Memory grows with the
number of different words, which --max-words limits.

A path is a file, a directory or a glob. Files are text, JSONL or Parquet, by their names,
and may be compressed (*.gz, *.zst).`,
		Example: `  primus tokenizer train --input corpus.txt --vocab-size 8192 -o tokenizer.json
  primus tokenizer train --input a.txt --input b.txt --pattern gpt2 --special-token "<|end|>"
  primus tokenizer train --input corpus.jsonl.zst --text-key content
  xzcat corpus.xz | primus tokenizer train --input -`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(inputs) == 0 {
				return cli.Usagef(cmd, "no text given: want --input PATH")
			}
			if _, err := os.Lstat(file); err == nil && !force {
				return fmt.Errorf("%s exists already: give another FILE to -o, or --force to replace it", file)
			}
			if err := durable.CheckFileWritable(file); err != nil {
				return fmt.Errorf("-o: %w", err)
			}
			t, err := trainer.New(config)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			begin := time.Now()
			if err := addInputs(cmd, t, inputs, corpus.Format(format), textKey); err != nil {
				return err
			}
			result, err := t.Train(cmd.Context())
			if err != nil {
				return err
			}
			err = durable.WriteFile(file, func(w io.Writer) error {
				_, err := w.Write(result.JSON)
				return err
			})
			if err != nil {
				return fmt.Errorf("write %s: %w", file, err)
			}
			return printTrained(prog, file, t, result, time.Since(begin))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&inputs, "input", nil, "learn from the text of `PATH`, or of standard input for -; may be repeated")
	flags.StringVar(&format, "format", format, "`FORMAT` of the files: auto, which goes by their names, or "+strings.Join(corpus.Format("").Values()[1:], ", "))
	flags.StringVar(&textKey, "text-key", textKey, "`KEY` of a JSON object, or column, that holds a document")
	flags.StringVarP(&file, "output", "o", file, "write the tokenizer to `FILE`")
	flags.BoolVar(&force, "force", false, "replace an existing file")
	flags.IntVar(&config.VocabSize, "vocab-size", config.VocabSize, "`NUMBER` of tokens, special ones and the 256 bytes among them")
	flags.StringVar(&config.Pattern, "pattern", config.Pattern, "`NAME` of the expression that cuts text into words: "+strings.Join(trainer.Patterns(), ", "))
	flags.StringArrayVar(&config.SpecialTokens, "special-token", config.SpecialTokens, "`TOKEN` that gets one of the first ids; may be repeated")
	flags.IntVar(&config.MinCount, "min-count", config.MinCount, "`NUMBER` of times that a pair must occur to become a token")
	flags.IntVar(&config.MaxTokenLength, "max-token-length", config.MaxTokenLength, "longest token in `BYTES`")
	flags.IntVar(&config.MaxWords, "max-words", config.MaxWords, "`NUMBER` of different words that are counted; beyond it the rarest are dropped")
	for flag, values := range map[string][]string{"pattern": trainer.Patterns(), "format": corpus.Format("").Values()} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic("BUG: " + err.Error())
		}
	}
	return cmd
}

// addInputs counts the words of files.
func addInputs(cmd *cobra.Command, t *trainer.Trainer, inputs []string, format corpus.Format, textKey string) error {
	for _, input := range inputs {
		if input == "-" {
			if err := t.Add(cmd.Context(), cmd.InOrStdin()); err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			continue
		}
		c, err := corpus.Find(cmd.Context(), corpus.Settings{Key: "--input", Path: input, Format: format, TextKey: textKey})
		if err != nil {
			return err
		}
		err = c.Read(cmd.Context(), func(p corpus.Piece) error {
			t.AddText(p.Text)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func printTrained(prog cli.Program, file string, t *trainer.Trainer, r *trainer.Result, took time.Duration) error {
	_, err := fmt.Fprintf(prog.Out, "%s: %s from %s bytes of text with %s different words, in %s\n",
		file, plaintext.Quantity(r.Tokens, "token", "tokens"), plaintext.Count(uint64(t.Bytes())), plaintext.Count(uint64(r.Words)), took.Round(10*time.Millisecond))
	if err == nil && r.Forgotten > 0 {
		_, err = fmt.Fprintf(prog.Out, "%s occurrences of rare words were forgotten: see --max-words\n", plaintext.Count(uint64(r.Forgotten)))
	}
	if err == nil && r.Tokens < r.Wanted {
		_, err = fmt.Fprintf(prog.Out, "the text has no more pairs that occur often enough: --vocab-size asked for %d tokens\n", r.Wanted)
	}
	return err
}
