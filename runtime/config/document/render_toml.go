package document

import (
	"bytes"
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlWriter renders one document.
type tomlWriter struct {
	b       bytes.Buffer
	origins bool
}

func renderTOML(m *Map, origins bool) ([]byte, error) {
	w := &tomlWriter{origins: origins}
	if err := w.table(m, nil); err != nil {
		return nil, err
	}
	return w.b.Bytes(), nil
}

// table writes the values of a table and then its tables: a value behind the header of a table would belong to that one.
func (w *tomlWriter) table(m *Map, path []string) error {
	for key, value := range m.All() {
		if value.Kind() == KindMap {
			continue
		}
		text, err := tomlText(value, append(path, key), false)
		if err != nil {
			return err
		}
		w.b.WriteString(tomlKey(key) + " = " + text)
		w.note(value)
	}
	for key, value := range m.All() {
		nested, ok := value.Map()
		if !ok {
			continue
		}
		below := append(path[:len(path):len(path)], key)
		keys := make([]string, len(below))
		for i, segment := range below {
			keys[i] = tomlKey(segment)
		}
		if w.b.Len() > 0 {
			w.b.WriteByte('\n')
		}
		w.b.WriteString("[" + strings.Join(keys, ".") + "]")
		w.note(value)
		if err := w.table(nested, below); err != nil {
			return err
		}
	}
	return nil
}

// note ends the line, with a comment where origins are wanted.
func (w *tomlWriter) note(v Value) {
	if note := v.note(); w.origins && note != "" {
		w.b.WriteString(" # " + note)
	}
	w.b.WriteByte('\n')
}

// tomlText spells a value on one line.
func tomlText(v Value, path []string, inList bool) (string, error) {
	fail := func(problem, hint string) (string, error) {
		return "", &Error{Origin: v.Origin(), Path: strings.Join(path, "."), Problem: problem, Hint: hint}
	}
	switch d := v.data.(type) {
	case nil:
		if inList {
			return fail("TOML has no null in lists", "write YAML or JSON")
		}
		return tomlString("null"), nil
	case string:
		return tomlString(protect(d)), nil
	case float64:
		return strings.NewReplacer(".inf", "inf", ".nan", "nan").Replace(formatFloat(d)), nil
	case *big.Int:
		return fail("TOML has no int of more than 64 bits", "write YAML or JSON")
	case []byte:
		return fail("TOML has no bytes", "write YAML")
	case []Value:
		items := make([]string, len(d))
		for i, item := range d {
			text, err := tomlText(item, indexed(path, i), true)
			if err != nil {
				return "", err
			}
			items[i] = text
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	case *Map:
		var items []string
		for key, value := range d.All() {
			text, err := tomlText(value, append(path, key), inList)
			if err != nil {
				return "", err
			}
			items = append(items, tomlKey(key)+" = "+text)
		}
		return "{" + strings.Join(items, ", ") + "}", nil
	}
	return v.canonical(), nil
}

// indexed appends an index to the last segment of a path.
func indexed(path []string, i int) []string {
	last := len(path) - 1
	return append(path[:last:last], fmt.Sprintf("%s[%d]", path[last], i))
}

func tomlKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return tomlString(key)
}

// tomlString quotes text as a basic string.
func tomlString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
