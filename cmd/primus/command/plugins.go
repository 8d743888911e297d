package command

import "github.com/spf13/cobra"

func newPluginsCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Look at sources of ops, those from outside of this program too",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(
		newPluginsListCommand(streams), newPluginsProbeCommand(), newPluginsServeCommand(),
	)
	return cmd
}
