package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/internal/scalar"
)

// literalDollar is a variable nobody sets; its default stands for a dollar sign that must not start a substitution.
const literalDollar = "${PRIMUS_DOLLAR:$}{"

var (
	_ yaml.Marshaler = (*Map)(nil)
	_ json.Marshaler = (*Map)(nil)
	_ yaml.Marshaler = (*Experiment)(nil)
	_ json.Marshaler = (*Experiment)(nil)
)

// MarshalYAML implements yaml.Marshaler. Keys keep their order, and the text loads back to an equal map: strings that
// would be typed are quoted, and text that looks like a substitution is protected.
func (m *Map) MarshalYAML() (any, error) { return m.node(), nil }

// MarshalJSON implements json.Marshaler. Keys keep their order and floats keep a point, so JSON values load back to equal
// ones. What JSON cannot hold (infinities, NaN, dates, bytes) is written as a string that spells it as in YAML.
func (m *Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := (Value{data: m}).appendJSON(&b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// MarshalYAML implements yaml.Marshaler. The document is an experiment whose modules are flat: loading it again, with the
// same platform preset at hand, gives the same values without any model or module preset.
func (e *Experiment) MarshalYAML() (any, error) { return e.resolved().node(), nil }

// MarshalJSON implements json.Marshaler with the content of [Experiment.MarshalYAML].
func (e *Experiment) MarshalJSON() ([]byte, error) { return e.resolved().MarshalJSON() }

// resolved rebuilds the document of e from its resolved parts.
func (e *Experiment) resolved() *Map {
	document := newMap(0)
	document.set("work_group", Value{data: e.WorkGroup})
	document.set("user_name", Value{data: e.UserName})
	document.set("exp_name", Value{data: e.ExpName})
	document.set("workspace", Value{data: e.Workspace})
	if e.Env.Len() > 0 {
		document.set("env", Value{data: e.Env})
	}
	platform := newMap(2)
	config, _ := e.Platform.Lookup("config")
	platform.set("config", config)
	platform.set("overrides", Value{data: e.Platform.without("config")})
	document.set("platform", Value{data: platform})
	modules := newMap(len(e.Modules))
	for _, module := range e.Modules {
		modules.set(module.Name, Value{data: module.resolved()})
	}
	document.set("modules", Value{data: modules})
	return document
}

func (m *Module) resolved() *Map {
	flat := newMap(m.Private.Len() + 4)
	flat.set("framework", Value{data: m.Framework})
	if model, ok := m.Params.Lookup("model"); ok {
		flat.set("model", model)
	}
	if m.TrainerClass != "" {
		flat.set("trainer_class", Value{data: m.TrainerClass})
	}
	for key, value := range m.Private.All() {
		flat.set(key, value)
	}
	flat.set("params", Value{data: m.Params})
	return flat
}

func (m *Map) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if m.Len() == 0 {
		n.Style = yaml.FlowStyle
	}
	for key, value := range m.All() {
		n.Content = append(n.Content, stringNode(key), value.node())
	}
	return n
}

func (v Value) node() *yaml.Node {
	switch d := v.data.(type) {
	case *Map:
		return d.node()
	case []Value:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if len(d) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, item := range d {
			n.Content = append(n.Content, item.node())
		}
		return n
	case string:
		if variable.MatchString(d) {
			d = strings.ReplaceAll(d, "${", literalDollar)
		}
		return stringNode(d)
	case []byte:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!binary", Value: v.canonical()}
	default:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.canonical()}
	}
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
		return fmt.Errorf("config: render %q: %w", text, err)
	}
	b.Truncate(b.Len() - 1)
	return nil
}
