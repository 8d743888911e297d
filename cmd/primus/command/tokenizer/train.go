package tokenizer

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/runtime/tokenizer/trainer"
	"github.com/spf13/cobra"
)

func newTrainCommand(prog cli.Program) *cobra.Command {
	config := trainer.Default()
	var inputs []string
	file := "tokenizer.json"
	cmd := &cobra.Command{
		Use:   "train --input FILE… [flags]",
		Short: "Train a byte-level BPE tokenizer on text",
		Long: `Train a byte-level BPE tokenizer on text and write it as a tokenizer.json, which the
libraries of Hugging Face read, too. Equal texts give equal files. Memory grows with the
number of different words, which --max-words limits.`,
		Example: `  primus tokenizer train --input corpus.txt --vocab-size 8192 -o tokenizer.json
  primus tokenizer train --input a.txt --input b.txt --pattern gpt2 --special-token "<|end|>"
  zcat corpus.gz | primus tokenizer train --input -`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(inputs) == 0 {
				return cli.Usagef(cmd, "no text given: want --input FILE")
			}
			t, err := trainer.New(config)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			begin := time.Now()
			if err := addInputs(cmd, t, inputs); err != nil {
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
	flags.StringArrayVar(&inputs, "input", nil, "learn from `FILE`, or from standard input for -; may be repeated")
	flags.StringVarP(&file, "output", "o", file, "write the tokenizer to `FILE`")
	flags.IntVar(&config.VocabSize, "vocab-size", config.VocabSize, "`NUMBER` of tokens, special ones and the 256 bytes among them")
	flags.StringVar(&config.Pattern, "pattern", config.Pattern, "`NAME` of the expression that cuts text into words: "+strings.Join(trainer.Patterns(), ", "))
	flags.StringArrayVar(&config.SpecialTokens, "special-token", config.SpecialTokens, "`TOKEN` that gets one of the first ids; may be repeated")
	flags.IntVar(&config.MinCount, "min-count", config.MinCount, "`NUMBER` of times that a pair must occur to become a token")
	flags.IntVar(&config.MaxTokenLength, "max-token-length", config.MaxTokenLength, "longest token in `BYTES`")
	flags.IntVar(&config.MaxWords, "max-words", config.MaxWords, "`NUMBER` of different words that are counted; beyond it the rarest are forgotten")
	if err := cmd.RegisterFlagCompletionFunc("pattern", cobra.FixedCompletions(trainer.Patterns(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

// addInputs counts the words of files.
func addInputs(cmd *cobra.Command, t *trainer.Trainer, inputs []string) error {
	for _, input := range inputs {
		if input == "-" {
			if err := t.Add(cmd.Context(), cmd.InOrStdin()); err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			continue
		}
		f, err := durable.OpenRegular(input)
		if err != nil {
			return fmt.Errorf("--input: %w", durable.Explain(err))
		}
		err = t.Add(cmd.Context(), f)
		f.Close()
		if err != nil {
			return fmt.Errorf("--input %s: %w", input, durable.Explain(err))
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
