package ops

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/internal/foreign"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
	"github.com/spf13/cobra"
)

func newOpsExplainCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputWithText
	var opts dispatch.Options
	var at dispatch.CallFlags
	cmd := &cobra.Command{
		Use:   "explain [OP…]",
		Short: "Say which implementation serves an op, and why no other does",
		Long: `Say which implementation serves each op under the policy of the environment, which one
follows when it declines or fails, and why every other implementation comes later or
cannot be selected, with the source of that decision. Without an op there is one line
for each op, as with -o table; -o text explains all of them in full. For an op of
TransformerEngine-FL that is not dispatched here it names the replacement. The column
"same bits" is what an implementation declares: "any threads" computes the same bits
with any number of threads on CPUs of one class, "anywhere" on every machine. For
products of matrices a line on stderr names the newest instruction set that kernels use, and
what decided: TE_FL_ISA, or a measurement of products of bf16.

--dtype and --shape ask about calls whose first operand is such a tensor: an
implementation that declares that it does not serve them is rejected. --layer and
--phase ask about calls of one layer or phase, to which rules of a policy may apply.

With -o json one op is an object; several or all are a list of such objects.`,
		Example: `  primus ops explain generic_gemm
  TE_FL_PREFER=vendor TE_FL_DENY_VENDORS=onednn primus ops explain generic_gemm -o json
  primus ops explain rmsnorm_fwd --dtype bf16 --shape 2048x512
  primus ops explain --policy policy.yaml --layer 0 --phase backward
  primus ops explain`,
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			calls, err := at.Calls(cmd)
			if err != nil {
				return err
			}
			instructions, err := graph.InstructionSet(nil)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			var all []fmt.Stringer
			set := graph.Config{Policy: opts.Sources(nil), ProbeDevices: true}
			err = graph.WithManagerOf(cmd.Context(), prog, set, func(m *opmanager.Manager, _ *opregistry.Snapshot, _ device.Backend) (err error) {
				m = m.Phase(calls.Phase)
				if calls.Layer != nil {
					m = m.Layer(*calls.Layer)
				}
				all, err = explain(m, args, calls.Shape)
				return err
			})
			switch {
			case err != nil:
				return err
			case output.OutputFormat == cli.OutputJSON && len(args) == 1:
				return cli.WriteJSON(prog.Out, all[0])
			case output.OutputFormat == cli.OutputJSON:
				return cli.WriteJSON(prog.Out, all)
			case output.OutputFormat == cli.OutputText, output.OutputFormat == "" && len(args) > 0:
				if err := printExplanations(prog.Out, all); err != nil || !slices.ContainsFunc(args, multiplies) || !mayBeBF16(cmd) {
					return err
				}
				_, err = fmt.Fprintln(prog.Err, "primus: instruction set of default.flagos:", instructions)
				return err
			}
			return printWinners(prog.Out, all)
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	at.AddFlags(cmd.Flags())
	return cmd
}

// mayBeBF16 reports whether the calls that are explained may be of bf16, whose products have an
// instruction set that is chosen by measurement.
func mayBeBF16(cmd *cobra.Command) bool {
	dtype := cmd.Flags().Lookup("dtype")
	return !dtype.Changed || strings.EqualFold(dtype.Value.String(), tensor.BF16.String())
}

// multiplies reports whether an op has products of matrices, for which instruction sets differ
// most.
func multiplies(op string) bool {
	return strings.Contains(op, "gemm") || strings.HasPrefix(op, "linear_")
}

// explainOps answers for these ops, for all when none is given, and for calls of one
// dtype and shape unless call is nil.
func explainOps(m *opmanager.Manager, names []string, call *opmanager.CallShape) ([]opmanager.Explanation, error) {
	if len(names) == 0 {
		for _, e := range m.ExplainAll() {
			names = append(names, e.Op)
		}
	}
	all := make([]opmanager.Explanation, len(names))
	for i, name := range names {
		var err error
		if call != nil {
			all[i], err = m.ExplainCall(name, *call)
		} else {
			all[i], err = m.Explain(name)
		}
		if err != nil {
			return nil, cli.UsageError{Err: err}
		}
	}
	return all, nil
}

// explain is explainOps with a foreign.Op for each name of one.
func explain(m *opmanager.Manager, names []string, call *opmanager.CallShape) ([]fmt.Stringer, error) {
	var all []fmt.Stringer
	var known []string
	for _, name := range names {
		if o, ok := foreign.Find(name); ok {
			all = append(all, o)
		} else {
			known = append(known, name)
		}
	}
	if len(names) > 0 && len(known) == 0 {
		return all, nil
	}
	explained, err := explainOps(m, known, call)
	for _, e := range explained {
		all = append(all, e)
	}
	return all, err
}

// printWinners prints a line for each op.
func printWinners(out io.Writer, all []fmt.Stringer) error {
	t := plaintext.NewTable(table.Row{"op", "impl", "then", "rejected", "order", "from"}, 3, 4).
		Optional("from", "order")
	for _, e := range all {
		switch e := e.(type) {
		case opmanager.Explanation:
			t.AppendRow(table.Row{e.Op, plaintext.Dash(e.Selected), max(len(e.Order)-1, 0), len(e.Rejected), e.Tokens, e.Source})
		case foreign.Op:
			t.AppendRow(table.Row{e.Name, "not dispatched", "-", "-", "-", "-"})
		}
	}
	_, err := fmt.Fprintln(out, plaintext.Render(out, t))
	return err
}

// printExplanations prints the answers for ops, each as its String method spells it.
func printExplanations(out io.Writer, all []fmt.Stringer) error {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.String()
	}
	_, err := fmt.Fprintln(out, strings.Join(texts, "\n\n"))
	return err
}
