package patches

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/spf13/cobra"
)

func newPatchesCheckCommand(prog cli.Program) *cobra.Command {
	var repo string
	var trees []string
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "check --repo DIR --backend-repo DIR",
		Short: "Check that the source of the frameworks still has what the patches of a checkout change",
		Long: `Check that the source of the frameworks still has what the patches of a checkout change:
modules, classes, functions and attributes, with parameters that the patches take, and
texts that rewrites search for. The exit code is 1 when something is missing.`,
		Example: `  primus patches check --repo ~/Primus --backend-repo ~/Megatron-LM
  primus patches check --repo ~/Primus --backend-repo ~/Megatron-LM --backend-repo ~/torchtitan -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(trees) == 0 {
				return cli.UsageError{Err: errors.New("--backend-repo is missing: name the folder with the source of a framework")}
			}
			c, err := experiments.OpenCheckout(cmd.Context(), prog, repo)
			if err != nil {
				return err
			}
			findings, err := c.Check(cmd.Context(), trees...)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			err = output.Print(prog.Out, findings, func() error { return printFindings(prog, findings) })
			for _, f := range findings {
				if err == nil && f.Status.Problem() {
					return cli.ErrReported
				}
			}
			return err
		},
	}
	experiments.RepoFlag(cmd, &repo)
	cmd.Flags().StringArrayVar(&trees, "backend-repo", nil, "`DIR` with the source of a framework; may be repeated")
	if err := cmd.MarkFlagDirname("backend-repo"); err != nil {
		panic("BUG: " + err.Error())
	}
	output.AddFlag(cmd)
	return cmd
}

// printFindings prints the targets that are missing or doubtful, and counts all.
func printFindings(prog cli.Program, findings []pyreader.Finding) error {
	t := plaintext.NewTable(table.Row{"status", "patch", "target", "what is known"})
	counts := map[pyreader.Status]int{}
	for _, f := range findings {
		counts[f.Status]++
		switch {
		case f.Status == pyreader.External, f.Status == pyreader.There && f.Detail == "":
		default:
			t.AppendRow(table.Row{f.Status, f.Patch, f.Target, f.Detail})
		}
	}
	var b strings.Builder
	if t.Length() > 0 {
		fmt.Fprintln(&b, plaintext.Render(prog.Out, t))
	}
	var parts []string
	for _, s := range pyreader.Statuses() {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	fmt.Fprintf(&b, "%d targets: %s\n", len(findings), strings.Join(parts, ", "))
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}
