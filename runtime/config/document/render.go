package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/document/internal/scalar"
)

// Format is a format that configurations are written in.
type Format string

// The formats.
const (
	FormatYAML Format = "yaml"
	FormatJSON Format = "json"
	FormatTOML Format = "toml"
)

// Formats returns all formats.
func Formats() []Format { return []Format{FormatYAML, FormatJSON, FormatTOML} }

// ParseFormat returns the format of that name, in any case.
func ParseFormat(name string) (Format, error) {
	if f := Format(strings.ToLower(name)); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("document: given format %q, expected one of yaml json toml", name)
}

// FormatOf returns the format that a file name ending stands for, the same that loading the file would take.
func FormatOf(file string) (Format, error) {
	switch l, _ := loaderFor(file); l.(type) {
	case yamlLoader:
		return FormatYAML, nil
	case jsonLoader:
		return FormatJSON, nil
	case tomlLoader:
		return FormatTOML, nil
	}
	return "", fmt.Errorf("document: file %q ends with %q, expected one of %s", file, path.Ext(file), strings.Join(Extensions(), " "))
}

// Render returns m as text that loads back to equal values. With origins, each value is followed by a comment that says
// where it was written and what it replaced; JSON, which has no comments, gets a further key, origins, with the same.
//
// JSON and TOML cannot hold everything. In JSON, infinities, NaN, dates and bytes become strings that spell them as in
// YAML. In TOML, null outside of lists becomes the string "null", which loads as null in parameters and platforms; null
// in lists, ints of more than 64 bits and bytes are errors that name the key.
func Render(m *Map, format Format, origins bool) ([]byte, error) {
	switch format {
	case FormatJSON:
		return renderJSON(m, origins)
	case FormatTOML:
		return renderTOML(m, origins)
	case FormatYAML:
		return renderYAML(m, origins)
	}
	return nil, fmt.Errorf("document: unknown format %q", format)
}

func renderYAML(m *Map, origins bool) ([]byte, error) {
	const indent = 2
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(indent)
	if err := encoder.Encode(m.node(origins)); err != nil {
		return nil, fmt.Errorf("document: render YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("document: render YAML: %w", err)
	}
	return b.Bytes(), nil
}

func renderJSON(m *Map, origins bool) ([]byte, error) {
	if origins {
		noted := m.clone(1)
		listed := newMap(m.Len())
		listOrigins(listed, m, "")
		noted.set("origins", Value{data: listed})
		m = noted
	}
	compact, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("document: render JSON: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

var _ json.Marshaler = (*Map)(nil)

// MarshalJSON implements json.Marshaler. Keys keep their order and floats keep a point, so JSON values load back to equal
// ones. What JSON cannot hold (infinities, NaN, dates, bytes) is written as a string that spells it as in YAML.
func (m *Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := (Value{data: m}).appendJSON(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (v Value) appendJSON(b *bytes.Buffer) error {
	switch d := v.data.(type) {
	case *Map:
		b.WriteByte('{')
		first := true
		for key, value := range d.All() {
			if !first {
				b.WriteByte(',')
			}
			first = false
			if err := appendJSONString(b, key); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := value.appendJSON(b); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []Value:
		b.WriteByte('[')
		for i, item := range d {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := item.appendJSON(b); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case float64:
		if math.IsInf(d, 0) || math.IsNaN(d) {
			return appendJSONString(b, v.canonical())
		}
		b.WriteString(v.canonical())
	case string, scalar.Date, scalar.Time, []byte:
		return appendJSONString(b, v.canonical())
	default:
		b.WriteString(v.canonical())
	}
	return nil
}

func appendJSONString(b *bytes.Buffer, text string) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return fmt.Errorf("document: render %q: %w", text, err)
	}
	b.Truncate(b.Len() - 1)
	return nil
}
