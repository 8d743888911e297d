package runs

import (
	"fmt"
	"math"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/spf13/cobra"
)

func newCompareCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var w workspace
	cmd := &cobra.Command{
		Use:   "compare RUN RUN…",
		Short: "Show the parameters in which runs differ, and their results",
		Long: `Show the parameters that are not the same in all runs, from the resolved configurations
in the run directories, and the last figures of each run with the difference from the
first one. A parameter that a run does not have is shown as -.`,
		Example: `  primus runs compare llama_2M-lr1 llama_2M-lr2
  primus runs compare --workspace output llama_2M-lr1 llama_2M-lr2 llama_2M-lr3 -o json`,
		Args: func(cmd *cobra.Command, names []string) error {
			if len(names) < 2 {
				return cli.Usagef(cmd, "given %s, want two or more", plaintext.Quantity(len(names), "run", "runs"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			_, all, err := w.find(cmd, names)
			if err != nil {
				return err
			}
			c, err := runs.Compare(cmd.Context(), all)
			if err != nil {
				return err
			}
			return output.Print(prog.Out, c, func() error { return printComparison(prog, c) })
		},
		ValidArgsFunction: w.complete,
	}
	output.AddFlag(cmd)
	w.addFlag(cmd)
	return cmd
}

// figure formats a whole number exactly, and any other with six digits.
func figure(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func printComparison(prog cli.Program, c runs.Comparison) error {
	head := func(first string) table.Row {
		row := table.Row{first}
		for _, id := range c.Runs {
			row = append(row, id)
		}
		return row
	}
	parameters := "the parameters are the same"
	if len(c.Parameters) > 0 {
		t := plaintext.NewTable(head("parameter"))
		for _, p := range c.Parameters {
			row := table.Row{p.Key}
			for _, v := range p.Values {
				text := "-"
				if v != nil {
					text = plaintext.Printable(*v)
				}
				row = append(row, text)
			}
			t.AppendRow(row)
		}
		parameters = plaintext.Render(prog.Out, t)
	}
	right := make([]int, len(c.Runs))
	for i := range right {
		right[i] = i + 2
	}
	t := plaintext.NewTable(head("figure"), right...)
	for _, f := range c.Figures {
		row := table.Row{f.Name}
		for i, v := range f.Values {
			text := "-"
			if v != nil {
				text = figure(*v)
			}
			if d := f.Differences[i]; i > 0 && d != nil {
				text += fmt.Sprintf(" (%+.4g)", *d)
			}
			row = append(row, text)
		}
		t.AppendRow(row)
	}
	_, err := fmt.Fprintf(prog.Out, "%s\n\n%s\n", parameters, plaintext.Render(prog.Out, t))
	return err
}
