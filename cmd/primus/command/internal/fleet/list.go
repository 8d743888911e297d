package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

// listPatience is how long a list waits for runs to say how they get on.
const listPatience = 2 * time.Second

// chosen says which runs are listed.
type chosen struct{ ended, all bool }

func newFleetListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	var which chosen
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs of a fleet: how they get on, and which policy is in force in each",
		Long: `List the runs of a fleet. The ranks of a job are one run. The policy is the revision that
is in force there; decisions are equal if every op has the same implementation.

The state is starting, training, stalled (the run hangs), diverged, ended with the exit
code of the process, or lost: silent for ten seconds without having ended. Why a run is
in such a state follows on the standard error. Runs that have ended within a day are
listed with --ended, lost ones always, until another run has taken their place. Runs
that do not answer within two seconds are listed with what they wrote last, which is
at most a minute old. -o json lists processes.`,
		Example: `  primus fleet list --fleet 10.0.0.1:2379
  primus fleet list --ended
  PRIMUS_FLEET=10.0.0.1:2379 primus fleet list -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if which.ended && which.all {
				return cli.Usagef(cmd, "given --ended and --all, want one of them")
			}
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				s, err := c.List(ctx, listPatience)
				if err != nil {
					return err
				}
				return output.Print(prog.Out, s, func() error { return printFleet(prog, s, which) })
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&which.ended, "ended", false, "list the runs that have ended or were lost within a day")
	cmd.Flags().BoolVar(&which.all, "all", false, "list these as well as those that are there")
	for _, name := range []string{"ended", "all"} {
		cli.WithoutVariable(cmd.Flags(), name)
	}
	return cmd
}

// of returns the runs that are listed.
func (w chosen) of(s fleet.Snapshot) []fleet.Job {
	switch {
	case w.all:
		return append(fleet.Jobs(s.Members), fleet.Jobs(s.Ended)...)
	case w.ended:
		return fleet.Jobs(s.Ended)
	}
	return append(fleet.Jobs(s.Members), fleet.Jobs(s.Lost())...)
}

func printFleet(prog cli.Program, s fleet.Snapshot, which chosen) error {
	log := slog.New(prog.Lines(prog.Err, slog.LevelWarn))
	for _, strange := range s.Strange {
		log.Warn(strange)
	}
	jobs := which.of(s)
	for _, j := range jobs {
		for _, m := range j {
			if m.Policy.Rejected != "" {
				log.Warn("policy of the fleet is not used", "run", m.ID, "revision", m.Policy.Seen, "reason", m.Policy.Rejected)
			}
			if m.Status.Detail != "" {
				log.Warn("run is "+m.Status.String(), "run", m.ID, "reason", m.Status.Detail)
			}
		}
	}
	text := verdict(s)
	if len(jobs) > 0 {
		text = plaintext.Render(prog.Out, tableOf(jobs)) + "\n\n" + text
	} else {
		text = "no runs; " + text
	}
	_, err := fmt.Fprintln(prog.Out, text)
	return err
}

// tableOf returns a row for each run.
func tableOf(jobs []fleet.Job) *plaintext.Table {
	t := plaintext.NewTable(table.Row{"run", "rank", "host", "state", "step", "loss", "seen", "policy", "decisions", "since"}, 5, 6, 8).
		Optional("since", "decisions", "rank", "host", "loss")
	for _, j := range jobs {
		t.AppendRow(table.Row{
			j.Name(), j.Ranks(), j.Hosts(), j.Common(func(m fleet.Member) string { return m.Status.String() }),
			stepOf(j), lossOf(j), seenOf(j, time.Now()),
			j.Common(func(m fleet.Member) string { return revisionText(m.Policy.InForce) }),
			plaintext.Dash(j.Common(func(m fleet.Member) string { return m.Manifest })),
			j[0].Started.Local().Format(time.DateTime),
		})
	}
	return t
}

// verdict says where the policy of the fleet is in force.
func verdict(s fleet.Snapshot) string {
	if s.Policy.Revision == 0 {
		return "the fleet has no policy"
	}
	inForce, jobs := 0, fleet.Jobs(s.Members)
	for _, j := range jobs {
		if !slices.ContainsFunc(j, func(m fleet.Member) bool { return m.Policy.InForce != s.Policy.Revision }) {
			inForce++
		}
	}
	return fmt.Sprintf("policy %d is in force in %d of %s", s.Policy.Revision, inForce, plaintext.Quantity(len(jobs), "run", "runs"))
}

// stepOf returns the last step that all ranks have done, and that of the run if it is known.
func stepOf(j fleet.Job) string {
	last := j[0].Status
	for _, m := range j {
		if m.Status.Step < last.Step {
			last = m.Status
		}
	}
	if last.Steps > 0 {
		return fmt.Sprintf("%d/%d", last.Step, last.Steps)
	}
	return strconv.Itoa(last.Step)
}

// lossOf returns the loss of the first rank, "-" if it is not known or not a number.
func lossOf(j fleet.Job) string {
	if loss := j[0].Status.Loss; loss != nil {
		return fmt.Sprintf("%.4f", *loss)
	}
	return "-"
}

// seenOf returns how long ago the rank was heard of that was silent for longest.
func seenOf(j fleet.Job, now time.Time) string {
	first := j[0].Status.Seen
	for _, m := range j {
		if m.Status.Seen.Before(first) {
			first = m.Status.Seen
		}
	}
	switch ago := now.Sub(first); {
	case first.IsZero():
		return "-"
	case ago < 3*time.Second:
		return "now"
	case ago < time.Minute:
		return fmt.Sprintf("%.0f s ago", ago.Seconds())
	case ago < time.Hour:
		return fmt.Sprintf("%.0f min ago", ago.Minutes())
	default:
		return fmt.Sprintf("%.0f h ago", ago.Hours())
	}
}

// revisionText returns the number of a policy of the fleet.
func revisionText(revision int64) string {
	if revision == 0 {
		return "none"
	}
	return strconv.FormatInt(revision, 10)
}
