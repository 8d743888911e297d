package plaintext

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Section is a part of a report: lines of text, and a table if it has a header.
type Section struct {
	Title  string
	Lines  []string
	Header table.Row
	Right  []int // columns aligned to the right, counted from 1
	Rows   []table.Row

	Optional []string // columns that a narrow terminal does without, the least important one first
}

// WriteSections prints sections as text, or as Markdown.
func WriteSections(out io.Writer, markdown bool, sections []Section) error {
	var b strings.Builder
	for i, s := range sections {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch {
		case s.Title == "":
		case markdown:
			fmt.Fprintf(&b, "## %s\n\n", s.Title)
		default:
			fmt.Fprintf(&b, "%s\n", s.Title)
		}
		for _, line := range s.Lines {
			switch {
			case markdown:
				fmt.Fprintf(&b, "- %s\n", strings.Join(strings.Fields(escaped(line)), " "))
			case s.Title == "":
				fmt.Fprintf(&b, "%s\n", escaped(line))
			default:
				fmt.Fprintf(&b, "  %s\n", escaped(line))
			}
		}
		if s.Header == nil {
			continue
		}
		if len(s.Lines) > 0 {
			b.WriteByte('\n')
		}
		t := NewTable(s.Header, s.Right...).Optional(s.Optional...)
		t.AppendRows(s.Rows)
		if markdown {
			b.WriteString(t.RenderMarkdown() + "\n")
		} else {
			b.WriteString(Indent(t.render(columnsOf(out)-indentWidth)) + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
