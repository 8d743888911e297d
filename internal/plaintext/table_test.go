package plaintext

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
)

// narrow is a screen of this many columns.
type narrow struct {
	bytes.Buffer
	columns int
}

func (n *narrow) Columns() int { return n.columns }

func runsTable() *Table {
	t := NewTable(table.Row{"run", "model", "loss", "why"}, 3).Optional("model", "loss")
	t.AppendRow(table.Row{"local/first", "llama_2M", 1.25, "a text of several words that goes on and on"})
	t.AppendRow(table.Row{"local/second", "-", 2, "short"})
	return t
}

func TestTableFitsItsScreen(t *testing.T) {
	for _, tt := range []struct {
		width      int
		want, left []string
	}{
		{0, []string{"run", "model", "loss", "why"}, nil},
		{85, []string{"run", "model", "loss", "why"}, nil},
		{60, []string{"run", "model", "loss", "why"}, nil}, // wrapped
		{50, []string{"run", "loss", "why"}, []string{"model"}},
		{36, []string{"run", "why"}, []string{"model", "loss"}},
	} {
		t.Run(fmt.Sprint(tt.width), func(t *testing.T) {
			shown := Render(&narrow{columns: tt.width}, runsTable())
			lines := strings.Split(shown, "\n")
			assert.Equal(t, tt.want, strings.Fields(lines[0]))
			if tt.width > 0 {
				assert.LessOrEqual(t, text.LongestLineLen(shown), tt.width, shown)
			}
			note := ""
			if tt.left != nil {
				note = "left out: " + strings.Join(tt.left, ", ") + " (--wide shows all)"
			}
			flat := strings.Join(strings.Fields(shown), " ")
			assert.Equal(t, note != "", strings.Contains(flat, "left out"), shown)
			assert.Contains(t, flat, note)
			for _, cell := range []string{"local/first", "local/second", "goes", "short"} {
				assert.Contains(t, shown, cell)
			}
		})
	}
}

func TestTableIsWholeWithoutScreen(t *testing.T) {
	var out bytes.Buffer
	assert.Equal(t, Render(&narrow{}, runsTable()), Render(&out, runsTable()))
	assert.NotContains(t, Render(&out, runsTable()), "left out")
}

func TestTableOfNarrowColumnsIsNotBroken(t *testing.T) {
	paths := NewTable(table.Row{"path"})
	paths.AppendRow(table.Row{"/a/long/path/that/people/copy"})
	assert.Contains(t, Render(&narrow{columns: 10}, paths), "/a/long/path/that/people/copy")
}

func TestMarkdownHasAllColumns(t *testing.T) {
	out := &narrow{columns: 20}
	section := Section{Title: "runs", Header: table.Row{"run", "why"}, Rows: []table.Row{{"first", "a text of several words that goes on"}}, Optional: []string{"run"}}
	assert.NoError(t, WriteSections(out, true, []Section{section}))
	assert.Contains(t, out.String(), "| first | a text of several words that goes on |")

	out.Reset()
	assert.NoError(t, WriteSections(out, false, []Section{section}))
	assert.LessOrEqual(t, text.LongestLineLen(strings.TrimRight(out.String(), "\n")), 24, out.String())
	assert.NotContains(t, out.String(), "first")
}

func TestTableOfAnyWidth(t *testing.T) {
	for width := range 120 {
		shown := Render(&narrow{columns: width}, runsTable())
		assert.Contains(t, shown, "local/first", width)
		if width >= 36 { // a name, and the narrowest text
			assert.LessOrEqual(t, text.LongestLineLen(shown), width, shown)
		}
	}
}
