package plaintext

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line: every character that is not printable, including line feeds and tabs,
// is escaped.
func Text(s string) string { return replace(s, "") }

// Lines returns s with every character that is not printable escaped, except line feeds and tabs.
// Each line after the first begins with indent, so that it cannot look like a line of another
// origin.
func Lines(s, indent string) string {
	s = replace(s, "\n\t")
	if indent == "" {
		return s
	}
	return strings.ReplaceAll(s, "\n", "\n"+indent)
}

// IsPrintable reports whether Text would return s unchanged.
func IsPrintable(s string) bool { return clean(s, "") }

func clean(s, keep string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) }) < 0
}

func replace(s, keep string) string {
	if clean(s, keep) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r), strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}
