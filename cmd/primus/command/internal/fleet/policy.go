package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
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
				_, err = fmt.Fprintf(prog.Out, "# revision %d\n%s", s.Policy.Revision, plaintext.Lines(s.Policy.Text, ""))
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
		Long: `Give all runs of a fleet the policy in a file, and wait until each of them has answered.
A file with faults is not sent. The policy stays for runs that begin later, until
another one replaces it; the file {} removes it.

In each run it comes between policy file and experiment: what the experiment, the
environment or flags of the run set stays as it is. A run rejects a policy that is not
possible with these, or that would leave an op that it uses without an implementation,
and keeps the previous one.

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
				return cli.Usagef(cmd, "--expect: given %d, want %s", opts.expect, cli.Wants(cmd.Flags().Lookup("expect")))
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

// applyToFleet replaces the policy and prints the answers of the runs.
func applyToFleet(ctx context.Context, prog cli.Program, c *fleet.Client, text string, opts applyOptions) error {
	result, err := c.Apply(ctx, text, fleet.ApplySettings{Expect: opts.expect, Patience: opts.patience, Rollback: opts.rollback})
	if err != nil {
		return err
	}
	if err := opts.output.Print(prog.Out, result, func() error { return printApplied(prog, result) }); err != nil {
		return err
	}
	return result.Fault()
}

// printApplied prints a table for the policy, and another one for the policy that was restored, if
// any.
func printApplied(prog cli.Program, a fleet.Applied) error {
	if err := printResults(prog, a.Revision, a.Runs); err != nil || a.Rollback == nil {
		return err
	}
	if _, err := fmt.Fprintln(prog.Out, "\ntaken back:"); err != nil {
		return err
	}
	return printResults(prog, a.Rollback.Revision, a.Rollback.Runs)
}

func printResults(prog cli.Program, revision int64, results []fleet.RunResult) error {
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
