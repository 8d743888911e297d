package document

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/document/internal/scalar"
)

// literalDollar is a variable nobody sets; its default stands for a dollar sign that must not start a substitution.
const literalDollar = "${PRIMUS_DOLLAR:$}{"

var _ yaml.Marshaler = (*Map)(nil)

// MarshalYAML implements yaml.Marshaler. Keys keep their order, and the text loads back to an equal map: strings that
// would be typed are quoted, and text that looks like a substitution is protected.
func (m *Map) MarshalYAML() (any, error) { return m.node(false), nil }

func (m *Map) node(origins bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if m.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	for key, value := range m.All() {
		keyNode, valueNode := stringNode(key), value.node(origins)
		if origins {
			annotate(keyNode, valueNode, value)
		}
		n.Content = append(n.Content, keyNode, valueNode)
	}
	return n
}

// annotate puts the comment of a value where readers look for it: behind a value on the line of its key, else above the key.
func annotate(key, value *yaml.Node, v Value) {
	switch note := v.note(); {
	case note == "":
	case value.Kind == yaml.ScalarNode || len(value.Content) == 0:
		value.LineComment = note
	default:
		key.HeadComment = note
	}
}

func (v Value) node(origins bool) *yaml.Node {
	switch d := v.data.(type) {
	case *Map:
		return d.node(origins)
	case []Value:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if len(d) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, item := range d {
			n.Content = append(n.Content, item.node(false))
		}
		return n
	case string:
		return stringNode(protect(d))
	case []byte:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: v.canonical()}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.canonical()}
	}
}

// protect keeps text that looks like a substitution from being one when it is loaded again.
func protect(text string) string {
	if variable.MatchString(text) {
		return strings.ReplaceAll(text, "${", literalDollar)
	}
	return text
}

// stringNode quotes text that YAML 1.1 or 1.2 would not read as a string, and text that spans lines.
func stringNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	typed, err := scalar.YAML(text)
	if _, isString := typed.(string); err != nil || !isString || n.ShortTag() != "!!str" || strings.ContainsAny(text, "\r\n\u0085\u2028\u2029") {
		n.Style = yaml.DoubleQuotedStyle
	}
	n.Tag = "!!str"
	return n
}
