package ops

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/native/divergence"
	"github.com/primus-fl/primus/internal/plaintext"
)

// rank ranks the impls in use by their effect on metrics and prints that.
func (o *bisectOptions) rank(cmd *cobra.Command, prog cli.Program, overrides []string) error {
	var found *divergence.Ranking
	err := o.WithSteps(cmd.Context(), prog, "ops bisect", overrides, func(p experiments.StepParams) error {
		set, end, err := o.settings(cmd.Context(), prog, p)
		if err != nil {
			return err
		}
		defer end()
		found, err = divergence.Rank(cmd.Context(), set)
		return err
	})
	if err != nil {
		return err
	}
	err = errors.Join(err, o.output.Print(prog.Out, found, func() error {
		_, err := prog.Out.Write([]byte(describeRanking(prog.Out, found, o)))
		return err
	}))
	if err == nil && !found.Explained {
		return cli.ErrReported
	}
	return err
}

// describeRanking writes a ranking as text for out.
func describeRanking(out io.Writer, r *divergence.Ranking, o *bisectOptions) string {
	t := plaintext.NewTable(table.Row{"", "loss", "validation loss", "gradient norm"}, 2, 3, 4)
	row := func(name string, m divergence.Metrics) {
		t.AppendRow(table.Row{name, metric(m.Loss, "%.8g"), metric(m.ValidLoss, "%.8g"), metric(m.GradNorm, "%.8g")})
	}
	row("in use", r.InUse)
	row("all on "+o.good, r.Good)
	t.AppendRow(table.Row{"spread of rounding", metric(r.Rounding.Loss, "%.2g"), metric(r.Rounding.ValidLoss, "%.2g"), metric(r.Rounding.GradNorm, "%.2g")})
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", plaintext.Render(out, t))
	if r.Explained {
		fmt.Fprintf(&b, "\nrounding explains the effect of all %s together after %s, in %d runs\n",
			plaintext.Quantity(len(r.Differ), "op", "ops"), plaintext.Quantity(r.Steps, "step", "steps"), r.Runs)
		return b.String()
	}
	effects(out, &b, "ops on other impls than "+o.good, r.Ranked)
	effects(out, &b, "the first of them in one layer at a time", r.Layers)
	effects(out, &b, "groups whose effect rounding explains", r.Groups)
	fmt.Fprintf(&b, "\n%d runs of %s; moves are those of the metric when the ops run on %s\n", r.Runs, plaintext.Quantity(r.Steps, "step", "steps"), o.good)
	return b.String()
}

// effects writes a table of effects.
func effects(out io.Writer, b *strings.Builder, title string, list []divergence.Effect) {
	if len(list) == 0 {
		return
	}
	t := plaintext.NewTable(table.Row{title, "impl", "loss moves", "validation", "gradient norm", "times rounding", "confidence"}, 3, 4, 5, 6, 7).
		Optional("confidence", "gradient norm", "validation")
	for _, e := range list {
		what := strings.Join(e.Ops, ", ")
		switch {
		case e.Layer != nil:
			what = layerList([]int{*e.Layer})
		case e.Explained && len(e.Ops) > shownOps:
			what = fmt.Sprintf("%s and %s", strings.Join(e.Ops[:shownOps], ", "), plaintext.Quantity(len(e.Ops)-shownOps, "other", "others"))
		}
		t.AppendRow(table.Row{what, strings.Join(e.Impls, ", "), metric(e.Moves.Loss, "%+.2g"), metric(e.Moves.ValidLoss, "%+.2g"), metric(e.Moves.GradNorm, "%+.2g"),
			fmt.Sprintf("%.3g", e.Rounding), fmt.Sprintf("%.4g %%", 100*e.Confidence)})
	}
	fmt.Fprintf(b, "\n%s\n", plaintext.Render(out, t))
}

// shownOps bounds the ops of a group that are named.
const shownOps = 3

// metric writes a metric, or that it is not finite.
func metric(v *float64, format string) string {
	if v == nil {
		return "not finite"
	}
	return fmt.Sprintf(format, *v)
}
