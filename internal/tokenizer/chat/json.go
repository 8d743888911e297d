package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/primus-fl/primus/internal/pyrepr"
)

// jsonStyle is how tojson writes values.
type jsonStyle struct {
	item, pair string // between items, and between key and value
	indent     string // "" for one line
	ascii      bool
	sorted     bool
}

// write writes a value as JSON as Python's json.dumps does. It returns the type of a value that
// JSON does not have, "" if there is none.
func (s jsonStyle) write(w walk, b *strings.Builder, v any, depth int) (unknown string) {
	w = w.into(v)
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(b, v)
	case int64:
		fmt.Fprint(b, v)
	case float64:
		text := pyrepr.Float(v)
		b.WriteString(map[string]string{"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[text])
		if b.Len() == 0 || text[len(text)-1] != 'n' && text[len(text)-1] != 'f' {
			b.WriteString(text)
		}
	case string:
		s.text(b, v)
	case *list:
		return s.items(b, "[", "]", len(v.items), depth, func(i int) string { return s.write(w, b, v.items[i], depth+1) })
	case *Map:
		keys := slices.Clone(v.keys)
		if s.sorted {
			slices.SortStableFunc(keys, func(x, y any) int { c, _ := order(w, x, y); return c })
		}
		return s.items(b, "{", "}", len(keys), depth, func(i int) string {
			name, ok := keys[i].(string)
			if !ok {
				var key strings.Builder
				s.write(w, &key, keys[i], 0) // a key is a scalar
				name = key.String()
			}
			s.text(b, name)
			b.WriteString(s.pair)
			item, _ := v.get(keys[i])
			return s.write(w, b, item, depth+1)
		})
	default:
		return typeName(v)
	}
	return ""
}

func (s jsonStyle) items(b *strings.Builder, open, end string, n, depth int, one func(i int) string) string {
	b.WriteString(open)
	for i := range n {
		if i > 0 {
			b.WriteString(s.item)
		}
		s.line(b, depth+1)
		if unknown := one(i); unknown != "" {
			return unknown
		}
	}
	if n > 0 {
		s.line(b, depth)
	}
	b.WriteString(end)
	return ""
}

func (s jsonStyle) line(b *strings.Builder, depth int) {
	if s.indent != "" {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat(s.indent, depth))
	}
}

func (s jsonStyle) text(b *strings.Builder, text string) {
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < ' ' || s.ascii && r >= 0x7f && r < 0x10000:
			if r == 0x7f {
				b.WriteRune(r)
				continue
			}
			fmt.Fprintf(b, `\u%04x`, r)
		case s.ascii && r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}
