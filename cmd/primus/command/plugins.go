package command

import "github.com/spf13/cobra"

func newPluginsCommand(prog program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "Look at, make, check and build in ops from outside of this program",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(
		newPluginsListCommand(prog), newPluginsNewCommand(prog), newPluginsCheckCommand(prog), newPluginsBuildCommand(prog),
		newPluginsProbeCommand(), newPluginsServeCommand(), newPluginsCheckChildCommand(),
	)
	return cmd
}
