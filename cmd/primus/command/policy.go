package command

import "github.com/spf13/cobra"

func newPolicyCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Look at policies, which choose between implementations",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newPolicyCheckCommand(streams))
	cmd.AddCommand(newPolicySchemaCommand(streams))
	return cmd
}
