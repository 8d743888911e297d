package command

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
)

func newBackendsCommand(prog program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backends",
		Short: "Look at the training backends",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newBackendsListCommand(prog))
	return cmd
}

// backendRow is one backend of `primus backends list`.
type backendRow struct {
	Framework   string   `json:"framework"`
	Description string   `json:"description"`
	Stages      []string `json:"stages"`
	Trains      bool     `json:"trains"` // it can be run, not only planned
	Patches     int      `json:"patches"`
	Version     string   `json:"version"` // empty when it is unknown
	Path        string   `json:"path"`    // of the source tree; empty when it is compiled in or not found
	Problem     string   `json:"problem"` // why it was not found, or why the version is unknown
}

func newBackendsListCommand(prog program) *cobra.Command {
	var output outputFormat
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the training backends and what of them is on this machine",
		Example: `  primus backends list
  BACKEND_PATH=/opt/Megatron-LM primus backends list -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withBackends(cmd.Context(), prog, slog.New(slog.DiscardHandler), func(p planParams) error {
				rows, err := listBackends(p)
				if err != nil {
					return err
				}
				if output == outputJSON {
					return writeJSON(prog.Out, rows)
				}
				return printBackends(prog, rows)
			})
		},
	}
	output.addFlag(cmd)
	return cmd
}

// listBackends asks every backend what it finds.
func listBackends(p planParams) ([]backendRow, error) {
	rows := []backendRow{}
	for _, name := range p.Backends.Names() {
		f, err := p.Backends.Get(name)
		if err != nil {
			return nil, err
		}
		adapter := f.New()
		tc := &backend.TrainContext{
			Framework: name, Adapter: adapter, Environ: backend.ProcessEnviron().Overlay(), Log: slog.New(slog.DiscardHandler),
		}
		row := backendRow{Framework: name, Description: f.Description, Stages: adapter.Stages(), Trains: !f.PlanOnly}
		for _, patch := range p.Patches.All() {
			if patch.Backend == name || patch.Backend == "" {
				row.Patches++
			}
		}
		if tc.Paths, err = adapter.SetupPath("", tc); err != nil {
			row.Problem = err.Error()
		} else if row.Version, err = adapter.DetectVersion(tc); err != nil {
			row.Problem = err.Error()
		}
		row.Path = tc.Paths.Dir
		rows = append(rows, row)
	}
	return rows, nil
}

func printBackends(prog program, rows []backendRow) error {
	t := newTable(table.Row{"framework", "stages", "trains", "patches", "version", "source tree", "what it does"}, 4)
	var problems strings.Builder
	for _, r := range rows {
		trains, path := "yes", r.Path
		if !r.Trains {
			trains = "plan only"
		} else if path == "" {
			path = "compiled in"
		}
		t.AppendRow(table.Row{r.Framework, strings.Join(r.Stages, ", "), trains, r.Patches, dash(r.Version), dash(path), r.Description})
		if r.Problem != "" {
			fmt.Fprintf(&problems, "%s\n", r.Problem)
		}
	}
	text := render(t) + "\n"
	if problems.Len() > 0 {
		text += "\n" + problems.String()
	}
	_, err := fmt.Fprint(prog.Out, text)
	return err
}
