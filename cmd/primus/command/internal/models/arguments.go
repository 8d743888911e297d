package models

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/spf13/cobra"
)

// onlyFlags is the argument validator of commands that take a model by the flag --checkpoint.
func onlyFlags(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Changed("checkpoint") {
		return cli.NoArgs(cmd, args)
	}
	return cli.Usagef(cmd, "unexpected argument %q; did you mean --checkpoint %s?", args[0], args[0])
}
