package tokenizer

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/spf13/cobra"
)

// inspection is the JSON of primus tokenizer inspect.
type inspection struct {
	Name         string    `json:"name"`
	Format       string    `json:"format"`
	Files        []string  `json:"files"`
	VocabSize    int       `json:"vocab_size"`
	BOS          *special  `json:"bos"`
	EOS          *special  `json:"eos"`
	PAD          *special  `json:"pad"`
	Special      []special `json:"special_tokens"`
	LongestToken string    `json:"longest_token"`
	ChatTemplate string    `json:"chat_template"`
}

// special is a token and its id.
type special struct {
	ID    int32  `json:"id"`
	Token string `json:"token"`
}

func newInspectCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "inspect TOKENIZER",
		Short: "Describe a tokenizer: its size, its special tokens, its files",
		Example: `  primus tokenizer inspect tokenizer.json
  primus tokenizer inspect models/llama -o json`,
		Args: cli.Arguments(1, "tokenizers", "one"),
		RunE: func(_ *cobra.Command, args []string) error {
			tok, err := tokenizer.Load(args[0])
			if err != nil {
				return err
			}
			result := inspect(tok)
			return output.Print(prog.Out, result, func() error { return printInspection(prog, result) })
		},
	}
	output.AddFlag(cmd)
	return cmd
}

// inspect describes a tokenizer.
func inspect(tok *tokenizer.File) inspection {
	named := func(id int32) *special {
		if id < 0 {
			return nil
		}
		token, _ := tok.Token(id)
		return &special{ID: id, Token: token}
	}
	result := inspection{
		Name: tok.Name(), Format: tok.Format(), VocabSize: tok.VocabSize(), ChatTemplate: tok.ChatTemplate(),
		BOS: named(tok.BOS()), EOS: named(tok.EOS()), PAD: named(tok.PAD()), Special: []special{},
	}
	for _, raw := range tok.Raw() {
		result.Files = append(result.Files, raw.Name)
	}
	longest := 0
	for id := range int32(tok.VocabSize()) {
		token, isSpecial := tok.Token(id)
		if isSpecial {
			result.Special = append(result.Special, special{ID: id, Token: token})
		} else if n := len(tok.Piece(id)); n > longest {
			result.LongestToken, longest = string(tok.Piece(id)), n
		}
	}
	return result
}

// maxListed is how many special tokens the table has; models reserve hundreds.
const maxListed = 20

func printInspection(prog cli.Program, r inspection) error {
	t := plaintext.NewTable(table.Row{"what", "value"})
	t.AppendRow(table.Row{"name", r.Name})
	t.AppendRow(table.Row{"format", r.Format})
	for _, file := range r.Files {
		t.AppendRow(table.Row{"file", file})
	}
	t.AppendRow(table.Row{"tokens", r.VocabSize})
	t.AppendRow(table.Row{"longest token", strconv.Quote(r.LongestToken)})
	for _, s := range []struct {
		name  string
		token *special
	}{{"bos", r.BOS}, {"eos", r.EOS}, {"pad", r.PAD}} {
		text := "-"
		if s.token != nil {
			text = fmt.Sprintf("%d %s", s.token.ID, s.token.Token)
		}
		t.AppendRow(table.Row{s.name, text})
	}
	for _, s := range r.Special[:min(len(r.Special), maxListed)] {
		t.AppendRow(table.Row{"special token", fmt.Sprintf("%d %s", s.ID, s.Token)})
	}
	if more := len(r.Special) - maxListed; more > 0 {
		t.AppendRow(table.Row{"special token", plaintext.Quantity(more, "more", "more")})
	}
	template := "no"
	if r.ChatTemplate != "" {
		template = plaintext.Quantity(len(r.ChatTemplate), "byte", "bytes")
	}
	t.AppendRow(table.Row{"chat template", template})
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}
