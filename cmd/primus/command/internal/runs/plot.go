package runs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/spf13/cobra"
)

func newPlotCommand(prog cli.Program) *cobra.Command {
	var w workspace
	file := "losses.png"
	title, over := "", "step"
	cmd := &cobra.Command{
		Use:   "plot [RUN…]",
		Short: "Draw the losses of runs into one picture",
		Long: `Draw the losses of up to ten runs, all of the workspace unless some are named, into one
PNG: training losses as lines, which are averaged over neighbouring steps if there are
many, and validation losses as dots. The evaluation at the end of a run, which usually
takes more text than those on the way, is a ring that no line leads to.`,
		Example: `  primus runs plot
  primus runs plot --over time
  primus runs plot llama_2M-lr1 llama_2M-lr2 --file lr.png --title "learning rates"`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !strings.EqualFold(filepath.Ext(file), ".png") {
				return cli.Usagef(cmd, "--file: given %q, want a name that ends with .png", file)
			}
			a, all, err := w.find(cmd, names)
			if err != nil {
				return err
			}
			if !slices.Contains(rundir.Horizontals(), over) {
				return cli.Usagef(cmd, "--over: given %q, want %s", over, strings.Join(rundir.Horizontals(), ", "))
			}
			curves, err := losses(a, all)
			if err != nil {
				return err
			}
			if len(names) == 0 {
				curves = slices.DeleteFunc(curves, func(c rundir.Losses) bool { return len(c.Records) == 0 })
			}
			if len(curves) == 0 {
				return cli.Usagef(cmd, "--workspace %s: given no run with a step, want one or more", w.dir)
			}
			if title == "" {
				title = plaintext.Quantity(len(curves), "run", "runs") + " of " + w.dir
			}
			png, err := rundir.PlotRuns(title, over, curves)
			if err != nil {
				return err
			}
			err = durable.WriteFile(file, func(out io.Writer) error {
				_, err := out.Write(png)
				return err
			})
			if err != nil {
				return fmt.Errorf("write %s: %w", file, err)
			}
			_, err = fmt.Fprintln(prog.Out, file)
			return err
		},
		ValidArgsFunction: w.complete,
	}
	w.addFlag(cmd)
	cmd.Flags().StringVar(&file, "file", file, "write the picture to `FILE`, which ends with .png")
	cmd.Flags().StringVar(&over, "over", over, "draw losses over `WHAT`: "+strings.Join(rundir.Horizontals(), ", "))
	if err := cmd.RegisterFlagCompletionFunc("over", cobra.FixedCompletions(rundir.Horizontals(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("BUG: " + err.Error())
	}
	cmd.Flags().StringVar(&title, "title", "", "`TEXT` above the picture (default: the number of runs)")
	return cmd
}

// losses returns the curves of runs. One that has made no step has none.
func losses(a *runs.Archive, all []runs.Run) ([]rundir.Losses, error) {
	var result []rundir.Losses
	for _, r := range all {
		records, err := rundir.ReadRecords(a.Dir(r))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("run %s: %w", r.ID, err)
		}
		result = append(result, rundir.Losses{Name: r.ID, Unit: r.LossUnit, Records: records})
	}
	return result, nil
}
