package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/primus-fl/primus/internal/launch/placement"
	"github.com/primus-fl/primus/internal/plaintext"
)

// Placement returns for out the text of what a launcher does so that a run takes place elsewhere,
// with the settings of these launchers.
func Placement(out io.Writer, p *placement.Plan, s *placement.Settings, elsewhere []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "launcher %s: none of this is done\n", strings.Join(elsewhere, ","))
	if p.Argv != nil {
		fmt.Fprintf(&b, "\n  %s\n", p.Shell())
	}
	for _, f := range p.Files {
		fmt.Fprintf(&b, "\nfile %s\n\n%s\n", f.Path, plaintext.Indent(f.Content))
	}
	if p.Manifest != "" {
		fmt.Fprintf(&b, "\nmanifest\n\n%s\n", plaintext.Indent(p.Manifest))
	}
	t := plaintext.NewTable(table.Row{"setting", "value", "from"})
	for _, v := range s.Values(elsewhere...) {
		t.AppendRow(table.Row{v.Path, v.Text, v.Source})
	}
	fmt.Fprintf(&b, "\nlauncher settings\n\n%s\n", plaintext.Render(out, t))
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", note)
	}
	for _, fault := range p.Faults {
		fmt.Fprintf(&b, "\nproblem: %v\n", fault)
	}
	b.WriteString("\nThere primus does this:\n\n")
	return b.String()
}
