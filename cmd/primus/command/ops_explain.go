package command

import (
	"fmt"
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

func newOpsExplainCommand(streams Streams) *cobra.Command {
	var output outputFormat
	var opts policyOptions
	cmd := &cobra.Command{
		Use:   "explain [OP…]",
		Short: "Say which implementation serves an op, and why no other does",
		Long: `Say which implementation serves each op under the policy of the environment, what
follows when it declines or fails, and for every other implementation why it comes
later or cannot be selected, with where that was decided. Without an op, every op has
one line.

With -o json one op is an object; several or all are a list of such objects.`,
		Example: `  primus ops explain generic_gemm
  TE_FL_PREFER=vendor TE_FL_DENY_VENDORS=onednn primus ops explain generic_gemm -o json
  primus ops explain`,
		ValidArgsFunction: completeOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			var all []opmanager.Explanation
			err := withManager(cmd.Context(), streams, opts.sources(nil), func(m *opmanager.Manager, _ *opregistry.Snapshot) (err error) {
				all, err = explainOps(m, args)
				return err
			})
			switch {
			case err != nil:
				return err
			case output == outputJSON && len(args) == 1:
				return writeJSON(streams.Out, all[0])
			case output == outputJSON:
				return writeJSON(streams.Out, all)
			case len(args) == 0:
				return printWinners(streams.Out, all)
			}
			for i, e := range all {
				if i > 0 {
					fmt.Fprintln(streams.Out)
				}
				if err := printExplanation(streams.Out, e); err != nil {
					return err
				}
			}
			return nil
		},
	}
	output.addFlag(cmd)
	opts.addFlags(cmd.Flags())
	return cmd
}

// explainOps answers for these ops, for all when none is given.
func explainOps(m *opmanager.Manager, names []string) ([]opmanager.Explanation, error) {
	if len(names) == 0 {
		return m.ExplainAll(), nil
	}
	all := make([]opmanager.Explanation, len(names))
	for i, name := range names {
		e, err := m.Explain(name)
		if err != nil {
			return nil, usageError{err}
		}
		all[i] = e
	}
	return all, nil
}

// printWinners prints a line for each op.
func printWinners(out io.Writer, all []opmanager.Explanation) error {
	t := newTable(table.Row{"op", "impl", "then", "rejected", "order", "from"}, 3, 4)
	for _, e := range all {
		t.AppendRow(table.Row{e.Op, dash(e.Selected), max(len(e.Order)-1, 0), len(e.Rejected), e.Tokens, e.Source})
	}
	_, err := fmt.Fprintln(out, render(t))
	return err
}

// printExplanation prints the answer for one op.
func printExplanation(out io.Writer, e opmanager.Explanation) error {
	verdict := "no impl can be selected, so calls fail"
	if e.Selected != "" {
		verdict = "served by " + e.Selected
	}
	order := e.Tokens
	if e.Source != "" {
		order += " (" + e.Source + ")"
	}
	if e.Follows != "" {
		order += "; ranked as " + e.Follows + ", with which it shares saved state"
	}
	if _, err := fmt.Fprintf(out, "%s: %s\norder: %s\n", e.Op, verdict, order); err != nil {
		return err
	}
	t := newTable(table.Row{"rank", "impl", "kind", "vendor", "priority", "reason"}, 1, 5)
	row := func(rank string, s opmanager.Standing) {
		t.AppendRow(table.Row{rank, s.ID, s.Kind, dash(s.Vendor), s.Priority, s.Reason})
	}
	for i, s := range e.Order {
		row(strconv.Itoa(i+1), s)
	}
	for _, s := range e.Rejected {
		row("-", s)
	}
	_, err := fmt.Fprintln(out, render(t))
	return err
}
