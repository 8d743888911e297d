package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// opChange is an op that two policies give to different impls.
type opChange struct {
	Op     string `json:"op"`
	Layers string `json:"layers,omitempty"` // "" outside of layers, or when all are alike
	Phase  string `json:"phase,omitempty"`
	From   string `json:"from"` // "" when calls fail
	To     string `json:"to"`
	Reason string `json:"reason"` // why the second policy does not select what the first does
}

func newOpsDiffCommand(streams Streams) *cobra.Command {
	var output outputFormat
	var files []string
	var exitCode bool
	var flags policyFlags
	cmd := &cobra.Command{
		Use:   "diff --policy A --policy B [OP…]",
		Short: "Say which ops change their implementation from one policy file to another",
		Long: `Say which ops, or which of the ops given, are served by another implementation under
policy file B than under policy file A, and why. Everything else that makes up a
policy, TE_FL_* variables and flags, is the same for both. Rules for layers and phases
are compared where they differ from what holds elsewhere.`,
		Example: `  primus ops diff --policy today.yaml --policy tomorrow.yaml
  primus ops diff --policy today.yaml --policy tomorrow.yaml --exit-code -o json`,
		ValidArgsFunction: completeOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(files) != 2 {
				return usagef(cmd, "got %d policy files, want two: --policy A --policy B", len(files))
			}
			var policies [2]opmanager.Policy
			for i, file := range files {
				var err error
				sources := policySources{file: file, fileSource: "flag --policy", lookup: environmentNow(), flags: flags}
				if policies[i], _, err = sources.load(); err != nil {
					return err
				}
			}
			changes := []opChange{}
			err := withManager(cmd.Context(), streams, policySources{lookup: func(string) (string, bool) { return "", false }}, func(m *opmanager.Manager, _ *opregistry.Snapshot) (err error) {
				changes, err = diffPolicies(m.With(policies[0]), policies[1], args)
				return err
			})
			if err != nil {
				return err
			}
			if output == outputJSON {
				err = writeJSON(streams.Out, changes)
			} else {
				err = printChanges(streams.Out, changes)
			}
			if err == nil && exitCode && len(changes) > 0 {
				return errReported
			}
			return err
		},
	}
	output.addFlag(cmd)
	cmd.Flags().StringArrayVar(&files, "policy", nil, "a policy `FILE`; give two")
	cmd.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 1 when an op changes")
	flags.addFlags(cmd.Flags())
	return cmd
}

// diffPolicies returns which of these ops, of all when none is given, change from the policy of m to another. What changes
// outside of layers comes first, then what changes elsewhere and not there.
func diffPolicies(m *opmanager.Manager, to opmanager.Policy, only []string) ([]opChange, error) {
	explained, err := explainOps(m, only, nil)
	if err != nil {
		return nil, err
	}
	spans := layerSpans(append(slices.Clone(m.Policy().Rules), to.Rules...))
	for _, span := range spans {
		for _, phase := range []opmanager.Phase{opmanager.PhaseForward, opmanager.PhaseBackward} {
			if at := m.Phase(phase); span.Last >= 0 {
				at.Layer(span.First)
			}
		}
	}
	moved, _ := m.Preview(to)
	type row struct {
		opChange
		span, op int
	}
	var rows []row
	everywhere := map[[3]string]bool{}
	for _, c := range moved {
		op := slices.IndexFunc(explained, func(e opmanager.Explanation) bool { return e.Op == c.Op })
		if op < 0 {
			continue
		}
		for _, at := range c.Places {
			r := row{opChange{Op: c.Op, From: c.From, To: c.To, Reason: c.Reason}, -1, op}
			if at.Phase != opmanager.PhaseUnspecified {
				r.Phase = at.Phase.String()
				r.span = slices.IndexFunc(spans, func(s opmanager.LayerRange) bool { return s.First == at.Layer })
				if at.Layer >= 0 {
					r.Layers = spans[r.span].String()
				}
			} else {
				everywhere[[3]string{c.Op, c.From, c.To}] = true
			}
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.span, b.span), -cmp.Compare(a.Phase, b.Phase), cmp.Compare(a.op, b.op)) // forward, backward
	})
	changes := []opChange{}
	for _, r := range rows {
		if r.span < 0 || !everywhere[[3]string{r.Op, r.From, r.To}] {
			changes = append(changes, r.opChange)
		}
	}
	return mergePhases(changes), nil
}

// layerSpans cuts the layers that rules name into ranges within which every rule
// applies to all or none. The first, without layers, stands for rules without any.
func layerSpans(rules []opmanager.Rule) []opmanager.LayerRange {
	if len(rules) == 0 {
		return nil
	}
	var cuts []int
	for _, r := range rules {
		for _, l := range r.Layers {
			cuts = append(cuts, l.First, l.Last+1)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	spans := []opmanager.LayerRange{{First: -1, Last: -1}}
	for i := range max(0, len(cuts)-1) {
		spans = append(spans, opmanager.LayerRange{First: cuts[i], Last: cuts[i+1] - 1})
	}
	return spans
}

// mergePhases joins the changes that are alike in both phases of the same layers.
func mergePhases(changes []opChange) []opChange {
	merged := []opChange{}
	for _, c := range changes {
		twin := slices.IndexFunc(merged, func(o opChange) bool {
			return o.Phase != "" && c.Phase != "" && o.Op == c.Op && o.Layers == c.Layers && o.From == c.From && o.To == c.To
		})
		if twin >= 0 && c.Layers != "" {
			merged[twin].Phase = ""
			continue
		}
		merged = append(merged, c)
	}
	return merged
}

func printChanges(out io.Writer, changes []opChange) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "no op changes its impl")
		return err
	}
	t := newTable(table.Row{"op", "layers", "phase", "from", "to", "reason"})
	for _, c := range changes {
		t.AppendRow(table.Row{c.Op, dash(c.Layers), dash(c.Phase), dash(c.From), dash(c.To), c.Reason})
	}
	_, err := fmt.Fprintln(out, render(t))
	return err
}
