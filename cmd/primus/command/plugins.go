package command

import "github.com/spf13/cobra"

func newPluginsCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Make, check and build in ops from outside of this program",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newPluginsBuildCommand(streams), newPluginsCheckCommand(streams), newPluginsNewCommand(streams), newPluginsCheckChildCommand())
	return cmd
}
