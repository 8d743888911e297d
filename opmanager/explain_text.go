package opmanager

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

var _ fmt.Stringer = Explanation{}

// String returns the explanation as text: the impl that serves the op, the order, and a table of
// all impls with the reason why each comes later or is rejected. There is no newline at the end.
func (e Explanation) String() string {
	var b strings.Builder
	if e.Selected == "" {
		fmt.Fprintf(&b, "%s: no impl can be selected, so calls fail\n", e.Op)
	} else {
		fmt.Fprintf(&b, "%s: served by %s\n", e.Op, e.Selected)
	}
	b.WriteString("order: " + e.Tokens + " (" + e.Source + ")")
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
	for _, d := range e.Devices {
		b.WriteString("\n" + d.String())
	}
	for _, line := range e.Tuned {
		b.WriteString("\n" + line)
	}
	if e.Canary != nil {
		b.WriteString("\ncanary: " + e.Canary.String())
	}
	b.WriteByte('\n')
	writeColumns(&b, e.columns())
	return b.String()
}

// column is one column of a table.
type column struct {
	header string
	right  bool // aligns the cells to the right
	cells  []string
}

// columns returns the columns of the table, the rejected impls last, without those that would be
// empty.
func (e Explanation) columns() []column {
	impls := slices.Concat(e.Order, e.Rejected)
	of := func(header string, cell func(i int, s ImplStatus) string) column {
		c := column{header: header}
		for i, s := range impls {
			c.cells = append(c.cells, cell(i, s))
		}
		return c
	}
	rank := of("rank", func(i int, _ ImplStatus) string {
		if i >= len(e.Order) {
			return "-"
		}
		return strconv.Itoa(i + 1)
	})
	priority := of("priority", func(_ int, s ImplStatus) string { return strconv.Itoa(s.Priority) })
	rank.right, priority.right = true, true
	columns := []column{
		rank,
		of("impl", func(_ int, s ImplStatus) string { return s.ID }),
		of("kind", func(_ int, s ImplStatus) string { return s.Kind.String() }),
		of("vendor", func(_ int, s ImplStatus) string { return orDash(s.Vendor) }),
		priority,
	}
	if slices.ContainsFunc(impls, func(s ImplStatus) bool { return s.Determinism != opregistry.DeterminismUndeclared }) {
		columns = append(columns, of("same bits", func(_ int, s ImplStatus) string {
			if s.Determinism == opregistry.DeterminismUndeclared {
				return "-"
			}
			return s.Determinism.String()
		}))
	}
	if slices.ContainsFunc(impls, func(s ImplStatus) bool { return len(s.FlushesSubnormals) > 0 }) {
		columns = append(columns, of("subnormals are 0", func(_ int, s ImplStatus) string {
			return orDash(dtypeNames(s.FlushesSubnormals))
		}))
	}
	if slices.ContainsFunc(impls, func(s ImplStatus) bool { return s.Supports != "" }) {
		columns = append(columns, of("supports", func(_ int, s ImplStatus) string { return orDash(s.Supports) }))
	}
	return append(columns, of("reason", func(_ int, s ImplStatus) string { return s.Reason }))
}

func dtypeNames(dtypes []tensor.DType) string {
	names := make([]string, len(dtypes))
	for i, d := range dtypes {
		names[i] = d.String()
	}
	return strings.Join(names, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// writeColumns writes a header, a line below it and the rows, without trailing spaces.
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
