package plaintext

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// NewTable returns a table with a header, a line below it and two spaces between columns. The
// columns in right, counted from 1, are aligned to the right.
func NewTable(header table.Row, right ...int) table.Writer {
	style := table.StyleDefault
	style.Name = "plain"
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Box.MiddleHorizontal = "─"
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}

	columns := make([]table.ColumnConfig, len(header))
	for i := range columns {
		align := text.AlignLeft
		if slices.Contains(right, i+1) {
			align = text.AlignRight
		}
		columns[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, Transformer: escaped}
	}
	t := table.NewWriter()
	t.SetStyle(style)
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	return t
}

// escaped is how a cell is printed: tables hold texts of plugins and of other processes.
func escaped(cell any) string { return Lines(fmt.Sprint(cell), "") }

// Render returns a table without spaces at the ends of lines.
func Render(t table.Writer) string {
	var b strings.Builder
	for line := range strings.Lines(t.Render()) {
		body, end := strings.CutSuffix(line, "\n")
		b.WriteString(strings.TrimRight(body, " "))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Dash replaces an empty text in a table.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
