package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/spf13/cobra"
)

func newFleetWatchCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print what happens in a fleet, one line per event, until interrupted",
		Long: `Print what happens in a fleet, one line per event, until interrupted: runs that join and
leave, changes of the policy, what each run makes of them, and other changes of dispatch
there, such as a quarantine. The state at the start comes first.

With -o json each line is an object.`,
		Example: `  primus fleet watch --fleet 10.0.0.1:2379
  primus fleet watch -o json | jq 'select(.event == "rejected")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				return c.Watch(ctx, func(e fleet.Event) error {
					if output == cli.OutputJSON {
						return json.NewEncoder(prog.Out).Encode(e)
					}
					return printEvent(prog.Out, e)
				})
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

func printEvent(out io.Writer, e fleet.Event) error {
	text := e.Reason
	switch m := cmp.Or(e.Member, &fleet.Member{}); e.Kind {
	case fleet.EventJoined:
		text = fmt.Sprintf("%s, rank %s on %s, policy %s, generation %d", m.ID, m.RankText(), m.Host, revisionText(m.Policy.InForce), m.Generation)
	case fleet.EventLeft:
		text = m.ID
	case fleet.EventPolicy:
		text = revisionText(e.Revision)
	case fleet.EventApplied:
		text = fmt.Sprintf("%s, policy %s, generation %d", m.ID, revisionText(m.Policy.InForce), m.Generation)
	case fleet.EventRejected:
		text = fmt.Sprintf("%s, policy %s: %s", m.ID, revisionText(m.Policy.Seen), e.Reason)
	case fleet.EventDispatch:
		text = fmt.Sprintf("%s, generation %d", m.ID, m.Generation)
	case fleet.EventFound:
		text = "etcd answers again"
	case fleet.EventLost:
	}
	_, err := fmt.Fprintf(out, "%s %-9s %s\n", e.Time.Local().Format(cli.TimeOfDay), e.Kind, text)
	return err
}
