package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/fleet"
	"github.com/primus-fl/primus/internal/escape"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
)

func newFleetPolicyCommand(prog cli.Program) *cobra.Command {
	return cli.Group("policy", "Show or replace the policy of a fleet",
		newFleetPolicyApplyCommand(prog), newFleetPolicyShowCommand(prog),
	)
}

func newFleetPolicyShowCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the policy of a fleet, with its revision in a comment",
		Example: `  primus fleet policy show --fleet 10.0.0.1:2379
  primus fleet policy show > policy.yaml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				s, err := c.Snapshot(ctx)
				switch {
				case err != nil:
					return err
				case output == cli.OutputJSON:
					return cli.WriteJSON(prog.Out, s.Policy)
				case s.Policy.Revision == 0:
					return errors.New("the fleet has no policy; primus fleet policy apply gives it one")
				}
				_, err = fmt.Fprintf(prog.Out, "# revision %d\n%s", s.Policy.Revision, escape.Lines(s.Policy.Text, ""))
				return err
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

// applyOptions are the flags of `primus fleet policy apply`.
type applyOptions struct {
	fleet    service.FleetFlags
	output   cli.OutputFormat
	expect   int64
	patience time.Duration
	rollback bool
}

func newFleetPolicyApplyCommand(prog cli.Program) *cobra.Command {
	var opts applyOptions
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Give all runs of a fleet the policy in a file",
		Long: `Give all runs of a fleet the policy in a file, and wait until each of them has said what
became of it. A file with faults is not sent. The policy stays for runs that begin
later, until another one replaces it; the file {} removes it.

In each run it comes between policy file and experiment: what the experiment, the
environment or flags of the run set stays as it is. A run rejects a policy that is not
possible with these, or that would leave an op that it uses without an implementation,
and keeps the one before.

--expect replaces only the policy of that revision (fleet list shows it), so that two
people do not undo each other's change.

