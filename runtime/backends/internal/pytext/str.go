package pytext

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/primus-fl/primus/document"
)

// Str returns what Python's str returns for a value.
func Str(v document.Value) string {
	if text, ok := v.Str(); ok {
		return text
	}
	return repr(v)
}

func repr(v document.Value) string {
	switch v.Kind() {
	case document.KindNull:
		return "None"
	case document.KindBool:
		if on, _ := v.Bool(); on {
			return "True"
		}
		return "False"
	case document.KindFloat:
		f, _ := v.Float64()
		return reprFloat(f)
	case document.KindString:
		return reprString(v.Text())
	case document.KindList:
		items, _ := v.List()
		words := make([]string, len(items))
		for i, each := range items {
			words[i] = repr(each)
		}
		return "[" + strings.Join(words, ", ") + "]"
	case document.KindMap:
		m, _ := v.Map()
		var words []string
		for key, each := range m.All() {
			words = append(words, reprString(key)+": "+repr(each))
		}
		return "{" + strings.Join(words, ", ") + "}"
	}
	return v.Text()
}

func reprFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case plainFloat(f):
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// plainFloat reports whether Python writes a number without an exponent.
func plainFloat(f float64) bool {
	const least, most = 1e-4, 1e16
	abs := math.Abs(f)
	return abs == 0 || abs >= least && abs < most
}

// reprString quotes a text with single quotes, or with double quotes where it has single ones only.
func reprString(text string) string {
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
