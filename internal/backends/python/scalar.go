package python

import (
	"fmt"
	"regexp"
	"strings"
)

// place is the place of a string, which decides how it may be written.
type place int

const (
	inBlock place = iota // a value of a block: it may be folded
	inFlow               // an item in brackets
	asKey                // a key: one line
)

// width is the column after which a line is folded.
const width = 80

// breaks are the line breaks of YAML 1.1.
const breaks = "\n\u0085\u2028\u2029"

// typed matches what YAML 1.1 reads as something else than a string: switches, numbers, null,
// dates, and the keys << and =.
var typed = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`|~|null|Null|NULL|<<|=`,
	`yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF`,
	`[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`,
	`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*`,
	`[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)`,
	`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
	`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?`,
}, "|") + `)$`)

// string writes a string plain if YAML 1.1 then reads it as this string, else in single quotes,
// else in double quotes.
func (w *writer) string(text, indent string, at place) {
	switch {
	case isPlain(text, at):
		w.words(strings.Split(text, " "), indent, at == inBlock)
	case isPrintable(text) && !strings.ContainsAny(text, breaks):
		w.quote(text, indent, at == inBlock)
	case isPrintable(text) && at == inBlock && quotesBreaks(text):
		w.quote(text, indent, true)
	default:
		w.escape(text, indent, at == inBlock)
	}
}

// isPlain reports whether a string needs no quotes.
func isPlain(text string, at place) bool {
	if typed.MatchString(text) || text != strings.Trim(text, " ") || strings.ContainsAny(text, breaks) || !isPrintable(text) {
		return false
	}
	if strings.HasPrefix(text, "---") || strings.HasPrefix(text, "...") || strings.ContainsAny(text[:1], "#,[]{}&*!|>'\"%@`") {
		return false
	}
	if strings.Contains(text, ": ") || strings.HasSuffix(text, ":") || strings.Contains(text, " #") {
		return false
	}
	if text == "-" || text == "?" || strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "? ") {
		return false
	}
	return at != inFlow || !strings.ContainsAny(text, ",:?[]{}")
}

// isPrintable reports whether a string has no characters that need an escape.
func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r != '\n' && escaped(r) }) < 0
}

// escaped reports whether a character needs an escape.
func escaped(r rune) bool {
	switch {
	case r == '\u0085' || r == '\u2028' || r == '\u2029':
		return false
	case r >= ' ' && r <= '~':
		return false
	}
	return r < 0xa0 || r == 0xfeff || r >= 0xd800 && r < 0xe000 || r > 0xfffd && r < 0x10000 || r >= 0x10ffff
}

// quotesBreaks reports whether single quotes keep the line breaks of a string: no space is before
// or after one.
func quotesBreaks(text string) bool {
	var before rune
	for _, r := range text {
		isBreak := strings.ContainsRune(breaks, r)
		if isBreak && before == ' ' || r == ' ' && before != 0 && strings.ContainsRune(breaks, before) {
			return false
		}
		before = r
	}
	return true
}

// words writes words with spaces between them, some of which become the end of a line. An empty
// word is between two spaces, which stay.
func (w *writer) words(words []string, indent string, fold bool) {
	for i, word := range words {
		if i > 0 {
			single := words[i-1] != "" && word != ""
			if fold && single && w.column > width {
				w.newLine(indent)
			} else {
				w.write(" ")
			}
		}
		w.write(word)
	}
}

// quote writes a string in single quotes.
func (w *writer) quote(text, indent string, fold bool) {
	w.write("'")
	for text != "" {
		at := strings.IndexAny(text, breaks)
		if at < 0 {
			at = len(text)
		}
		w.words(strings.Split(strings.ReplaceAll(text[:at], "'", "''"), " "), indent, fold)
		text = text[at:]
		rest := strings.TrimLeft(text, breaks)
		if found := text[:len(text)-len(rest)]; found != "" {
			if found[0] == '\n' {
				w.newLine("")
			}
			for _, r := range found {
				w.b.WriteRune(r)
			}
			w.write(indent)
			w.column = len(indent)
		}
		text = rest
	}
	w.write("'")
}

// pythonEscapes are the characters with an escape of one letter.
var pythonEscapes = map[rune]string{
	0: "0", '\a': "a", '\b': "b", '\t': "t", '\n': "n", '\v': "v", '\f': "f", '\r': "r", 0x1b: "e", '"': `"`, '\\': `\`,
	'\u0085': "N", '\u00a0': "_", '\u2028': "L", '\u2029': "P",
}

// escape writes a string in double quotes. Lines are folded at spaces and next to escapes, with a
// backslash at their end.
func (w *writer) escape(text, indent string, fold bool) {
	w.write(`"`)
	runes := []rune(text)
	var pending []rune
	for i, r := range runes {
		end := width
		special := r == '"' || r == '\\' || escaped(r) || strings.ContainsRune(breaks, r) || r >= 0x10000
		if special {
			w.write(string(pending))
			pending = nil
			w.write(escapeOf(r))
			end++ // a line that ends with an escape may be longer by a column
		}
		if fold && i > 0 && i < len(runes)-1 && (special || r == ' ' || len(pending) == 0) && w.column+len(pending) > end {
			w.write(string(pending) + `\`)
			pending = nil
			w.newLine(indent)
			if r == ' ' || special && runes[i+1] == ' ' {
				w.write(`\`)
			}
		}
		if !special {
			pending = append(pending, r)
		}
	}
	w.write(string(pending) + `"`)
}

func escapeOf(r rune) string {
	letter, ok := pythonEscapes[r]
	switch {
	case ok:
		return `\` + letter
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}
