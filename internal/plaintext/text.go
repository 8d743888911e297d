package plaintext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quantity writes a number with its noun.
func Quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// OrUnknown returns a version, or "unknown" for none.
func OrUnknown(version string) string {
	if version == "" {
		return "unknown"
	}
	return version
}

// Count writes a number, and "-" for zero, so that other numbers stand out.
func Count(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// Printable replaces each byte and rune that a terminal would not show as text by a dot.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) && r != '\n' && r != '\t' {
			return '·'
		}
		return r
	}, s)
}

// indentWidth is how far Indent indents.
const indentWidth = 2

// Indent indents every line by two spaces.
func Indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}
