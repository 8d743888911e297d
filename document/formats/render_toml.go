package formats

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/primus-fl/primus/document"
)

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// tomlWriter renders one document.
type tomlWriter struct {
	b       bytes.Buffer
	origins bool
	foreign bool
}

// Render implements document.Renderer.
func (f TOML) Render(m *document.Map, origins bool) ([]byte, error) {
	w := &tomlWriter{origins: origins, foreign: f.Foreign}
	if err := w.table(m, nil); err != nil {
		return nil, err
	}
	return w.b.Bytes(), nil
}

// table writes the values of a table and then its tables: a value after the header of a table would
// belong to that one.
func (w *tomlWriter) table(m *document.Map, path []string) error {
	for key, value := range m.All() {
		if value.Kind() == document.KindMap {
			continue
		}
		text, err := w.text(value, append(path, key), false)
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
func (w *tomlWriter) note(v document.Value) {
	if note := v.Note(); w.origins && note != "" {
		w.b.WriteString(" # " + note)
	}
	w.b.WriteByte('\n')
}

// text spells a value on one line.
func (w *tomlWriter) text(v document.Value, path []string, inList bool) (string, error) {
	fail := func(problem, hint string) (string, error) {
		return "", &document.Error{Origin: v.Origin(), Path: strings.Join(path, "."), Problem: problem, Hint: hint}
	}
	switch v.Kind() {
	case document.KindNull:
		switch {
		case w.foreign:
			return fail("TOML has no null", "leave it out")
		case inList:
			return fail("TOML has no null in lists", "write YAML or JSON")
		}
		return tomlString("null"), nil
	case document.KindString:
		text, _ := v.Str()
		if !w.foreign {
			text = document.Escape(text)
		}
		return tomlString(text), nil
	case document.KindFloat:
		return strings.NewReplacer(".inf", "inf", ".nan", "nan").Replace(v.String()), nil
	case document.KindInt:
		if _, fits := v.Int64(); !fits {
			return fail("TOML has no int of more than 64 bits", "write YAML or JSON")
		}
		return v.String(), nil
	case document.KindBytes:
		return fail("TOML has no bytes", "write YAML")
	case document.KindList:
		return w.list(v, path)
	case document.KindMap:
		return w.inline(v, path, inList)
	}
	return v.String(), nil
}

func (w *tomlWriter) list(v document.Value, path []string) (string, error) {
	items, _ := v.List()
	texts := make([]string, len(items))
	for i, item := range items {
		text, err := w.text(item, indexed(path, i), true)
		if err != nil {
			return "", err
		}
		texts[i] = text
	}
	return "[" + strings.Join(texts, ", ") + "]", nil
}

func (w *tomlWriter) inline(v document.Value, path []string, inList bool) (string, error) {
	fields, _ := v.Map()
	var texts []string
	for key, value := range fields.All() {
		text, err := w.text(value, append(path, key), inList)
		if err != nil {
			return "", err
		}
		texts = append(texts, tomlKey(key)+" = "+text)
	}
	return "{" + strings.Join(texts, ", ") + "}", nil
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
