package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

func newOpsCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ops",
		Short: "Look at ops and their implementations",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOpsListCommand(streams))
	return cmd
}

// implRow is one impl of `primus ops list`.
type implRow struct {
	Op        string          `json:"op"`
	Impl      string          `json:"impl_id"`
	Kind      opregistry.Kind `json:"kind"`
	Vendor    string          `json:"vendor,omitempty"`
	Priority  int             `json:"priority"`
	Available bool            `json:"available"`
	Rank      int             `json:"rank,omitempty"` // 1 is the impl that serves calls; 0 is none
	Reason    string          `json:"reason,omitempty"`
}

func newOpsListCommand(streams Streams) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "list [OP…]",
		Short: "List the implementations of every op, best first under the policy of the environment",
		Example: `  primus ops list
  primus ops list generic_gemm rmsnorm_fwd
  TE_FL_PREFER=vendor primus ops list -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var rows []implRow
			err := withManager(cmd.Context(), streams, func(m *opmanager.Manager, reg *opregistry.Registry) error {
				var err error
				rows, err = listImpls(m, reg.Snapshot(), args)
				return err
			})
			if err != nil {
				return err
			}
			if output == outputJSON {
				enc := json.NewEncoder(streams.Out)
				enc.SetIndent("", "  ")
				return enc.Encode(rows)
			}
			return printImpls(streams, rows)
		},
	}
	output.addFlag(cmd.Flags())
	return cmd
}

func listImpls(m *opmanager.Manager, snap *opregistry.Snapshot, only []string) ([]implRow, error) {
	rows := []implRow{}
	for _, name := range only {
		if _, err := m.Explain(name); err != nil {
			return nil, usageError{err}
		}
	}
	for i, op := range snap.Ops() {
		if len(only) > 0 && !slices.Contains(only, op.Name()) {
			continue
		}
		e, err := m.Explain(op.Name())
		if err != nil {
			return nil, err
		}
		entries := snap.Impls(i)
		add := func(id string, rank int, reason string) {
			k := slices.IndexFunc(entries, func(e opregistry.Entry) bool { return e.ID == id })
			rows = append(rows, implRow{
				Op: op.Name(), Impl: id, Kind: entries[k].Kind, Vendor: entries[k].Vendor, Priority: entries[k].Priority,
				Available: entries[k].Available == nil || entries[k].Available() == nil, Rank: rank, Reason: reason,
			})
		}
		for rank, c := range e.Order {
			add(c.ID, rank+1, "")
		}
		for _, r := range e.Rejected {
			add(r.ID, 0, r.Reason)
		}
	}
	return rows, nil
}

func printImpls(streams Streams, rows []implRow) error {
	t := table.NewWriter()
	t.SetStyle(plainStyle)
	t.AppendHeader(table.Row{"op", "impl", "kind", "vendor", "priority", "available", "rank", "reason"})
	t.SetColumnConfigs(alignColumns(8, 8))
	for _, r := range rows {
		rank := "-"
		if r.Rank > 0 {
			rank = strconv.Itoa(r.Rank)
		}
		available := "yes"
		if !r.Available {
			available = "no"
		}
		t.AppendRow(table.Row{r.Op, r.Impl, r.Kind, r.Vendor, r.Priority, available, rank, r.Reason})
	}
	_, err := fmt.Fprintln(streams.Out, t.Render())
	return err
}
