package fleet

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/fleet"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

func newFleetPolicyHistoryCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts service.FleetFlags
	var diff bool
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the changes of the policy of a fleet",
		Long: `List the last 100 changes of the policy of a fleet: the revision, when, by whom and why.
--diff also prints the lines that each of them removed and added.`,
		Example: `  primus fleet policy history --fleet 10.0.0.1:2379
  primus fleet policy history --diff`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return opts.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				all, err := c.History(ctx)
				if err != nil {
					return err
				}
				return output.Print(prog.Out, all, func() error { return printHistory(prog, all, diff) })
			})
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&diff, "diff", false, "print the lines that each change removed and added")
	cli.WithoutVariable(cmd.Flags(), "diff")
	return cmd
}

func printHistory(prog cli.Program, all []fleet.Change, diff bool) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(prog.Out, "no changes; primus fleet policy apply makes the first one")
		return err
	}
	if !diff {
		t := plaintext.NewTable(table.Row{"policy", "when", "who", "why"}, 1)
		for _, c := range all {
			t.AppendRow(table.Row{c.Revision, c.When.Local().Format(time.DateTime), plaintext.Dash(c.Who), plaintext.Dash(c.Why)})
		}
		_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
		return err
	}
	before := ""
	for _, c := range all {
		if _, err := fmt.Fprintf(prog.Out, "policy %d, %s, %s, %s\n%s", c.Revision, c.When.Local().Format(time.DateTime), plaintext.Dash(c.Who), plaintext.Dash(c.Why), lineDiff(before, c.Text)); err != nil {
			return err
		}
		before = c.Text
	}
	return nil
}

// lineDiff returns the lines that differ between two texts, by a longest common subsequence.
func lineDiff(from, to string) string {
	a, b := strings.Split(strings.TrimSuffix(from, "\n"), "\n"), strings.Split(strings.TrimSuffix(to, "\n"), "\n")
	common := make([][]int, len(a)+1) // of the ends of both
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	line := func(mark, text string) {
		if text != "" {
			fmt.Fprintf(&out, "  %s %s\n", mark, plaintext.Text(text))
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			line("-", a[i])
			i++
		default:
			line("+", b[j])
			j++
		}
	}
	return out.String()
}

func newFleetPolicyRollbackCommand(prog cli.Program) *cobra.Command {
	var opts applyOptions
	cmd := &cobra.Command{
		Use:   "rollback [REVISION]",
		Short: "Give a fleet the policy that it had before",
		Long: `Give a fleet the policy before the present one, or that of a REVISION in the history
(primus fleet policy history). It is applied as primus fleet policy apply does that,
and gets a new revision.`,
		Example: `  primus fleet policy rollback --fleet 10.0.0.1:2379
  primus fleet policy rollback 1207 --watch`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef(cmd, "given %d revisions, want at most one", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			settings, err := opts.settings(cmd, prog)
			if err != nil {
				return err
			}
			var revision int64
			if len(args) > 0 {
				if revision, err = strconv.ParseInt(args[0], 10, 64); err != nil || revision < 1 {
					return cli.Usagef(cmd, "given revision %q, want a number >= 1 of primus fleet policy history", args[0])
				}
			}
			return opts.fleet.WithFleet(cmd, func(ctx context.Context, c *fleet.Client) error {
				result, err := c.Rollback(ctx, revision, settings)
				return reportApplied(prog, result, err, opts)
			})
		},
	}
	opts.addFlags(cmd)
	return cmd
}
