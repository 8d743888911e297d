package formats

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/internal/scalar"
)

// Render implements document.Renderer. Keys keep their order, strings that would be typed are
// quoted, and text that looks like a substitution is protected.
func (YAML) Render(m *document.Map, origins bool) ([]byte, error) {
	const indent = 2
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(indent)
	if err := encoder.Encode(yamlMap(m, origins)); err != nil {
		return nil, fmt.Errorf("document: render YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("document: render YAML: %w", err)
	}
	return b.Bytes(), nil
}

func yamlMap(m *document.Map, origins bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if m.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	for key, value := range m.All() {
		keyNode, valueNode := stringNode(key), yamlValue(value, origins)
		if origins {
			annotate(keyNode, valueNode, value)
		}
		n.Content = append(n.Content, keyNode, valueNode)
	}
	return n
}

// annotate puts the comment of a value where readers look for it: after a value on the line of its
// key, else above the key.
func annotate(key, value *yaml.Node, v document.Value) {
	switch note := v.Note(); {
	case note == "":
	case value.Kind == yaml.ScalarNode || len(value.Content) == 0:
		value.LineComment = note
	default:
		key.HeadComment = note
	}
}

func yamlValue(v document.Value, origins bool) *yaml.Node {
	switch v.Kind() {
	case document.KindMap:
		m, _ := v.Map()
		return yamlMap(m, origins)
	case document.KindList:
		items, _ := v.List()
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if len(items) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, item := range items {
			n.Content = append(n.Content, yamlValue(item, false))
		}
		return n
	case document.KindString:
		text, _ := v.Str()
		return stringNode(document.Escape(text))
	case document.KindBytes:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: v.String()}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	}
}

// stringNode quotes text that YAML 1.1 or 1.2 would not read as a string, and text that spans
// lines.
func stringNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	typed, err := scalar.YAML(text)
	if _, isString := typed.(string); err != nil || !isString || n.ShortTag() != "!!str" || strings.ContainsAny(text, "\r\n\u0085\u2028\u2029") {
		n.Style = yaml.DoubleQuotedStyle
	}
	n.Tag = "!!str"
	return n
}
