// Package tokenizer is the commands that make tokenizers and try them.
package tokenizer

import (
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/spf13/cobra"
)

// New returns the command `primus tokenizer`.
func New(prog cli.Program) *cobra.Command {
	cmd := cli.Group("tokenizer", "Train tokenizers, encode and decode text",
		newTrainCommand(prog), newEncodeCommand(prog), newDecodeCommand(prog), newInspectCommand(prog),
	)
	cmd.Long = `Train tokenizers, encode and decode text.

A tokenizer is a tokenizer.json, a tokenizer.model of SentencePiece or a file of tiktoken,
or a folder with one of them, such as a model of Hugging Face or a checkpoint.`
	return cmd
}

// source is the flag --tokenizer.
type source struct{ path string }

func (s *source) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&s.path, "tokenizer", "t", "", "the tokenizer's `FILE` or folder")
}

// load reads the tokenizer.
func (s *source) load(cmd *cobra.Command) (*tokenizer.File, error) {
	if s.path == "" {
		return nil, cli.Usagef(cmd, "no tokenizer given: want --tokenizer FILE")
	}
	return tokenizer.Load(s.path)
}

// maxInput bounds a file that is encoded or decoded as a whole.
const maxInput = 4 << 30

// readInput returns the content of a file, or of standard input for -.
func readInput(cmd *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	data, err := durable.ReadRegular(file, maxInput)
	if err != nil {
		return nil, durable.Explain(err)
	}
	return data, nil
}
