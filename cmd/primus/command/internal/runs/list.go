package runs

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/spf13/cobra"
)

func newListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var w workspace
	order := "started"
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the runs of a workspace with their last figures",
		Long: `List the runs of a workspace with their last figures. The state is running, done,
interrupted, failed, diverged (its loss does not come back), dead (the process is gone) or
unknown (there is no record). loss is
that of the last step and valid that of the last evaluation, in nats per token, or nats
per pair in a run of the stage dpo.`,
		Example: `  primus runs list
  primus runs list --workspace output --sort valid_loss
  primus runs list -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, all, err := w.find(cmd, nil)
			if err != nil {
				return err
			}
			if err := runs.Sort(all, order); err != nil {
				return cli.Usagef(cmd, "--sort: %w", err)
			}
			return output.Print(prog.Out, all, func() error { return printRuns(prog, all) })
		},
	}
	output.AddFlag(cmd)
	w.addFlag(cmd)
	cmd.Flags().StringVar(&order, "sort", order, "`ORDER` of the runs: started (newest first), name, loss or valid_loss (smallest first)")
	if err := cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(runs.Orders(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
	return cmd
}

func printRuns(prog cli.Program, all []runs.Run) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(prog.Out, "no runs")
		return err
	}
	t := plaintext.NewTable(table.Row{"run", "model", "state", "step", "loss", "valid", "tokens/s", "time", "started"}, 4, 5, 6, 7, 8).
		Optional("model", "started", "tokens/s", "time")
	for _, r := range all {
		step := fmt.Sprint(r.Step)
		if r.Steps > 0 {
			step = fmt.Sprintf("%d/%d", r.Step, r.Steps)
		}
		took := time.Duration(r.ElapsedSeconds * float64(time.Second)).Round(time.Second)
		t.AppendRow(table.Row{
			r.ID, plaintext.Dash(r.Model), r.State, step, number("%.4f", r.Loss), number("%.4f", r.ValidLoss), number("%.0f", r.TokensPerSecond),
			took, r.Started.Local().Format(time.DateTime),
		})
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}

// number formats a figure, which is a dash if it is not known.
func number(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}
