package ops

import (
	"context"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/policyfile"
	"github.com/primus-fl/primus/opregistry"
	"github.com/spf13/cobra"
)

// diffOptions are the flags of `primus ops diff`.
type diffOptions struct {
	files    []string
	exitCode bool
	both     dispatch.Flags
	from, to dispatch.Flags // of one side; they override those of both
}

func newOpsDiffCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts diffOptions
	cmd := &cobra.Command{
		Use:   "diff [--policy A --policy B] [OP…]",
		Short: "Say which ops change their implementation from one policy to another",
		Long: `Say which ops, or which of the given ops, have another implementation under policy B
than under policy A, and why. The first --policy is the file of A and the second one
that of B; a single one is the file of both. TE_FL_* variables and flags such as
--prefer apply to both policies. Flags such as --from-prefer and --to-prefer override
them for A or for B alone. Each policy has its own plugins. Layers and phases are listed
if their change differs from that of other calls.`,
		Example: `  primus ops diff --policy today.yaml --policy tomorrow.yaml
  primus ops diff --to-prefer vendor
  primus ops diff --policy today.yaml --to-plugin-modules ./libacme_ops.so --exit-code -o json`,
		ValidArgsFunction: dispatch.CompleteOps,
		RunE: func(cmd *cobra.Command, args []string) error {
			from, to, err := opts.sides(cmd)
			if err != nil {
				return err
			}
			changes, err := diffSides(cmd.Context(), prog, from, to, args)
			if err != nil {
				return err
			}
			err = output.Print(prog.Out, changes, func() error { return printChanges(prog.Out, changes) })
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
		return from, to, cli.Usagef(cmd, "given %d policy files, want two: --policy A --policy B", len(o.files))
	case len(o.files) < 2 && !o.from.Given() && !o.to.Given():
		return from, to, cli.Usagef(cmd, "both policies are the same, want two: --policy A --policy B, or a flag of one side such as --to-prefer vendor")
	}
	return side(0, o.from), side(1, o.to), nil
}

// diffSides returns the changes from one policy to the other, each with its own plugins.
func diffSides(ctx context.Context, prog cli.Program, from, to dispatch.Sources, only []string) (changes []opmanager.Difference, err error) {
	var plugins [2]policyfile.Plugins
	var layers [2]opmanager.PolicyLayers
	for i, s := range []dispatch.Sources{from, to} {
		var file *policyfile.Layer
		if layers[i], file, err = s.Load(ctx); err != nil {
			return nil, err
		}
		if plugins[i], err = s.Plugins(file); err != nil {
			return nil, err
		}
	}
	err = graph.WithManager(ctx, prog, from, func(a *opmanager.Manager, _ *opregistry.Snapshot) error {
		compare := func(b *opmanager.Manager, _ *opregistry.Snapshot) (err error) {
			if changes, err = opmanager.Compare(a, b, only); err != nil {
				return cli.UsageError{Err: err}
			}
			return nil
		}
		if dispatch.SamePlugins(plugins[0], plugins[1]) {
			b := a.With(layers[1].Policy())
			defer b.Close()
			return compare(b, nil)
		}
		to.Env = to.Environment().Known() // the first side has reported the others
		return graph.WithManager(ctx, prog, to, compare)
	})
	return changes, err
}

func printChanges(out io.Writer, changes []opmanager.Difference) error {
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "no op changes its impl")
		return err
	}
	t := plaintext.NewTable(table.Row{"op", "layers", "phase", "from", "to", "reason"})
	for _, c := range changes {
		t.AppendRow(table.Row{c.Op, plaintext.Dash(c.Layers), plaintext.Dash(c.Phase), plaintext.Dash(c.From), plaintext.Dash(c.To), c.Reason})
	}
	_, err := fmt.Fprintln(out, plaintext.Render(out, t))
	return err
}
