package torchtitan

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
)

// dump writes a job configuration as TOML: the values of a section before the sections in it.
func dump(config *document.Map) (string, error) {
	var b strings.Builder
	err := writeTable(&b, config, "")
	return b.String(), err
}

func writeTable(b *strings.Builder, m *document.Map, path string) error {
	for key, v := range m.All() {
		if v.Kind() == document.KindMap {
			continue
		}
		text, err := literal(v, document.JoinPath(path, key))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%s = %s\n", quote(key), text)
	}
	for key, v := range m.All() {
		nested, ok := v.Map()
		if !ok {
			continue
		}
		header := quote(key)
		if path != "" {
			header = path + "." + header
		}
		fmt.Fprintf(b, "\n[%s]\n", header)
		if err := writeTable(b, nested, header); err != nil {
			return err
		}
	}
	return nil
}

// literal writes a value other than a table.
func literal(v document.Value, path string) (string, error) {
	switch v.Kind() {
	case document.KindBool, document.KindInt:
		return fmt.Sprint(v.Any()), nil
	case document.KindFloat:
		f, _ := v.Float64()
		return float(f), nil
	case document.KindString:
		text, _ := v.Str()
		return basic(text), nil
	case document.KindList:
		items, _ := v.List()
		words := make([]string, len(items))
		for i, item := range items {
			text, err := literal(item, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return "", err
			}
			words[i] = text
		}
		return "[" + strings.Join(words, ", ") + "]", nil
	}
	return "", &document.Error{Origin: v.Origin(), Path: path, Problem: fmt.Sprintf("given a %s, which a list of TOML for TorchTitan cannot hold", v.Kind())}
}

func float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// quote writes a key, plain where that is possible.
func quote(key string) string {
	plain := strings.IndexFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) < 0
	if plain && key != "" {
		return key
	}
	return basic(key)
}

// basic writes a string with the escapes of TOML.
func basic(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
