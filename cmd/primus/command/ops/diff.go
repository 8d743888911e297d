package ops

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/opmanager/policyfile"
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

// Where says in which layers and phase the op changes, with a blank before it, "" for everywhere.
func (c opChange) Where() string {
	text := ""
	if c.Layers != "" {
		text += " in layers " + c.Layers
	}
	if c.Phase != "" {
		text += " in phase " + c.Phase
	}
	return text
}

// diffOptions are the flags of `primus ops diff`.
type diffOptions struct {
	files    []string
	exitCode bool
	both     dispatch.Flags
	from, to dispatch.Flags // of one side, above those of both
}

func newOpsDiffCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts diffOptions
	cmd := &cobra.Command{
		Use:   "diff [--policy A --policy B] [OP…]",
		Short: "Say which ops change their implementation from one policy to another",
		Long: `Say which ops, or which of the ops given, are served by another implementation under
policy B than under policy A, and why. A policy is made up as everywhere: the first
--policy is A's file and the second one B's, a single one is that of both; TE_FL_*
variables and flags such as --prefer are the same for both; flags such as
--from-prefer and --to-prefer are above these, for A or for B alone. Each side has its
plugins. Rules for layers and phases are compared where they differ from what holds
elsewhere.`,
		Example: `  primus ops diff --policy today.yaml --policy tomorrow.yaml
  primus ops diff --to-prefer vendor
  primus ops diff --policy today.yaml --to-plugin-modules ./libacme_ops.so --exit-code -o json`,
		ValidArgsFunction: CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := opts.sides(cmd)
			if err != nil {
				return err
			}
			changes, err := diffSides(cmd.Context(), prog, from, to, args)
			if err != nil {
				return err
			}
			if output == cli.OutputJSON {
				err = cli.WriteJSON(prog.Out, changes)
			} else {
				err = printChanges(prog.Out, changes)
			}
			if err == nil && opts.exitCode && len(changes) > 0 {
				return cli.ErrReported
			}
			return err
		},
	}
	output.AddFlag(cmd)
	cmd.Flags().StringArrayVar(&opts.files, "policy", nil, "a policy `FILE`; of two the first is A's and the second B's")
	cli.WithoutVariable(cmd.Flags(), "policy")
	cmd.Flags().BoolVar(&opts.exitCode, "exit-code", false, "exit with 1 when an op changes")
	opts.both.AddFlags(cmd.Flags())
	opts.from.AddSideFlags(cmd.Flags(), "from-", "of A alone: ")
	opts.to.AddSideFlags(cmd.Flags(), "to-", "of B alone: ")
	return cmd
}

// sides returns where the two policies come from.
func (o *diffOptions) sides(cmd *cobra.Command) (from, to dispatch.Sources, err error) {
	side := func(file int, above dispatch.Flags) dispatch.Sources {
		options := dispatch.Options{Flags: o.both.Under(above)}
		if len(o.files) > 0 {
			options.File = o.files[min(file, len(o.files)-1)]
		}
		return options.Sources(nil)
	}
	switch {
	case len(o.files) > 2:
		return from, to, cli.Usagef(cmd, "got %d policy files, want two: --policy A --policy B", len(o.files))
	case len(o.files) < 2 && !o.from.Given() && !o.to.Given():
		return from, to, cli.Usagef(cmd, "both policies are the same, want two: --policy A --policy B, or a flag of one side such as --to-prefer vendor")
	}
	return side(0, o.from), side(1, o.to), nil
}

// diffSides returns what changes from one policy to the other, each with the sources of ops that it
// names.
func diffSides(ctx context.Context, prog cli.Program, from, to dispatch.Sources, only []string) (changes []opChange, err error) {
	var plugins [2]policyfile.Plugins
	var policies [2]oppolicy.Policy
	for i, s := range []dispatch.Sources{from, to} {
		var file *policyfile.Overlay
		if policies[i], file, err = s.Load(); err != nil {
			return nil, err
		}
		if plugins[i], err = s.Plugins(file); err != nil {
			return nil, err
		}
	}
	err = graph.WithManager(ctx, prog, from, func(a *opmanager.Manager, _ *opregistry.Snapshot) error {
		compare := func(b *opmanager.Manager, _ *opregistry.Snapshot) (err error) {
			changes, err = DiffPolicies(a, b, only)
			return err
		}
		if dispatch.SamePlugins(plugins[0], plugins[1]) {
			b := a.With(policies[1])
			defer b.Close()
			return compare(b, nil)
		}
		to.Env = to.Environment().Known() // what else there is was said already
		return graph.WithManager(ctx, prog, to, compare)
	})
	return changes, err
}

// DiffPolicies returns which of these ops, of all when none is given, change from one manager to
// another. What changes outside of layers comes first, then what changes elsewhere and not there.
func DiffPolicies(from, to *opmanager.Manager, only []string) ([]opChange, error) {
	explained, err := explainOps(from, only, nil)
	if err != nil {
		return nil, err
	}
	compare := func(layer int, phase oppolicy.Phase) []opChange {
		var moved []opChange
		before, after := from.ExplainIn(layer, phase, nil), to.ExplainIn(layer, phase, nil)
		for _, op := range explained {
			a, b := explanationOf(before, op.Op), explanationOf(after, op.Op)
			if a.Selected != b.Selected {
				moved = append(moved, opChange{Op: op.Op, From: a.Selected, To: b.Selected, Reason: b.ReasonOf(a.Selected)})
			}
		}
		return moved
	}
	changes := append([]opChange{}, compare(-1, oppolicy.PhaseUnspecified)...)
	everywhere := map[[3]string]bool{}
	for _, c := range changes {
		everywhere[[3]string{c.Op, c.From, c.To}] = true
	}
	for _, span := range oppolicy.LayerSpans(slices.Concat(from.Policy().Rules, to.Policy().Rules)) {
		for _, phase := range []oppolicy.Phase{oppolicy.PhaseForward, oppolicy.PhaseBackward} {
			for _, c := range compare(span.First, phase) {
				if everywhere[[3]string{c.Op, c.From, c.To}] {
					continue
				}
				if c.Phase = phase.String(); span.First >= 0 {
					c.Layers = span.String()
				}
				changes = append(changes, c)
			}
		}
	}
	return mergePhases(changes), nil
}

// explanationOf returns the explanation of an op, which the zero one stands for where nothing
// declares it.
func explanationOf(all []opmanager.Explanation, op string) opmanager.Explanation {
	i := slices.IndexFunc(all, func(e opmanager.Explanation) bool { return e.Op == op })
	if i < 0 {
		return opmanager.Explanation{Op: op}
	}
	return all[i]
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
	t := cli.NewTable(table.Row{"op", "layers", "phase", "from", "to", "reason"})
	for _, c := range changes {
		t.AppendRow(table.Row{c.Op, cli.Dash(c.Layers), cli.Dash(c.Phase), cli.Dash(c.From), cli.Dash(c.To), c.Reason})
	}
	_, err := fmt.Fprintln(out, cli.Render(t))
	return err
}
