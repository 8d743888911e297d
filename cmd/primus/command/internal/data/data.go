// Package data is the commands that make datasets of tokens and describe them.
package data

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/tokenizer"
	"github.com/spf13/cobra"
)

// New returns the command `primus data`.
func New(prog cli.Program) *cobra.Command {
	cmd := cli.Group("data", "Make datasets of tokens, and describe them", newTokenizeCommand(prog), newInspectCommand(prog))
	cmd.AddCommand(newDiffusionCommands(prog)...)
	cmd.Long = `Make datasets of tokens, and describe them.

A dataset has the format of Megatron: PREFIX.bin has the tokens of all documents, and
PREFIX.idx says where each begins. train_data_path takes it.`
	return cmd
}

// bytesName is the value of --tokenizer for bytes.
const bytesName = "byte"

// loadTokenizer reads the tokenizer that --tokenizer names.
func loadTokenizer(path string) (tokenizer.Tokenizer, error) {
	if path == bytesName {
		return tokenizer.Byte{}, nil
	}
	return tokenizer.Load(path)
}
