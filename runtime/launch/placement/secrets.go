package placement

import (
	"bytes"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/secret"
)

// WithVariables renders a document with variables in place of secrets, and returns the parameters
// by variable.
func WithVariables(m *document.Map) ([]byte, map[string]string, error) {
	secrets := map[string]string{}
	mark := func(name string) string { return "primus-secret." + name + ";" } // which rendering leaves alone
	var walk func(prefix string, m *document.Map) *document.Map
	walk = func(prefix string, m *document.Map) *document.Map {
		b := document.NewBuilder(nil)
		for key, v := range m.All() {
			if nested, ok := v.Map(); ok {
				v = document.MapValue(walk(prefix+key+".", nested))
			}
			if text, ok := v.Str(); ok && secret.Value(key, text) {
				name := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))
				secrets[name] = prefix + key
				v = document.StringValue(mark(name))
			}
			b.Set(key, v)
		}
		return b.Map()
	}
	text, err := formats.YAML{}.Render(walk("", m), false)
	for name := range secrets {
		text = bytes.ReplaceAll(text, []byte(mark(name)), []byte("${"+name+"}"))
	}
	return text, secrets, err
}
