package patches

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/internal/report"
	"github.com/spf13/cobra"
)

// checkoutPlan are the flags of `primus patches plan` about a checkout of Primus.
type checkoutPlan struct {
	experiments.Checkout
	diff        string
	diffVersion string
}

func (o *checkoutPlan) addFlags(cmd *cobra.Command) {
	experiments.RepoFlag(cmd, &o.Repo)
	flags := cmd.Flags()
	flags.StringVar(&o.Version, "backend-version", "", "with --repo: the `VERSION` of the framework; without it, that of the source tree in third_party")
	flags.StringVar(&o.Tree, "backend-repo", "", "with --repo: `DIR` of the source tree of the framework, for its version and the defaults of parameters")
	flags.StringVar(&o.diff, "diff", "", "with --repo: say what another experiment `FILE` changes")
	flags.StringVar(&o.diffVersion, "diff-version", "", "with --repo: say what another `VERSION` of the framework changes")
	cli.WithoutVariable(flags, "repo", "backend-repo", "backend-version", "diff", "diff-version")
}

// check returns an error for flags that need --repo.
func (o *checkoutPlan) check(cmd *cobra.Command) error {
	for _, name := range []string{"backend-repo", "backend-version", "diff", "diff-version"} {
		if o.Repo == "" && cmd.Flags().Changed(name) {
			return cli.Usagef(cmd, "--%s is about a checkout of Primus: want --repo DIR with it", name)
		}
	}
	return nil
}

// run plans an experiment with the patches of a checkout.
func (o *checkoutPlan) run(ctx context.Context, prog cli.Program, opts *planOptions, module string, overrides []string, format cli.OutputFormat) error {
	c, err := experiments.OpenCheckout(ctx, prog, o.Repo)
	if err != nil {
		return err
	}
	experiment := o.WithPresets(opts.Options)
	run, err := o.Experiment(ctx, prog, experiment, opts.run.Patches, module, overrides)
	if err != nil {
		return err
	}
	plan := c.Plan(run)
	if o.diff == "" && o.diffVersion == "" {
		view := report.NewCheckoutPatchPlan(c, run, plan)
		if format == cli.OutputJSON {
			return cli.WriteJSON(prog.Out, view)
		}
		_, err = io.WriteString(prog.Out, view.CheckoutText(prog.Out))
		return err
	}
	other := run
	if o.diff != "" {
		experiment.Config = o.diff
		if other, err = o.Experiment(ctx, prog, experiment, opts.run.Patches, module, overrides); err != nil {
			return err
		}
	}
	if o.diffVersion != "" {
		other.Version = o.diffVersion
		experiments.LogDefaults(slog.New(prog.Lines(prog.Err, slog.LevelWarn)), other)
	}
	changes := pyreader.Diff(plan, c.Plan(other))
	return format.Print(prog.Out, changes, func() error { return printPlanDiff(prog, run, other, changes) })
}

func printPlanDiff(prog cli.Program, from, to pyreader.Run, changes []pyreader.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "from %s, %s %s\n  to %s, %s %s\n\n", from.File, from.Backend, plaintext.OrUnknown(from.Version), to.File, to.Backend, plaintext.OrUnknown(to.Version))
	if len(changes) == 0 {
		fmt.Fprintln(&b, "the same patches apply")
	} else {
		t := plaintext.NewTable(table.Row{"phase", "patch", "before", "after", "why"})
		for _, change := range changes {
			t.AppendRow(table.Row{change.Phase, change.ID, change.From, change.To, change.Reason})
		}
		fmt.Fprintln(&b, plaintext.Render(prog.Out, t))
	}
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}