The exit code is 1 when a run rejects the policy or does not answer in time; the
policy is replaced nevertheless. With --rollback the fleet gets the previous policy
again in that case, {} where it had none.`,
		Example: `  primus fleet policy apply policy.yaml --fleet 10.0.0.1:2379
  primus fleet policy apply policy.yaml --expect 1207 --rollback`,
		Args: cli.Arguments(1, "policy files", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("expect") && opts.expect < 0 {
				return cli.Usagef(cmd, "--expect: got %d, want %s", opts.expect, cli.Wants(cmd.Flags().Lookup("expect")))
			}
			text, err := readPolicy(args[0])
			if err != nil {
				return err
			}
			return opts.fleet.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				return applyToFleet(ctx, prog, c, text, opts)
			})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	opts.output.AddFlag(cmd)
	opts.fleet.AddFlags(cmd.Flags())
	cmd.Flags().Int64Var(&opts.expect, "expect", -1, "replace only the policy of this `REVISION`, 0 for none")
	cmd.Flags().Lookup("expect").DefValue = "" // the default is any revision
	cmd.Flags().DurationVar(&opts.patience, "patience", fleetPatience, "wait this long for the runs, a `TIME` such as 10s")
	cmd.Flags().BoolVar(&opts.rollback, "rollback", false, "take the policy back when a run rejects it or does not answer")
	return cmd
}

// readPolicy returns the content of a policy file that has no faults.
func readPolicy(file string) (string, error) {
	if _, err := policyfile.Read(file); err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the policy: %w", err)
	}
	_, err = policyfile.Parse(file, text) // the file may have changed
	return string(text), err
}

// applied is the result of `primus fleet policy apply`.
type applied struct {
	Revision int64         `json:"revision"`
	Runs     []applyResult `json:"runs"`
	Rollback *applied      `json:"rollback,omitempty"` // of the policy before, where it was put back

	missing int // runs that do not have the policy in force
}

// applyToFleet replaces the policy and prints the answers of the runs.
func applyToFleet(ctx context.Context, prog cli.Program, c *fleet.Client, text string, opts applyOptions) error {
	var before fleet.Policy
	if opts.rollback {
		s, err := c.Snapshot(ctx)
		if err != nil {
			return err
		}
		if before = s.Policy; opts.expect < 0 {
			opts.expect = before.Revision // restore the previous policy only if nobody else has replaced this one
		}
	}
	result, err := setPolicy(ctx, c, text, opts.expect, opts.patience)
	if err != nil {
		return err
	}
	var back error
	if opts.rollback && result.missing > 0 {
		var r applied
		if r, back = setPolicy(ctx, c, cmp.Or(before.Text, "{}\n"), result.Revision, opts.patience); back == nil {
			result.Rollback = &r
		}
	}
	err = opts.output.Print(prog.Out, result, func() error { return printApplied(prog, result) })
	if err != nil || result.missing == 0 {
		return err
	}
	fault := fmt.Errorf("policy %d is not in force in %d of %s", result.Revision, result.missing, countRuns(len(result.Runs)))
	switch {
	case back != nil:
		return errors.Join(fault, fmt.Errorf("roll back: %w", back))
	case result.Rollback == nil:
		return fmt.Errorf("%w; it stays the policy of the fleet: apply another one, or use --rollback", fault)
	case result.Rollback.missing > 0:
		return fmt.Errorf("%w; the previous policy is now policy %d and not in force in %d of %s", fault, result.Rollback.Revision, result.Rollback.missing, countRuns(len(result.Rollback.Runs)))
	}
	return fmt.Errorf("%w; the previous policy is in force again as policy %d", fault, result.Rollback.Revision)
}

// setPolicy replaces the policy of a fleet and waits for the runs.
func setPolicy(ctx context.Context, c *fleet.Client, text string, expect int64, patience time.Duration) (applied, error) {
	revision, err := c.SetPolicy(ctx, text, expect)
	if err != nil {
		return applied{}, err
	}
	members, err := awaitReports(ctx, c, revision, patience)
	if err != nil {
		return applied{}, fmt.Errorf("the policy is replaced, revision %d, but what runs make of it is not known: %w", revision, err)
	}
	results, missing := applyResults(revision, members)
	return applied{Revision: revision, Runs: results, missing: missing}, nil
}

// awaitReports returns the members when all have seen this policy or a later one, or when patience
// is over.
func awaitReports(ctx context.Context, c *fleet.Client, revision int64, patience time.Duration) ([]fleet.Member, error) {
	const between = 200 * time.Millisecond
	for over := time.Now().Add(patience); ; {
		s, err := c.Snapshot(ctx)
		if err != nil {
			return nil, err
		}
		waiting := false
		for _, m := range s.Members {
			waiting = waiting || m.Policy.Seen < revision
		}
		if !waiting || time.Now().After(over) {
			return s.Members, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(between):
		}
	}
}

// applyResult is the result of a policy in a run.
type applyResult struct {
	Run        string `json:"run"`
	Rank       string `json:"rank"`
	Host       string `json:"host"`
	Result     string `json:"result"` // in force, rejected, replaced or no answer
	Generation uint64 `json:"generation"`
	Reason     string `json:"reason,omitempty"`
}

// applyResults returns the result of each member, and how many do not have the policy in force.
func applyResults(revision int64, members []fleet.Member) (results []applyResult, missing int) {
	results = []applyResult{}
	for _, m := range members {
		r := applyResult{Run: m.ID, Rank: rankText(m), Host: m.Host, Generation: m.Generation}
		switch {
		case m.Policy.Seen < revision:
			r.Result = "no answer"
		case m.Policy.Seen > revision:
			r.Result, r.Reason = "replaced", "by policy "+revisionText(m.Policy.Seen)
		case m.Policy.Rejected != "":
			r.Result, r.Reason = "rejected", m.Policy.Rejected
		default:
			r.Result = "in force"
		}
		if r.Result != "in force" {
			missing++
		}
		results = append(results, r)
	}
	return results, missing
}

// printApplied prints a table for the policy, and another one for the policy that was restored, if
// any.
func printApplied(prog cli.Program, a applied) error {
	if err := printResults(prog, a.Revision, a.Runs); err != nil || a.Rollback == nil {
		return err
	}
	if _, err := fmt.Fprintln(prog.Out, "\ntaken back:"); err != nil {
		return err
	}
	return printResults(prog, a.Rollback.Revision, a.Rollback.Runs)
}

func printResults(prog cli.Program, revision int64, results []applyResult) error {
	text := fmt.Sprintf("policy %d is set; no run is registered", revision)
	if len(results) > 0 {
		t := plaintext.NewTable(table.Row{"run", "rank", "host", fmt.Sprintf("policy %d", revision), "generation", "reason"}, 5)
		for _, r := range results {
			t.AppendRow(table.Row{r.Run, r.Rank, r.Host, r.Result, r.Generation, r.Reason})
		}
		text = plaintext.Render(t)
	}
	_, err := fmt.Fprintln(prog.Out, text)
	return err
}
