package patches

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/cmd/primus/command/internal/experiments"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/spf13/cobra"
)

func newPatchesScanCommand(prog cli.Program) *cobra.Command {
	var repo string
	var only pyreader.Selection
	output := inventoryFormat{cli.OutputTable}
	cmd := &cobra.Command{
		Use:   "scan --repo DIR",
		Short: "List the patches of a checkout of Primus, read from its source without Python",
		Example: `  primus patches scan --repo ~/Primus
  primus patches scan --repo ~/Primus --backend megatron --phase build_args
  primus patches scan --repo ~/Primus -o md > patches.md`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := experiments.OpenCheckout(cmd.Context(), prog, repo)
			if err != nil {
				return err
			}
			records, err := c.Select(only)
			if err != nil {
				return cli.UsageError{Err: err}
			}
			if err := printRecords(prog, records, output.OutputFormat); err != nil || output.OutputFormat != cli.OutputTable {
				return err
			}
			return printRemarks(prog, c, records)
		},
	}
	experiments.RepoFlag(cmd, &repo)
	flags := cmd.Flags()
	flags.StringVar(&only.Backend, "backend", "", "only patches that this `FRAMEWORK` may get")
	flags.StringVar(&only.Phase, "phase", "", "only patches of this `PHASE`")
	flags.StringVar(&only.Tag, "tag", "", "only patches with this `TAG`")
	output.addFlag(cmd)
	return cmd
}

// printRecords prints patches, of a checkout or of this program.
func printRecords(prog cli.Program, records []pyreader.Record, format cli.OutputFormat) error {
	switch format {
	case cli.OutputJSON:
		return cli.WriteJSON(prog.Out, records)
	case outputMarkdown:
		return printRecordsMarkdown(prog, records)
	}
	t := plaintext.NewTable(table.Row{"patch", "what it does", "backend", "phase", "priority", "what it changes", "when", "where"}, 5).
		Optional("priority", "where", "when", "backend", "phase")
	for _, r := range records {
		when := "always"
		if r.Condition != nil {
			when = r.Condition.Words
		}
		t.AppendRow(table.Row{r.ID, r.Summary(), orAny(r.Backend), orAny(r.Phase), r.Priority, r.Logic(), when, r.Location()})
	}
	_, err := fmt.Fprintln(prog.Out, plaintext.Render(prog.Out, t))
	return err
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}

// printRemarks prints how many patches there are, and what is not a patch in force.
func printRemarks(prog cli.Program, c *pyreader.Checkout, records []pyreader.Record) error {
	var b strings.Builder
	effective := 0
	for _, r := range records {
		if r.Effective {
			effective++
		}
	}
	fmt.Fprintf(&b, "%d patches in %d registrations\n", effective, len(records))
	for _, r := range records {
		if winner, ok := c.Find(r.ID); ok && !r.Effective {
			fmt.Fprintf(&b, "duplicate: %s at %s is replaced by the later one at %s\n", r.ID, r.Location(), winner.Location())
		}
		for _, unknown := range r.Unknown {
			fmt.Fprintf(&b, "unknown: %s at %s: %s\n", r.ID, r.Location(), unknown)
		}
	}
	for _, d := range c.Disabled {
		fmt.Fprintf(&b, "commented out: %s at %s:%d\n", d.ID, d.File, d.Line)
	}
	for _, d := range c.Inactive {
		fmt.Fprintf(&b, "not imported: %s at %s:%d\n", d.ID, d.File, d.Line)
	}
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}

var inventoryHeader = table.Row{"Patch", "What it does", "Patch logic", "Code location", "How to enable"}

// printRecordsMarkdown prints a table for each folder of patches of each backend.
func printRecordsMarkdown(prog cli.Program, records []pyreader.Record) error {
	var titles []string
	tables := map[string]table.Writer{}
	for _, r := range records {
		if !r.Effective {
			continue
		}
		title := orAny(r.BackendDir)
		if r.Group != "(top)" {
			title += "/" + r.Group
		}
		if tables[title] == nil {
			tables[title] = table.NewWriter()
			tables[title].AppendHeader(inventoryHeader)
			titles = append(titles, title)
		}
		tables[title].AppendRow(table.Row{"`" + r.ID + "`", r.Summary(), r.Logic(), "`" + r.Location() + "`", r.Enabling()})
	}
	var b strings.Builder
	for _, title := range titles {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", title, tables[title].RenderMarkdown())
	}
	fmt.Fprintf(&b, "%s (`all`, `none`, `id1,id2`) is a list of the only patches that may run, on top of each patch's own condition.\n", patch.EnvFilter)
	_, err := fmt.Fprint(prog.Out, b.String())
	return err
}
