package command

import (
	"encoding/json"
	"fmt"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/spf13/cobra"
)

func newVersionCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  primus version -o json",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildinfo.Read()
			if output == cli.OutputJSON {
				return json.NewEncoder(prog.Out).Encode(v)
			}
			_, err := fmt.Fprintln(prog.Out, v)
			return err
		},
	}
	output.AddFlag(cmd)
	return cmd
}
