package python

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/pyrepr"
)

// YAML writes a mapping as PyYAML dumps it: block style with sorted keys, by the rules of YAML 1.1,
// with lines that are folded at column 80.
func YAML(values map[string]document.Value) (string, error) {
	if len(values) == 0 {
		return "{}\n", nil
	}
	var w writer
	if err := w.mapping(values, 0); err != nil {
		return "", err
	}
	return w.b.String(), nil
}

// Inline writes a value in one line, as a command line can hold it.
func Inline(v document.Value) (string, error) {
	switch v.Kind() {
	case document.KindString:
		text, _ := v.Str()
		var w writer
		w.string(text, "", inFlow)
		return w.b.String(), nil
	case document.KindMap:
		m, _ := v.Map()
		if m.Len() == 0 {
			return "{}", nil
		}
		return "", fmt.Errorf("given a mapping, want one value")
	case document.KindList:
		items, _ := v.List()
		words := make([]string, len(items))
		for i, each := range items {
			text, err := Inline(each)
			if err != nil {
				return "", err
			}
			words[i] = text
		}
		return "[" + strings.Join(words, ", ") + "]", nil
	}
	return scalar(v), nil
}

// writer writes YAML and knows the column.
type writer struct {
	b      strings.Builder
	column int
}

func (w *writer) write(text string) {
	w.b.WriteString(text)
	w.column += utf8.RuneCountInString(text)
}

// newLine begins a line with an indent.
func (w *writer) newLine(indent string) {
	w.b.WriteString("\n" + indent)
	w.column = len(indent)
}

const step = 2

func spaces(n int) string { return strings.Repeat(" ", n) }

// mapping writes the keys of a mapping, the first of them at the current column.
func (w *writer) mapping(values map[string]document.Value, indent int) error {
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			w.write(spaces(indent))
		}
		w.string(key, "", asKey)
		w.write(":")
		v := values[key]
		if m, ok := v.Map(); ok && m.Len() > 0 {
			w.newLine(spaces(indent + step))
			if err := w.mapping(maps.Collect(m.All()), indent+step); err != nil {
				return err
			}
			continue
		}
		if items, ok := v.List(); ok && len(items) > 0 {
			w.newLine(spaces(indent))
			if err := w.list(items, indent); err != nil {
				return err
			}
			continue
		}
		w.leaf(v, indent+step)
	}
	return nil
}

// list writes the items of a list, the first of them at the current column.
func (w *writer) list(items []document.Value, indent int) error {
	for i, v := range items {
		if i > 0 {
			w.write(spaces(indent))
		}
		w.write("-")
		if m, ok := v.Map(); ok && m.Len() > 0 {
			w.write(" ")
			if err := w.mapping(maps.Collect(m.All()), indent+step); err != nil {
				return err
			}
			continue
		}
		if nested, ok := v.List(); ok && len(nested) > 0 {
			w.write(" ")
			if err := w.list(nested, indent+step); err != nil {
				return err
			}
			continue
		}
		w.leaf(v, indent+step)
	}
	return nil
}

// leaf writes a value without values below it, and ends the line.
func (w *writer) leaf(v document.Value, indent int) {
	w.write(" ")
	if text, ok := v.Str(); ok {
		w.string(text, spaces(indent), inBlock)
	} else {
		w.write(scalar(v))
	}
	w.newLine("")
}

// scalar writes a value that is neither a string nor has values below it.
func scalar(v document.Value) string {
	switch v.Kind() {
	case document.KindNull:
		return "null"
	case document.KindFloat:
		f, _ := v.Float64()
		return float(f)
	case document.KindMap:
		return "{}"
	case document.KindList:
		return "[]"
	case document.KindBool, document.KindInt:
		return fmt.Sprint(v.Any())
	}
	return v.Text()
}

// float writes a number as Python does, with the point that makes YAML 1.1 read an exponent as a
// number.
func float(f float64) string {
	if math.IsNaN(f) {
		return ".nan"
	}
	text := pyrepr.Float(f)
	mantissa, exponent, hasExponent := strings.Cut(text, "e")
	switch {
	case math.IsInf(f, 0):
		return strings.Replace(text, "inf", ".inf", 1)
	case hasExponent && !strings.Contains(mantissa, "."):
		return mantissa + ".0e" + exponent
	}
	return text
}
