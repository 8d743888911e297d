// Package fleet is the commands for all runs of a fleet.
package fleet

import (
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/spf13/cobra"
)

// New returns the command `primus fleet`.
func New(prog cli.Program) *cobra.Command {
	cmd := cli.Group("fleet", "Look at all runs of a fleet, and change the policy of all of them",
		newFleetListCommand(prog), newFleetExplainCommand(prog), newFleetPolicyCommand(prog),
		newFleetWatchCommand(prog), newFleetTopCommand(prog), newFleetLogsCommand(prog), newFleetSDCommand(prog),
	)
	cmd.Long = `Look at all runs of a fleet, and change the policy of all of them.

A fleet is the set of runs with the same --fleet and --fleet-prefix: endpoints of etcd,
and the prefix of the keys there. Both may be given as PRIMUS_FLEET and
PRIMUS_FLEET_PREFIX, and so may --fleet-ca, --fleet-cert and --fleet-key.`
	return cmd
}
