package commandtest

import (
	"io"
	"strings"
)

// RowsOf returns the rows of the table in the summary, by op and impl.
func RowsOf(summary string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(summary) {
		if f := strings.Fields(line); len(f) >= 6 {
			rows[f[0]+" "+f[1]] = f
		}
	}
	return rows
}

// OneSpace replaces runs of white space by a space, because the widths of columns depend on what
// else is in a table.
func OneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

// FullDisk takes nothing.
type FullDisk struct{}

// Write implements io.Writer.
func (FullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
