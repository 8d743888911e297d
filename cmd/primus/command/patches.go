package command

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/patch/explore"
	"github.com/spf13/cobra"
)

func newPatchesCommand(prog program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "patches",
		Short: "Look at the patches of training backends",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newPatchesListCommand(prog), newPatchesPlanCommand(prog), newPatchesScanCommand(prog),
		newPatchesExplainCommand(prog), newPatchesFindCommand(prog), newPatchesCheckCommand(prog))
	return cmd
}

// inventoryFormat is the value of -o of `primus patches list`.
type inventoryFormat struct{ outputFormat }

const outputMarkdown outputFormat = "md"

// Set implements pflag.Value.
func (f *inventoryFormat) Set(s string) error {
	if outputFormat(strings.ToLower(s)) == outputMarkdown {
		f.outputFormat = outputMarkdown
		return nil
	}
	return f.outputFormat.Set(s)
}

// addFlag gives a command the flag -o.
func (f *inventoryFormat) addFlag(cmd *cobra.Command) {
	cmd.Flags().VarP(f, "output", "o", "table, md or json")
	formats := cobra.FixedCompletions([]string{"table", "md", "json"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("output", formats); err != nil {
		panic("BUG: " + err.Error())
	}
}

func newPatchesListCommand(prog program) *cobra.Command {
	var backend, phase string
	output := inventoryFormat{outputTable}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List every patch: what it does, what it changes, where it is and how it is switched on",
		Example: `  primus patches list
  primus patches list --backend native --phase setup
  primus patches list -o md > patches.md`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withBackends(cmd.Context(), prog, slog.New(slog.DiscardHandler), func(p planParams) error {
				if _, err := p.Backends.Get(backend); backend != "" && err != nil {
					return usageError{err}
				}
				var only patch.Phase
				if phase != "" {
					if err := only.UnmarshalText([]byte(phase)); err != nil {
						return usageError{err}
					}
				}
				records := ownPatches(p.Patches, explore.Selection{Backend: backend, Phase: string(only)})
				return printRecords(prog, records, output.outputFormat)
			})
		},
	}
	cmd.Flags().StringVar(&backend, "backend", "", "only patches that this `FRAMEWORK` may get")
	cmd.Flags().StringVar(&phase, "phase", "", "only patches of this `PHASE`")
	output.addFlag(cmd)
	return cmd
}

// ownPatches returns the patches of this program that are in a selection.
func ownPatches(set *patch.Set, only explore.Selection) []explore.Record {
	return slices.DeleteFunc(explore.Own(set), func(r explore.Record) bool { return !only.Has(&r) })
}
