// Package pyrepr spells numbers and texts as Python's repr does.
package pyrepr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Float returns the shortest text that Python reads as the same float.
func Float(f float64) string {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case plain(f):
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if abs == math.Trunc(abs) {
			text += ".0"
		}
		return text
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// plain reports whether Python writes a number without an exponent.
func plain(f float64) bool {
	const least, most = 1e-4, 1e16
	abs := math.Abs(f)
	return abs == 0 || abs >= least && abs < most
}

// Quote returns a text in single quotes, or in double quotes if it has single ones only.
func Quote(text string) string {
	quote := '\''
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range text {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
