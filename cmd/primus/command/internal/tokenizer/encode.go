package tokenizer

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/spf13/cobra"
)

// encoded is the JSON of primus tokenizer encode.
type encoded struct {
	IDs    []int32  `json:"ids"`
	Tokens []string `json:"tokens"`
}

func newEncodeCommand(prog cli.Program) *cobra.Command {
	var s source
	var output cli.OutputWithText
	var prompt bool
	file := ""
	cmd := &cobra.Command{
		Use:   "encode [TEXT…]",
		Short: "Print the ids of a text",
		Long: `Print the ids of a text: of the arguments with a space between them, of a file, or of
standard input if neither is given. With -o table each id has a line with its token, as
the tokenizer's file writes it, and its text.`,
		Example: `  primus tokenizer encode -t tokenizer.json "Hello, world"
  primus tokenizer encode -t models/llama --prompt -o table "Hello, world"
  primus tokenizer encode -t tokenizer.json --file corpus.txt > ids.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tok, err := s.load(cmd)
			if err != nil {
				return err
			}
			text, err := givenText(cmd, args, file)
			if err != nil {
				return err
			}
			encode := tok.Encode
			if prompt {
				encode = tok.EncodePrompt
			}
			return printIDs(prog, output.OutputFormat, tok, encode([]int32{}, text))
		},
	}
	s.addFlag(cmd)
	output.AddFlag(cmd)
	output.OutputFormat = cli.OutputText
	cmd.Flags().StringVar(&file, "file", "", "encode the text of `FILE`, or of standard input for -")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "add the ids that the tokenizer puts around a prompt, such as BOS")
	return cmd
}

// givenText returns the text of a command.
func givenText(cmd *cobra.Command, args []string, file string) ([]byte, error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, cli.Usagef(cmd, "given a text and --file %s, want one of them", file)
	case len(args) > 0:
		return []byte(strings.Join(args, " ")), nil
	case file == "":
		file = "-"
	}
	return readInput(cmd, file)
}

func printIDs(prog cli.Program, format cli.OutputFormat, tok *tokenizer.File, ids []int32) error {
	switch format {
	case cli.OutputJSON:
		result := encoded{IDs: ids, Tokens: make([]string, len(ids))}
		for i, id := range ids {
			result.Tokens[i], _ = tok.Token(id)
		}
		return cli.WriteJSON(prog.Out, result)
	case cli.OutputTable:
		t := plaintext.NewTable(table.Row{"id", "token", "text"}, 1)
		for _, id := range ids {
			token, _ := tok.Token(id)
			t.AppendRow(table.Row{id, token, strconv.Quote(string(tok.Piece(id)))})
		}
		_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
		return err
	}
	w := bufio.NewWriter(prog.Out)
	for i, id := range ids {
		if i > 0 {
			w.WriteByte(' ')
		}
		w.WriteString(strconv.Itoa(int(id)))
	}
	w.WriteByte('\n')
	return w.Flush()
}

func newDecodeCommand(prog cli.Program) *cobra.Command {
	var s source
	var plain bool
	cmd := &cobra.Command{
		Use:   "decode [ID…]",
		Short: "Print the text of ids",
		Long: `Print the text of ids: of the arguments, or of standard input if there are none. Ids are
numbers with spaces or commas between them. Nothing is added to the text, not even a
newline.`,
		Example: `  primus tokenizer decode -t tokenizer.json 39 2271 11 995
  primus tokenizer encode -t tokenizer.json "Hello" | primus tokenizer decode -t tokenizer.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			tok, err := s.load(cmd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				text, err := readInput(cmd, "-")
				if err != nil {
					return err
				}
				args = []string{string(text)}
			}
			ids, err := parseIDs(cmd, tok, args)
			if err != nil {
				return err
			}
			decode := tok.Decode
			if plain {
				decode = tok.DecodeText
			}
			_, err = prog.Out.Write(decode(nil, ids))
			return err
		},
	}
	s.addFlag(cmd)
	cmd.Flags().BoolVar(&plain, "skip-special", false, "leave special tokens out")
	return cmd
}

// parseIDs returns the ids that are written in some texts.
func parseIDs(cmd *cobra.Command, tok *tokenizer.File, texts []string) ([]int32, error) {
	var ids []int32
	for _, text := range texts {
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,[]\t\r\n", r) }) {
			id, err := strconv.ParseInt(word, 10, 32)
			if err != nil || id < 0 || int(id) >= tok.VocabSize() {
				return nil, cli.Usagef(cmd, "given the id %q, want a number from 0 to %d", word, tok.VocabSize()-1)
			}
			ids = append(ids, int32(id))
		}
	}
	return ids, nil
}
