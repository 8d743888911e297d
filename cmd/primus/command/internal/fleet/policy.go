package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/spf13/cobra"
)

func newFleetPolicyCommand(prog cli.Program) *cobra.Command {
	return cli.Group("policy", "Show or replace the policy of a fleet",
		newFleetPolicyApplyCommand(prog), newFleetPolicyShowCommand(prog), newFleetPolicyHistoryCommand(prog), newFleetPolicyRollbackCommand(prog),
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
	watch    bool
	slowdown string
	trial    time.Duration
}

// addFlags adds the flags of commands that replace the policy.
func (o *applyOptions) addFlags(cmd *cobra.Command) {
	o.output.AddFlag(cmd)
	o.fleet.AddFlags(cmd.Flags())
	cmd.Flags().Int64Var(&o.expect, "expect", -1, "replace only the policy of this `REVISION`, 0 for none")
	cmd.Flags().Lookup("expect").DefValue = "" // the default is any revision
	cmd.Flags().DurationVar(&o.patience, "patience", fleetPatience, "wait this long for the runs, a `TIME` such as 10s")
	cmd.Flags().BoolVar(&o.rollback, "rollback", true, "take the policy back when a run does not have it in force")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "print each answer of a run as it comes")
	cmd.Flags().StringVar(&o.slowdown, "max-slowdown", "", "take the policy back when steps of a run become longer, or fallbacks more, by a larger `PART`, such as 20%")
	cmd.Flags().DurationVar(&o.trial, "trial", 2*time.Minute, "with --max-slowdown: how long runs may take for the steps that show it, a `TIME` such as 10m")
	for _, name := range []string{"watch", "max-slowdown", "trial"} {
		cli.WithoutVariable(cmd.Flags(), name)
	}
}

// settings checks the flags.
func (o *applyOptions) settings(cmd *cobra.Command, prog cli.Program) (fleet.ApplySettings, error) {
	if cmd.Flags().Changed("expect") && o.expect < 0 {
		return fleet.ApplySettings{}, cli.Usagef(cmd, "--expect: given %d, want %s", o.expect, cli.Wants(cmd.Flags().Lookup("expect")))
	}
	s := fleet.ApplySettings{Expect: o.expect, Patience: o.patience, Keep: !o.rollback, Who: whoami()}
	if o.slowdown != "" {
		part, err := parsePart(o.slowdown)
		if err != nil {
			return s, cli.Usagef(cmd, "--max-slowdown: %w", err)
		}
		s.MaxSlowdown, s.Trial = part, o.trial
	} else if cmd.Flags().Changed("trial") {
		return s, cli.Usagef(cmd, "--trial without --max-slowdown: want --max-slowdown there")
	}
	if o.watch {
		s.Notify = func(r fleet.RunResult) {
			fmt.Fprintf(prog.Err, "%s %-9s %s, rank %s on %s%s\n", time.Now().Format(cli.TimeOfDay), r.Result, r.Run, r.Rank, r.Host, because(r.Reason))
		}
	}
	return s, nil
}

// parsePart reads a part such as 20%, more than 0.
func parsePart(text string) (float64, error) {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !percent || !(n > 0) || n > 1e6 {
		return 0, fmt.Errorf("given %q, want more than nothing in percent, such as 20%%", text)
	}
	return n / 100, nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// whoami returns USER@HOST, as far as they are known.
func whoami() string {
	name := "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return name + "@" + host
}

func newFleetPolicyApplyCommand(prog cli.Program) *cobra.Command {
	var opts applyOptions
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Give all runs of a fleet the policy in a file",
		Long: `Give all runs of a fleet the policy in a file. First all runs are asked whether they could
use it: if one of them could not or does not answer, nothing changes. Then the policy
is replaced, and the command waits until each run has it in force. A file with faults
is not sent. The policy stays for runs that begin later, until another one replaces it;
the file {} removes it.

In each run it comes between policy file and experiment: what the experiment, the
environment or flags of the run set stays as it is. A run refuses a policy that is not
possible with these, or that would leave an op that it uses without an implementation,
and keeps the previous one.

--expect replaces only the policy of that revision (fleet list shows it), so that two
people do not undo each other's change.

When a run does not have the policy in force after all, or does not answer in time, the
fleet gets the previous policy again, {} where it had none; --rollback=false leaves the
new one. So it does with --max-slowdown when a run becomes slower: the policy is taken
back if the median of five steps under it is longer than before by a larger part, if the
share of calls that fall back has grown by a larger part (and by one call in a thousand),
or if the run stalls, diverges or fails, or has not done five steps in --trial. The exit
code is 1 in these cases.`,
		Example: `  primus fleet policy apply policy.yaml --fleet 10.0.0.1:2379
  primus fleet policy apply policy.yaml --expect 1207 --watch
  primus fleet policy apply policy.yaml --max-slowdown 20%`,
		Args: cli.Arguments(1, "policy files", "one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := opts.settings(cmd, prog)
			if err != nil {
				return err
			}
			text, err := readPolicy(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return opts.fleet.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				result, err := c.Apply(ctx, text, settings)
				return reportApplied(prog, result, err, opts)
			})
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	opts.addFlags(cmd)
	return cmd
}

// readPolicy returns the content of a policy file that has no faults.
func readPolicy(ctx context.Context, file string) (string, error) {
	if _, err := policyfile.Read(ctx, file); err != nil {
		return "", err
	}
	text, err := document.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the policy: %w", err)
	}
	_, err = policyfile.Parse(ctx, file, text) // the file may have changed
	return string(text), err
}

// reportApplied prints the answers of the runs.
func reportApplied(prog cli.Program, result fleet.Applied, err error, opts applyOptions) error {
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
	text, column := fmt.Sprintf("policy %d is set; no run is registered", revision), fmt.Sprintf("policy %d", revision)
	if revision == 0 {
		column = "new policy"
	}
	if len(results) > 0 {
		t := plaintext.NewTable(table.Row{"run", "rank", "host", column, "generation", "reason"}, 5)
		for _, r := range results {
			t.AppendRow(table.Row{r.Run, r.Rank, r.Host, r.Result, r.Generation, r.Reason})
		}
		text = plaintext.Render(prog.Out, t)
	}
	_, err := fmt.Fprintln(prog.Out, text)
	return err
}
