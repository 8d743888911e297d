package placement

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/secret"
)

// WithVariables renders a document with variables in place of secrets, and returns the parameters
// by variable. Secrets of one name with different values have different variables.
func WithVariables(m *document.Map) ([]byte, map[string]string, error) {
	h := hider{params: map[string]string{}, values: map[string]string{}}
	text, err := formats.YAML{}.Render(h.mapping("", m), false)
	for name := range h.params {
		text = bytes.ReplaceAll(text, []byte(mark(name)), []byte("${"+name+"}"))
	}
	return text, h.params, err
}

// mark stands for a variable in a document, which rendering leaves alone.
func mark(name string) string { return "primus-secret." + name + ";" }

// hider puts variables in place of secrets.
type hider struct{ params, values map[string]string } // by variable

func (h hider) mapping(prefix string, m *document.Map) *document.Map {
	var b document.Builder
	for key, v := range m.All() {
		b.Set(key, h.value(prefix+key, key, v))
	}
	return b.Map()
}

// value returns the value of a key without secrets.
func (h hider) value(path, key string, v document.Value) document.Value {
	if nested, ok := v.Map(); ok {
		return document.MapValue(h.mapping(path+".", nested))
	}
	if items, ok := v.List(); ok {
		hidden := make([]document.Value, len(items))
		for i, item := range items {
			hidden[i] = h.value(fmt.Sprintf("%s[%d]", path, i), key, item)
		}
		return document.ListValue(hidden)
	}
	text, ok := v.Str()
	if !ok || !secret.Value(key, text) {
		return v
	}
	base := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(key))
	name := base
	for n := 2; h.params[name] != "" && h.values[name] != text; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	if h.params[name] == "" {
		h.params[name], h.values[name] = path, text
	}
	return document.StringValue(mark(name))
}
