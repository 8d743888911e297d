package python

import (
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/pyrepr"
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
		return pyrepr.Float(f)
	case document.KindString:
		return pyrepr.Quote(v.Text())
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
			words = append(words, pyrepr.Quote(key)+": "+repr(each))
		}
		return "{" + strings.Join(words, ", ") + "}"
	}
	return v.Text()
}
