package plaintext

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is rows of cells below a header.
type Table struct {
	header   table.Row
	rows     []table.Row
	columns  []table.ColumnConfig
	optional []string
}

// NewTable returns a table with a header, a line below it and two spaces between columns. The
// columns in right, counted from 1, are aligned to the right.
func NewTable(header table.Row, right ...int) *Table {
	t := &Table{header: header, columns: make([]table.ColumnConfig, len(header))}
	for i := range t.columns {
		align := text.AlignLeft
		if slices.Contains(right, i+1) {
			align = text.AlignRight
		}
		t.columns[i] = table.ColumnConfig{
			Number: i + 1, Align: align, AlignHeader: align, Transformer: escaped, WidthMaxEnforcer: text.WrapSoft,
		}
	}
	return t
}

// Optional names the columns that a narrow terminal does without, the least important one first.
func (t *Table) Optional(columns ...string) *Table {
	t.optional = columns
	return t
}

// AppendRow adds a row.
func (t *Table) AppendRow(row table.Row) { t.rows = append(t.rows, row) }

// AppendRows adds rows.
func (t *Table) AppendRows(rows []table.Row) { t.rows = append(t.rows, rows...) }

// Length returns the number of rows.
func (t *Table) Length() int { return len(t.rows) }

// RenderMarkdown returns all of the table as Markdown.
func (t *Table) RenderMarkdown() string { return t.writer(t.columns).RenderMarkdown() }

func (t *Table) writer(columns []table.ColumnConfig) table.Writer {
	style := table.StyleDefault
	style.Name = "plain"
	style.Box.PaddingLeft, style.Box.PaddingRight = "", gap
	style.Box.MiddleHorizontal = "─"
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	w := table.NewWriter()
	w.SetStyle(style)
	w.AppendHeader(t.header)
	w.AppendRows(t.rows)
	w.SetColumnConfigs(columns)
	return w
}

// gap follows each column.
const gap = "  "

// escaped is how a cell is printed: tables hold texts of plugins and of other processes.
func escaped(cell any) string { return Lines(fmt.Sprint(cell), "") }

// Screen is a writer that tables are fitted to.
type Screen interface {
	io.Writer
	Columns() int // 0 is no limit
}

// Render returns a table for out, without spaces at the ends of lines. If out is a [Screen] that is
// too narrow, the table lacks optional columns, which a last line names, and long texts are
// wrapped: names, too, after a _ or another sign, where that is not enough.
func Render(out io.Writer, t *Table) string { return t.render(columnsOf(out)) }

// columnsOf returns the width of a screen, and 0 for other writers.
func columnsOf(out io.Writer) int {
	if s, ok := out.(Screen); ok {
		return s.Columns()
	}
	return 0
}

func (t *Table) render(width int) string {
	columns, left := t.fitted(width)
	var b strings.Builder
	for line := range strings.Lines(t.writer(columns).Render()) {
		body, end := strings.CutSuffix(line, "\n")
		b.WriteString(strings.TrimRight(body, " "))
		if end {
			b.WriteByte('\n')
		}
	}
	if len(left) > 0 {
		note := fmt.Sprintf("%s left out: %s (--wide shows all)", Quantity(len(left), "column", "columns"), strings.Join(left, ", "))
		b.WriteString("\n" + text.WrapSoft(note, width))
	}
	return b.String()
}

// leastProse is the width down to which a column of texts with several words is wrapped.
const leastProse = 20

// fitted returns the columns as a screen of this width shows them, and the names of those that it
// does without. A table of columns that can be neither wrapped nor left out may be too wide.
func (t *Table) fitted(width int) (columns []table.ColumnConfig, left []string) {
	columns = slices.Clone(t.columns)
	if width <= 0 {
		return columns, nil
	}
	least, most := t.widths()
	sum := func(widths []int) int {
		total := 0
		for i, w := range widths {
			if !columns[i].Hidden {
				total += w + len(gap)
			}
		}
		return total
	}
	for _, name := range t.optional {
		if sum(least) <= width {
			break
		}
		i := slices.Index(t.header, any(name))
		if i < 0 {
			panic(fmt.Sprintf("BUG: a table without a column %q", name))
		}
		columns[i].Hidden = true
		left = append(left, name)
	}
	// What is too much is taken from the widest texts, and then from the widest names.
	widths := slices.Clone(most)
	for _, least := range [][]int{least, t.leastNames()} {
		for sum(widths) > width {
			widest := -1
			for i := range widths {
				if !columns[i].Hidden && widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
			columns[widest].WidthMax, columns[widest].WidthMaxEnforcer = widths[widest], wrapped
		}
	}
	return columns, left
}

// afterSign matches a part of a text that a line may end with.
var afterSign = regexp.MustCompile(`[^\s_./,:=+-]*[\s_./,:=+-]*`)

// wrapped breaks lines that are wider than width between words, and words that are, after signs.
func wrapped(s string, width int) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		now := ""
		for _, word := range strings.Fields(line) {
			parts, space := []string{word}, " "
			if text.StringWidth(word) > width {
				parts = afterSign.FindAllString(word, -1)
			}
			for _, part := range parts {
				switch {
				case now == "":
					now = part
				case text.StringWidth(now+space+part) > width:
					lines, now = append(lines, now), part
				default:
					now += space + part
				}
				space = ""
			}
		}
		lines = append(lines, now)
	}
	return strings.Join(lines, "\n")
}

// longestPart returns the width of the longest part of a text.
func longestPart(s string, parts func(string) []string) (longest int) {
	for _, part := range parts(s) {
		longest = max(longest, text.StringWidth(strings.TrimSpace(part)))
	}
	return longest
}

// leastNames returns for each column the width down to which its texts and names can be wrapped.
func (t *Table) leastNames() []int {
	least := make([]int, len(t.header))
	for i, title := range t.header {
		least[i] = text.LongestLineLen(escaped(title))
		for _, row := range t.rows {
			if i < len(row) {
				least[i] = max(least[i], longestPart(escaped(row[i]), func(s string) []string { return afterSign.FindAllString(s, -1) }))
			}
		}
	}
	return least
}

// widths returns for each column the least and the most columns of a screen that it takes.
func (t *Table) widths() (least, most []int) {
	least, most = make([]int, len(t.header)), make([]int, len(t.header))
	for i, title := range t.header {
		most[i] = text.LongestLineLen(escaped(title))
		prose := false
		for _, row := range t.rows {
			if i < len(row) {
				cell := escaped(row[i])
				most[i] = max(most[i], text.LongestLineLen(cell))
				prose = prose || len(strings.Fields(cell)) > 2
			}
		}
		least[i] = most[i]
		if prose && t.columns[i].Align == text.AlignLeft {
			least[i] = min(most[i], max(leastProse, text.LongestLineLen(escaped(title))))
		}
	}
	return least, most
}

// Dash replaces an empty text in a table.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
