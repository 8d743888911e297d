package command

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// plainStyle is how tables look: columns apart by two blanks, a line under the header.
var plainStyle = func() table.Style {
	s := table.StyleDefault
	s.Name = "plain"
	s.Box.PaddingLeft, s.Box.PaddingRight = "", "  "
	s.Format.Header, s.Format.Footer = text.FormatDefault, text.FormatDefault
	s.Options = table.Options{SeparateHeader: true}
	s.Box.MiddleHorizontal = "─"
	return s
}()

// alignColumns sets the first columns of a table to the left and the others, up to a total, to the right.
func alignColumns(left, total int) []table.ColumnConfig {
	columns := make([]table.ColumnConfig, total)
	for i := range columns {
		align := text.AlignRight
		if i < left {
			align = text.AlignLeft
		}
		columns[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	return columns
}
