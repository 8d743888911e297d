package command

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/spf13/cobra"
)

func newPatchesCommand(streams Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "patches",
		Short: "Look at the patches of training backends",
		Args:  subcommandOnly,
		RunE:  showHelp,
	}
	cmd.AddCommand(newPatchesListCommand(streams), newPatchesPlanCommand(streams), newPatchesScanCommand(streams),
		newPatchesExplainCommand(streams), newPatchesFindCommand(streams), newPatchesCheckCommand(streams))
	return cmd
}

// patchRow is one patch of `primus patches list`.
type patchRow struct {
	ID          string      `json:"id"`
	Description string      `json:"description"`
	Backend     string      `json:"backend"` // empty means any
	Phase       patch.Phase `json:"phase"`   // empty means any
	Priority    int         `json:"priority"`
	Style       patch.Style `json:"style"`
	Symbols     []string    `json:"symbols"`
	Location    string      `json:"location"`
	Condition   string      `json:"condition"` // empty means always
	Keys        []string    `json:"keys"`
	Backends    []string    `json:"backend_versions"`
	Primus      []string    `json:"primus_versions"`
	Tags        []string    `json:"tags"`
	enabling    string
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

func newPatchesListCommand(streams Streams) *cobra.Command {
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
			return withBackends(cmd.Context(), streams, slog.New(slog.DiscardHandler), func(p planParams) error {
				if _, err := p.Backends.Get(backend); backend != "" && err != nil {
					return usageError{err}
				}
				var only patch.Phase
				if phase != "" {
					if err := only.UnmarshalText([]byte(phase)); err != nil {
						return usageError{err}
					}
				}
				return printPatches(streams, patchRows(p.Patches, backend, only), output.outputFormat)
			})
		},
	}
	cmd.Flags().StringVar(&backend, "backend", "", "only patches that this `FRAMEWORK` may get")
	cmd.Flags().StringVar(&phase, "phase", "", "only patches of this `PHASE`")
	output.addFlag(cmd)
	return cmd
}

// patchRows returns the patches that a backend may get in a phase; empty means any.
func patchRows(set *patch.Set, backend string, phase patch.Phase) []patchRow {
	rows := []patchRow{}
	for _, p := range set.All() {
		if backend != "" && p.Backend != "" && p.Backend != backend || phase != "" && p.Phase != "" && p.Phase != phase {
			continue
		}
		rows = append(rows, patchRow{
			ID: p.ID, Description: p.Description, Backend: p.Backend, Phase: p.Phase, Priority: p.Priority.Int(), Style: p.Style,
			Symbols: list(p.Symbols), Location: p.Location(), Condition: p.Condition.Text, Keys: list(p.Keys),
			Backends: list(p.BackendVersions), Primus: list(p.PrimusVersions), Tags: list(p.Tags), enabling: p.Enabling(),
		})
	}
	return rows
}

// list returns an empty list for none, which JSON shows as such.
func list(items []string) []string { return append([]string{}, items...) }

// logic says what a patch changes.
func (r patchRow) logic() string {
	var names []string
	for _, symbol := range r.Symbols {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(symbol, "arg:"), "env:"))
	}
	what := strings.Join(names, ", ")
	switch r.Style {
	case patch.Replacement:
		return "replaces " + what
	case patch.Wrapping:
		return "wraps " + what
	case patch.ArgRewrite:
		return "N/A (rewrites args: " + what + ")"
	case patch.Environment:
		return "N/A (sets env: " + what + ")"
	}
	return "N/A (lifecycle hook)"
}

var inventoryHeader = table.Row{"Patch", "What it does", "Patch logic", "Code location", "How to enable"}

func printPatches(streams Streams, rows []patchRow, format outputFormat) error {
	switch format {
	case outputJSON:
		return writeJSON(streams.Out, rows)
	case outputMarkdown:
		return printMarkdown(streams, rows)
	}
	t := newTable(inventoryHeader)
	for _, r := range rows {
		t.AppendRow(table.Row{r.ID, r.Description, r.logic(), r.Location, r.enabling})
	}
	_, err := fmt.Fprintln(streams.Out, render(t))
	return err
}

// printMarkdown prints a table for each backend.
func printMarkdown(streams Streams, rows []patchRow) error {
	var faults []error
	for len(rows) > 0 {
		backend := rows[0].Backend
		end := slices.IndexFunc(rows, func(r patchRow) bool { return r.Backend != backend })
		if end < 0 {
			end = len(rows)
		}
		t := table.NewWriter()
		t.AppendHeader(inventoryHeader)
		for _, r := range rows[:end] {
			t.AppendRow(table.Row{"`" + r.ID + "`", r.Description, r.logic(), "`" + r.Location + "`", r.enabling})
		}
		if backend == "" {
			backend = "any backend"
		}
		_, err := fmt.Fprintf(streams.Out, "## %s\n\n%s\n\n", backend, t.RenderMarkdown())
		faults = append(faults, err)
		rows = rows[end:]
	}
	_, err := fmt.Fprintf(streams.Out, "%s (`all`, `none`, `id1,id2`) is a list of the only patches that may run, on top of each patch's own condition.\n", patch.EnvFilter)
	return errors.Join(append(faults, err)...)
}
