// Package patches is the commands about the patches of training backends and of checkouts of
// Primus.
package patches

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/graph"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/spf13/cobra"
)

// New returns the command `primus patches`.
func New(prog cli.Program) *cobra.Command {
	return cli.Group("patches", "Look at the patches of training backends",
		newPatchesListCommand(prog), newPatchesPlanCommand(prog), newPatchesScanCommand(prog),
		newPatchesExplainCommand(prog), newPatchesFindCommand(prog), newPatchesCheckCommand(prog),
	)
}

// inventoryFormat is the value of -o of `primus patches list`.
type inventoryFormat struct{ cli.OutputFormat }

const outputMarkdown cli.OutputFormat = "md"

// Set implements pflag.Value.
func (f *inventoryFormat) Set(s string) error {
	if cli.OutputFormat(strings.ToLower(s)) == outputMarkdown {
		f.OutputFormat = outputMarkdown
		return nil
	}
	return f.OutputFormat.Set(s)
}

// AddFlag gives a command the flag -o.
func (f *inventoryFormat) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "table, md or json")
	formats := cobra.FixedCompletions([]string{"table", "md", "json"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic("BUG: " + err.Error())
	}
}

func newPatchesListCommand(prog cli.Program) *cobra.Command {
	var backend, phase string
	output := inventoryFormat{cli.OutputTable}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List every patch: what it does, what it changes, where it is and how it is enabled",
		Example: `  primus patches list
  primus patches list --backend native --phase setup
  primus patches list -o md > patches.md`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return graph.WithBackends(cmd.Context(), prog, slog.New(slog.DiscardHandler), func(p graph.PlanParams) error {
				if _, err := p.Backends.Get(backend); backend != "" && err != nil {
					return cli.UsageError{Err: err}
				}
				var only patch.Phase
				if phase != "" {
					if err := only.UnmarshalText([]byte(phase)); err != nil {
						return cli.UsageError{Err: err}
					}
				}
				records := ownPatches(p.Patches, pyreader.Selection{Backend: backend, Phase: string(only)})
				return printRecords(prog, records, output.OutputFormat)
			})
		},
	}
	cmd.Flags().StringVar(&backend, "backend", "", "only patches that this `FRAMEWORK` may get")
	cmd.Flags().StringVar(&phase, "phase", "", "only patches of this `PHASE`")
	output.addFlag(cmd)
	return cmd
}

// ownPatches returns the patches of this program that are in a selection.
func ownPatches(set *patch.Set, only pyreader.Selection) []pyreader.Record {
	return slices.DeleteFunc(pyreader.Own(set), func(r pyreader.Record) bool { return !only.Has(&r) })
}
