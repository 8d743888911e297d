package plugins

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/dispatch"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/spf13/cobra"
	"go.uber.org/fx"
)

func newPluginsListCommand(prog cli.Program) *cobra.Command {
	var output cli.OutputFormat
	var opts dispatch.Options
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sources of ops: those compiled in, and plugins with their state",
		Long: `List the sources of ops: those that are compiled in, with the version of their module,
and the plugins that TE_FL_PLUGIN_MODULES, --plugin-modules or plugin_modules of the
policy file names. A plugin is loaded, is isolated in a process of its own, or was
rejected for a reason. The column ops has the number of ops that can run on this machine
and that of all; -o json lists them, with the reason why one cannot run.`,
		Example: `  primus plugins list
  TE_FL_PLUGIN_MODULES=./libacme_ops.so primus plugins list -o json
  primus plugins list --policy policy.yaml --plugin-dir /opt/plugins`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var sources *graph.SourceList
			set := graph.Config{Log: slog.New(prog.Lines(prog.Err, slog.LevelWarn)), Policy: opts.Sources(nil), ListPlugins: true, ProbeDevices: true, Extras: prog.Extras}
			var rows []graph.SourceRow
			err := graph.Run(cmd.Context(), func() error {
				rows = sources.Rows()
				return nil
			}, graph.OpsGraph(set, func(graph.OpsParams) {}), fx.Populate(&sources))
			if err != nil {
				return err
			}
			return output.Print(prog.Out, rows, func() error { return printSources(prog, rows) })
		},
	}
	output.AddFlag(cmd)
	opts.AddFlags(cmd.Flags())
	return cmd
}

// printSources prints the sources as a table.
func printSources(prog cli.Program, rows []graph.SourceRow) error {
	t := plaintext.NewTable(table.Row{"source", "version", "state", "from", "sha256", "ops", "reason"}).
		Optional("sha256", "from")
	for _, r := range rows {
		t.AppendRow(table.Row{
			plaintext.Dash(r.Source), plaintext.Dash(r.Version), strings.ReplaceAll(string(r.State), "_", " "), plaintext.Dash(r.From()),
			plaintext.Dash(r.SHA256[:min(len(r.SHA256), 12)]), fmt.Sprintf("%d of %d", r.Usable(), len(r.Ops)), strings.Join(r.Findings(), "; "),
		})
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}
