package command

import "github.com/spf13/cobra"

func newPluginsCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Look at, make, check and build in ops from outside of this program",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(
		newPluginsListCommand(streams), newPluginsNewCommand(streams), newPluginsCheckCommand(streams), newPluginsBuildCommand(streams),
		newPluginsProbeCommand(), newPluginsServeCommand(), newPluginsCheckChildCommand(),
	)
	return cmd
}
