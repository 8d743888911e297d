package maxtext

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
)

// dump writes a mapping as PyYAML does: block style with sorted keys, by the rules of YAML 1.1,
// whose floats have a point.
func dump(values map[string]document.Value) (string, error) {
	if len(values) == 0 {
		return "{}\n", nil
	}
	var b strings.Builder
	if err := writeMap(&b, values, 0); err != nil {
		return "", err
	}
	return b.String(), nil
}

func writeMap(b *strings.Builder, values map[string]document.Value, indent int) error {
	for _, key := range sorted(values) {
		fmt.Fprintf(b, "%s%s:", strings.Repeat(" ", indent), quoted(key))
		if err := writeValue(b, values[key], indent, false); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// writeValue writes what follows the colon of a key or the dash of an item, with the end of the
// line.
func writeValue(b *strings.Builder, v document.Value, indent int, item bool) error {
	const step = 2
	if m, ok := v.Map(); ok && m.Len() > 0 {
		values := maps.Collect(m.All())
		if !item {
			b.WriteByte('\n')
			return writeMap(b, values, indent+step)
		}
		var below strings.Builder
		if err := writeMap(&below, values, indent+step); err != nil {
			return err
		}
		b.WriteString(" " + strings.TrimLeft(below.String(), " "))
		return nil
	}
	if items, ok := v.List(); ok && len(items) > 0 {
		if !item {
			b.WriteByte('\n')
		}
		for i, each := range items {
			lead := strings.Repeat(" ", indent)
			if item {
				lead = strings.Repeat(" ", indent+step)
				if i == 0 {
					lead = " "
				}
			}
			b.WriteString(lead + "-")
			below := indent
			if item {
				below += step
			}
			if err := writeValue(b, each, below, true); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := inline(v)
	if err != nil {
		return err
	}
	b.WriteString(" " + text + "\n")
	return nil
}

// inline writes a value in one line, as a command line can hold it.
func inline(v document.Value) (string, error) {
	switch v.Kind() {
	case document.KindNull:
		return "null", nil
	case document.KindString:
		text, _ := v.Str()
		return quoted(text), nil
	case document.KindFloat:
		f, _ := v.Float64()
		return float(f), nil
	case document.KindBool, document.KindInt:
		return fmt.Sprint(v.Any()), nil
	case document.KindMap:
		m, _ := v.Map()
		if m.Len() == 0 {
			return "{}", nil
		}
		return "", fmt.Errorf("given a mapping, expected one value")
	case document.KindList:
		items, _ := v.List()
		words := make([]string, len(items))
		for i, each := range items {
			text, err := inline(each)
			if err != nil {
				return "", err
			}
			words[i] = text
		}
		return "[" + strings.Join(words, ", ") + "]", nil
	}
	return v.Text(), nil
}

// float writes a number as Python does, with the point that makes YAML 1.1 read an exponent as a
// number.
func float(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	const least, most = 1e-4, 1e16 // between which Python writes no exponent
	if abs := math.Abs(f); abs != 0 && (abs < least || abs >= most) {
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		return mantissa + "e" + exponent
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quoted writes a string so that YAML 1.1 reads this string, plain where that is possible.
func quoted(text string) string {
	if isPlain(text) {
		return text
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return strconv.Quote(text)
		}
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// isPlain reports whether YAML 1.1 reads a text without quotes as the same string, in a mapping and
// in brackets.
func isPlain(text string) bool {
	if text == "" || text != strings.TrimSpace(text) || strings.ContainsAny(text[:1], "!&*-?|>%@`\"'#,[]{}:=") && !strings.HasPrefix(text, "-") ||
		strings.ContainsAny(text, "\n\r\t,[]{}") || text == "-" || strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "---") ||
		strings.Contains(text, ": ") || strings.Contains(text, " #") || strings.HasSuffix(text, ":") {
		return false
	}
	root, _, err := formats.YAML{}.Load("", []byte("k: "+text+"\n"))
	if err != nil {
		return false
	}
	m, _ := root.Map()
	v, _ := m.Lookup("k")
	got, ok := v.Str()
	return ok && got == text
}
