package opmanager

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/opregistry"
)

var _ fmt.Stringer = Explanation{}

// String says on several lines which impl serves the op, by which order, and then on a line for each impl
// why it comes later or is rejected. The last line ends without a line break.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Selected == "" {
		fmt.Fprintf(&b, "%s: no impl can be selected, so calls fail\n", e.Op)
	} else {
		fmt.Fprintf(&b, "%s: served by %s\n", e.Op, e.Selected)
	}
	b.WriteString("order: " + e.Tokens + inBrackets(e.Source))
	if e.Follows != "" {
		b.WriteString("; ranked as " + e.Follows + ", with which it shares saved state")
	}
	if e.Rules != "" {
		b.WriteString("\nrules: " + e.Rules)
	}
	if e.Call != nil {
		fmt.Fprintf(&b, "\ncalls: first operand %v", e.Call.DType)
		if e.Call.Shape != nil {
			b.WriteString(e.Call.Shape.String())
		}
	}
	b.WriteByte('\n')
	writeColumns(&b, e.columns())
	return b.String()
}

// column is one column of a table.
type column struct {
	header string
	right  bool // numbers end below each other
	cells  []string
}

// columns returns the impls in order, the rejected ones last. What no impl declares has no column.
func (e Explanation) columns() []column {
	impls := slices.Concat(e.Order, e.Rejected)
	of := func(header string, cell func(i int, s Standing) string) column {
		c := column{header: header}
		for i, s := range impls {
			c.cells = append(c.cells, cell(i, s))
		}
		return c
	}
	rank := of("rank", func(i int, _ Standing) string {
		if i >= len(e.Order) {
			return "-"
		}
		return strconv.Itoa(i + 1)
	})
	priority := of("priority", func(_ int, s Standing) string { return strconv.Itoa(s.Priority) })
	rank.right, priority.right = true, true
	columns := []column{
		rank,
		of("impl", func(_ int, s Standing) string { return s.ID }),
		of("kind", func(_ int, s Standing) string { return s.Kind.String() }),
		of("vendor", func(_ int, s Standing) string { return orDash(s.Vendor) }),
		priority,
	}
	if slices.ContainsFunc(impls, func(s Standing) bool { return s.Determinism != opregistry.DeterminismUndeclared }) {
		columns = append(columns, of("same bits", func(_ int, s Standing) string {
			if s.Determinism == opregistry.DeterminismUndeclared {
				return "-"
			}
			return s.Determinism.String()
		}))
	}
	if slices.ContainsFunc(impls, func(s Standing) bool { return s.Supports != "" }) {
		columns = append(columns, of("supports", func(_ int, s Standing) string { return orDash(s.Supports) }))
	}
	return append(columns, of("reason", func(_ int, s Standing) string { return s.Reason }))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// writeColumns writes a header, a line below it and the rows, without spaces at the ends of lines.
func writeColumns(b *strings.Builder, columns []column) {
	const gap = 2
	widths, total := make([]int, len(columns)), 0
	for i, c := range columns {
		for _, cell := range append(c.cells, c.header) {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
		total += widths[i] + gap
	}
	line := func(cell func(column) string) {
		var text strings.Builder
		for i, c := range columns {
			content := cell(c)
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(content))
			if c.right {
				text.WriteString(padding + content)
			} else {
				text.WriteString(content + padding)
			}
			text.WriteString(strings.Repeat(" ", gap))
		}
		b.WriteString(strings.TrimRight(text.String(), " "))
	}
	line(func(c column) string { return c.header })
	b.WriteString("\n" + strings.Repeat("─", total))
	for row := range columns[0].cells {
		b.WriteByte('\n')
		line(func(c column) string { return c.cells[row] })
	}
}
