// Package plugins is the commands about sources of ops: list, check, report, build and new.
package plugins

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/spf13/cobra"
)

// New returns the command `primus plugins`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("plugins", "List, write, check and build in ops from outside of this program",
		newPluginsListCommand(prog), newPluginsNewCommand(prog), newPluginsCheckCommand(prog), newPluginsReportCommand(prog), newPluginsBuildCommand(prog),
		newPluginsProbeCommand(prog), newPluginsServeCommand(), newPluginsCheckChildCommand(prog),
	)
}
