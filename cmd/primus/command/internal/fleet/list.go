package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

func newFleetListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs of a fleet, with the policy that is in force in each",
		Long: `List the runs of a fleet. The ranks of a job are one run. The policy is the revision that
is in force there; decisions are equal if every op has the same implementation. A
process that has been silent for ten seconds is not listed; -o json lists processes.`,
		Example: `  primus fleet list --fleet 10.0.0.1:2379
  PRIMUS_FLEET=10.0.0.1:2379 primus fleet list -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				s, err := c.Snapshot(ctx)
				if err != nil {
					return err
				}
				return output.Print(prog.Out, s, func() error { return printFleet(prog, s) })
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

func printFleet(prog cli.Program, s fleet.Snapshot) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	for _, strange := range s.Strange {
		log.Warn(strange)
	}
	t := plaintext.NewTable(table.Row{"run", "rank", "host", "framework", "policy", "generation", "decisions", "metrics", "since"}, 5, 6)
	inForce, jobs := 0, fleet.Jobs(s.Members)
	for _, j := range jobs {
		same := true
		for _, m := range j {
			if m.Policy.Rejected != "" {
				log.Warn("policy of the fleet is not used", "run", m.ID, "revision", m.Policy.Seen, "reason", m.Policy.Rejected)
			}
			same = same && m.Policy.InForce == s.Policy.Revision
		}
		if same {
			inForce++
		}
		t.AppendRow(table.Row{
			j.Name(), j.Ranks(), j.Hosts(), j[0].Backend,
			j.Common(func(m fleet.Member) string { return revisionText(m.Policy.InForce) }),
			j.Common(func(m fleet.Member) string { return strconv.FormatUint(m.Generation, 10) }),
			j.Common(func(m fleet.Member) string { return m.Manifest }),
			plaintext.Dash(j[0].Metrics), j[0].Started.Local().Format(time.DateTime),
		})
	}
	verdict := "the fleet has no policy"
	if s.Policy.Revision != 0 {
		verdict = fmt.Sprintf("policy %d is in force in %d of %s", s.Policy.Revision, inForce, plaintext.Quantity(len(jobs), "run", "runs"))
	}
	if len(s.Members) > 0 {
		verdict = plaintext.Render(t) + "\n\n" + verdict
	} else {
		verdict = "no runs; " + verdict
	}
	_, err := fmt.Fprintln(prog.Out, verdict)
	return err
}

// revisionText returns the number of a policy of the fleet.
func revisionText(revision int64) string {
	if revision == 0 {
		return "none"
	}
	return strconv.FormatInt(revision, 10)
}
