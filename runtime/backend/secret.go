package backend

import (
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/secret"
)

// WithoutSecrets returns a mapping with asterisks in place of the strings that are secrets by their
// keys.
func WithoutSecrets(m *document.Map) *document.Map {
	var b document.Builder
	for key, v := range m.All() {
		b.Set(key, withoutSecrets(key, v))
	}
	return b.Map()
}

func withoutSecrets(key string, v document.Value) document.Value {
	if nested, ok := v.Map(); ok {
		return document.MapValue(WithoutSecrets(nested))
	}
	if items, ok := v.List(); ok {
		shown := make([]document.Value, len(items))
		for i, item := range items {
			shown[i] = withoutSecrets(key, item)
		}
		return document.ListValue(shown)
	}
	if text, ok := v.Str(); ok && secret.Shown(key, text) != text {
		return v.WithString(secret.Shown(key, text))
	}
	return v
}
