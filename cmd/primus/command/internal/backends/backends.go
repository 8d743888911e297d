// Package backends is the command that lists the training backends.
package backends

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/cmd/primus/command/internal/service"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
)

// New returns the command `primus backends`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("backends", "Look at the training backends",
		newBackendsListCommand(prog),
	)
}

func newBackendsListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the training backends, and what this machine has of each",
		Example: `  primus backends list
  BACKEND_PATH=/opt/Megatron-LM primus backends list -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return graph.WithBackends(cmd.Context(), prog, slog.New(slog.DiscardHandler), func(p graph.PlanParams) error {
				rows, err := service.ListBackends(p)
				if err != nil {
					return err
				}
				return output.Print(prog.Out, rows, func() error { return printBackends(prog, rows) })
			})
		},
	}
	output.AddFlag(cmd)
	return cmd
}

func printBackends(prog cli.Program, rows []service.BackendRow) error {
	t := plaintext.NewTable(table.Row{"framework", "stages", "runs", "patches", "version", "source tree", "what it does"}, 4).
		Optional("source tree", "patches", "version", "runs")
	var problems strings.Builder
	for _, r := range rows {
		runs, path := "Python processes", r.Path
		if !r.Launches {
			runs, path = "in primus", "compiled in"
		}
		t.AppendRow(table.Row{r.Framework, strings.Join(r.Stages, ", "), runs, r.Patches, plaintext.Dash(r.Version), plaintext.Dash(path), r.Description})
		if r.Problem != "" {
			fmt.Fprintf(&problems, "%s\n", r.Problem)
		}
	}
	text := plaintext.Render(prog.Out, t) + "\n"
	if problems.Len() > 0 {
		text += "\n" + problems.String()
	}
	_, err := fmt.Fprint(prog.Out, text)
	return err
}
