package plaintext

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	assert.Contains(t, Render(&narrow{columns: 40}, paths), "/a/long/path/that/people/copy")
	assert.Equal(t, "path\n────────────\n/a/long/\npath/that/\npeople/\ncopy", Render(&narrow{columns: 12}, paths))
}

func TestMarkdownHasAllColumns(t *testing.T) {
	out := &narrow{columns: 24}
	section := Section{Title: "runs", Header: table.Row{"run", "why"}, Rows: []table.Row{{"first", "a text of several words that goes on"}}, Optional: []string{"run"}}
	assert.NoError(t, WriteSections(out, true, []Section{section}))
	assert.Contains(t, out.String(), "| first | a text of several words that goes on |")

	out.Reset()
	assert.NoError(t, WriteSections(out, false, []Section{section}))
	assert.LessOrEqual(t, text.LongestLineLen(strings.TrimRight(out.String(), "\n")), 24, out.String())
	assert.NotContains(t, out.String(), "first")
}

func TestTableOfLongNames(t *testing.T) {
	out := &narrow{columns: 60}
	names := NewTable(table.Row{"op", "impl", "seconds", "why"}, 3).Optional("why")
	names.AppendRow(table.Row{"multi_tensor_compute_scale_and_scale_inv", "vendor.of_a_long_name", 1.5, "the first"})
	names.AppendRow(table.Row{"gelu", "default.flagos", 2, ""})
	assert.Equal(t, strings.TrimPrefix(`
op                          impl                   seconds
────────────────────────────────────────────────────────────
multi_tensor_compute_       vendor.of_a_long_name      1.5
scale_and_scale_inv
gelu                        default.flagos               2
1 column left out: why (--wide shows all)`, "\n"), Render(out, names))
	out.columns = 160
	assert.Contains(t, Render(out, names), "multi_tensor_compute_scale_and_scale_inv  vendor.of_a_long_name")
}

// A table is never wider than its screen if the parts of its names fit beside each other.
func TestTablesFitTheirScreens(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := func(most int) string {
		var cells []string
		for range 1 + r.IntN(most) {
			cells = append(cells, strings.Repeat("xxxx"+string("_./,:=+-"[r.IntN(8)]), 1+r.IntN(8)))
		}
		return strings.Join(cells, " ")
	}
	joined := func(s string) string { return strings.Join(strings.Fields(s), "") }
	for range 2000 {
		columns := 2 + r.IntN(8)
		header, right, optional := table.Row{}, []int(nil), []string(nil)
		for i := range columns {
			header = append(header, fmt.Sprint("t", strings.Repeat("i", r.IntN(6)), i))
			if r.IntN(3) == 0 {
				right = append(right, i+1)
			}
			if i > 0 && r.IntN(3) == 0 {
				optional = append(optional, header[i].(string))
			}
		}
		all, row := NewTable(header, right...).Optional(optional...), table.Row{}
		for i := range header {
			row = append(row, words(1+4*(i%2)))
		}
		all.AppendRow(row)
		shown := Render(&narrow{columns: 80}, all)
		assert.LessOrEqual(t, text.LongestLineLen(shown), 80, shown)

		one := NewTable(table.Row{"op"}) // a name that is wrapped is whole
		one.AppendRow(table.Row{row[0]})
		assert.Contains(t, joined(Render(&narrow{columns: 20}, one)), joined(row[0].(string)))
	}
}

func TestTableOfAnyWidth(t *testing.T) {
	for width := range 120 {
		shown := Render(&narrow{columns: width}, runsTable())
		assert.Contains(t, strings.Join(strings.Fields(shown), " "), "local/", width)
		if width >= 36 { // a name, and the narrowest text
			assert.Contains(t, shown, "local/first", width)
			assert.LessOrEqual(t, text.LongestLineLen(shown), width, shown)
		}
	}
}
