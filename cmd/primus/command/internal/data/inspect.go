package data

import (
	"fmt"
	"math"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/native/data/indexed"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/spf13/cobra"
)

// inspection is the JSON of primus data inspect.
type inspection struct {
	Prefix    string  `json:"prefix"`
	DType     string  `json:"dtype"`
	Documents int     `json:"documents"`
	Sequences int     `json:"sequences"`
	Tokens    int     `json:"tokens"`
	Shortest  int     `json:"shortest_sequence"`
	Mean      float64 `json:"mean_sequence"`
	Longest   int     `json:"longest_sequence"`
	LargestID int32   `json:"largest_id"`
	Unknown   int     `json:"unknown_tokens"` // that the tokenizer does not have
	Text      string  `json:"text,omitempty"`
}

func newInspectCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var tokenizerPath string
	show := -1
	cmd := &cobra.Command{
		Use:   "inspect PREFIX",
		Short: "Check a dataset and describe it",
		Long: `Check a dataset and describe it. The index is compared with the tokens, and with
--tokenizer the tokens with the vocabulary; a mismatch is an error.`,
		Example: `  primus data inspect data/corpus
  primus data inspect data/corpus --tokenizer tokenizer.json --show 0`,
		Args: cli.Arguments(1, "datasets", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if show >= 0 && tokenizerPath == "" {
				return cli.Usagef(cmd, "--show needs --tokenizer, to decode the sequence")
			}
			var tok tokenizer.Tokenizer
			if tokenizerPath != "" {
				var err error
				if tok, err = loadTokenizer(tokenizerPath); err != nil {
					return err
				}
			}
			prefix, found := indexed.Find(args[0])
			if !found {
				bin, idx := indexed.Paths(prefix)
				return fmt.Errorf("no dataset %s: want the PREFIX of two files, %s and %s", prefix, bin, idx)
			}
			result, err := inspect(prefix, tok, show)
			if err != nil {
				return err
			}
			if err := output.Print(prog.Out, result, func() error { return result.print(prog, tok != nil) }); err != nil {
				return err
			}
			if result.Unknown > 0 {
				return fmt.Errorf("%s has %s that the tokenizer does not have, up to the id %d: it was made with another one", prefix, plaintext.Quantity(result.Unknown, "token", "tokens"), result.LargestID)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&tokenizerPath, "tokenizer", "t", "", "compare with the tokenizer in `FILE` or a folder, or "+bytesName)
	cmd.Flags().IntVar(&show, "show", show, "show the text of sequence `NUMBER`, from 0")
	output.AddFlag(cmd)
	return cmd
}

// inspect reads a dataset whole.
func inspect(prefix string, tok tokenizer.Tokenizer, show int) (r inspection, err error) {
	d, err := indexed.Open(prefix)
	if err != nil {
		return r, err
	}
	defer func() {
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
	}()
	if show >= d.Sequences() {
		return r, fmt.Errorf("--show: given %d, and %s has %s, from 0", show, prefix, plaintext.Quantity(d.Sequences(), "sequence", "sequences"))
	}
	r = inspection{Prefix: prefix, DType: d.DType().String(), Documents: d.Documents(), Sequences: d.Sequences(), Tokens: d.Tokens(), Shortest: math.MaxInt}
	vocab := math.MaxInt32
	if tok != nil {
		vocab = tok.VocabSize()
	}
	var ids []int32
	for i := range d.Sequences() {
		if ids, err = d.Read(ids[:0], i); err != nil {
			return r, err
		}
		r.Shortest, r.Longest = min(r.Shortest, len(ids)), max(r.Longest, len(ids))
		for _, id := range ids {
			r.LargestID = max(r.LargestID, id)
			if id < 0 || int(id) >= vocab {
				r.Unknown++
			}
		}
		if i == show {
			r.Text = string(tok.Decode(nil, ids))
		}
	}
	if r.Sequences == 0 {
		r.Shortest = 0
	} else {
		r.Mean = float64(r.Tokens) / float64(r.Sequences)
	}
	return r, nil
}

func (r *inspection) print(prog cli.Program, compared bool) error {
	t := plaintext.NewTable(table.Row{"what", "value"})
	t.AppendRows([]table.Row{
		{"prefix", plaintext.Printable(r.Prefix)}, {"type", r.DType}, {"documents", r.Documents}, {"sequences", r.Sequences}, {"tokens", r.Tokens},
		{"tokens of a sequence", fmt.Sprintf("%d to %d, %.1f in the mean", r.Shortest, r.Longest, r.Mean)}, {"largest id", r.LargestID},
	})
	if compared {
		t.AppendRow(table.Row{"unknown tokens", r.Unknown})
	}
	if _, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t)); err != nil || r.Text == "" {
		return err
	}
	_, err := fmt.Fprintf(prog.Out, "\n%s\n", plaintext.Indent(plaintext.Printable(r.Text)))
	return err
}
