// Package ops is the commands about ops and their impls: list, describe, explain, diff, verify,
// replay, bisect, tune, trace, resolve and coverage.
package ops

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// New returns the command `primus ops`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("ops", "Look at ops and their implementations",
		newOpsListCommand(prog), newOpsDescribeCommand(prog), newOpsExplainCommand(prog), newOpsResolveCommand(prog),
		newOpsDiffCommand(prog), newOpsVerifyCommand(prog), newOpsReplayCommand(prog), newOpsBisectCommand(prog), newOpsTuneCommand(prog), newOpsTraceCommand(prog), newOpsCoverageCommand(prog),
	)
}

// implRow is one impl of `primus ops list`.
type implRow struct {
	Op        string `json:"op"`
	Impl      string `json:"impl_id"` // "" for an op that is not dispatched here
	Kind      string `json:"kind"`
	Vendor    string `json:"vendor"`
	Priority  int    `json:"priority"`
	Available bool   `json:"available"`
	Rank      int    `json:"rank"`   // 1 is the impl that serves calls, 0 one that cannot be selected
	Reason    string `json:"reason"` // why it cannot be selected
}

func newOpsListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts dispatch.Options
	cmd := &cobra.Command{
		Use:   "list [OP…]",
		Short: "List the implementations of every op, best first",
		Long: `List the implementations of every op, or of the ops given, best first under the policy
of the environment (TE_FL_PREFER and the like). Rank 1 serves the calls, the others
follow when it declines or fails; an implementation without a rank cannot be selected,
and the reason says why. An op of TransformerEngine-FL that is not dispatched here has a
row without an implementation when it is given.`,
		Example: `  primus ops list
  primus ops list generic_gemm rmsnorm_fwd
  TE_FL_PREFER=vendor primus ops list -o json`,
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []implRow
			set := graph.Config{Policy: opts.Sources(nil), ProbeDevices: true}
			err := graph.WithManagerOf(cmd.Context(), prog, set, func(m *opmanager.Manager, _ *opregistry.Snapshot, _ device.Backend) (err error) {
				rows, err = listImpls(m, args)
				return err
			})
			if err != nil {
				return err
			}
			return output.Print(prog.Out, rows, func() error { return printImpls(prog, rows) })
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

// listImpls returns the impls of these ops, of all when none is given.
func listImpls(m *opmanager.Manager, only []string) ([]implRow, error) {
	all, err := explain(m, only, nil)
	if err != nil {
		return nil, err
	}
	rows := []implRow{}
	for _, answer := range all {
		e, ok := answer.(opmanager.Explanation)
		if !ok {
			o := answer.(foreign.Op)
			rows = append(rows, implRow{Op: o.Name, Reason: "not dispatched here: " + o.Instead})
			continue
		}
		for i, s := range e.Order {
			rows = append(rows, newImplRow(e.Op, s, i+1, ""))
		}
		for _, s := range e.Rejected {
			rows = append(rows, newImplRow(e.Op, s, 0, s.Reason))
		}
	}
	return rows, nil
}

func newImplRow(op string, s opmanager.ImplStatus, rank int, reason string) implRow {
	return implRow{
		Op: op, Impl: s.ID, Kind: s.Kind.String(), Vendor: s.Vendor, Priority: s.Priority,
		Available: s.Available, Rank: rank, Reason: reason,
	}
}

func printImpls(prog cli.Program, rows []implRow) error {
	t := plaintext.NewTable(table.Row{"op", "impl", "kind", "vendor", "priority", "available", "rank", "reason"}, 5, 7).
		Optional("vendor", "priority", "kind", "available")
	for _, r := range rows {
		rank, available := "-", "no"
		if r.Rank > 0 {
			rank = strconv.Itoa(r.Rank)
		}
		if r.Available {
			available = "yes"
		}
		t.AppendRow(table.Row{r.Op, plaintext.Dash(r.Impl), plaintext.Dash(r.Kind), plaintext.Dash(r.Vendor), r.Priority, available, rank, r.Reason})
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}
