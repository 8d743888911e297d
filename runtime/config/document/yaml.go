package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/runtime/config/document/internal/scalar"
)

// yamlLoader reads one YAML document and types it by the rules of YAML 1.1, which the yaml module itself does not follow.
type yamlLoader struct{}

// Extensions implements loader.
func (yamlLoader) Extensions() []string { return []string{".yaml", ".yml"} }

// Load implements loader.
func (yamlLoader) Load(file string, data []byte) (Value, []Duplicate, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return Value{}, nil, nil
	case err != nil:
		return Value{}, nil, yamlError(file, err)
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return Value{}, nil, &Error{
			Origin:  Origin{File: file, Line: second.Line, Column: second.Column},
			Problem: "given a second document, expected a single one", Hint: "remove the --- separator",
		}
	case !errors.Is(err, io.EOF):
		return Value{}, nil, yamlError(file, err)
	}
	t := &yamlTree{tree: tree{file: file}, open: map[*yaml.Node]bool{}}
	root, err := t.value(&document, 0)
	return root, t.duplicates, err
}

// yamlError turns the text of a parser error into an error with a position.
func yamlError(file string, err error) error {
	origin, problem := Origin{File: file, Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if line, convErr := strconv.Atoi(number); convErr == nil {
			origin.Line, problem = line, text
		}
	}
	return &Error{Origin: origin, Problem: "invalid YAML: " + problem}
}

// yamlTree converts a node tree.
type yamlTree struct {
	tree
	// open holds the anchored collections that are being converted, to find anchors that contain themselves.
	open map[*yaml.Node]bool
}

func (t *yamlTree) value(n *yaml.Node, depth int) (Value, error) {
	origin := t.origin(n)
	if err := t.enter(origin, depth); err != nil {
		return Value{}, err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return t.value(n.Content[0], depth)
	case yaml.AliasNode:
		if t.open[n.Alias] {
			return Value{}, &Error{Origin: *origin, Problem: fmt.Sprintf("anchor %q contains itself", n.Value), Kind: ErrCycle}
		}
		return t.value(n.Alias, depth)
	case yaml.ScalarNode:
		return t.scalar(n, origin)
	}
	if n.Anchor != "" {
		t.open[n] = true
		defer delete(t.open, n)
	}
	switch tag := n.ShortTag(); {
	case tag == "!!map" && n.Kind == yaml.MappingNode:
		return t.mapping(n, origin, depth)
	case tag == "!!seq" && n.Kind == yaml.SequenceNode:
		return t.list(n.Content, 1, origin, depth)
	case tag == "!!set" && n.Kind == yaml.MappingNode:
		return t.list(n.Content, 2, origin, depth)
	default:
		return Value{}, &Error{Origin: *origin, Problem: fmt.Sprintf("unsupported tag %q", tag)}
	}
}

// list converts every step-th node: all of a sequence, or the keys of a set, which is a list here.
func (t *yamlTree) list(nodes []*yaml.Node, step int, origin *Origin, depth int) (Value, error) {
	items := make([]Value, 0, len(nodes)/step)
	for i := 0; i < len(nodes); i += step {
		item, err := t.value(nodes[i], depth+1)
		if err != nil {
			return Value{}, err
		}
		items = append(items, item)
	}
	return Value{data: items, origin: origin}, nil
}

func (t *yamlTree) origin(n *yaml.Node) *Origin {
	return &Origin{File: t.file, Line: n.Line, Column: n.Column}
}

func isPlain(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&(quoted|yaml.TaggedStyle) == 0
}

func (t *yamlTree) scalar(n *yaml.Node, origin *Origin) (Value, error) {
	var (
		data any = n.Value
		err  error
	)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		data, err = scalar.Tagged(n.ShortTag(), n.Value)
	case isPlain(n) && strings.HasSuffix(n.Value, ":"):
		// Only inside brackets; other parsers read [a:] as [{a: null}].
		err = fmt.Errorf("%q ends with a colon; quote it, or write a blank and a value behind the colon", n.Value)
	case isPlain(n):
		data, err = scalar.YAML(n.Value)
	}
	if err != nil {
		return Value{}, &Error{Origin: *origin, Err: err}
	}
	value := Value{data: data, origin: origin}
	if _, isString := data.(string); !isString {
		value.text = n.Value
	}
	return value, nil
}

// mapping converts a mapping; the content of merge keys comes first and never replaces the mapping's own keys. A value
// that begins below its key has the position of the key, where a reader looks first.
func (t *yamlTree) mapping(n *yaml.Node, origin *Origin, depth int) (Value, error) {
	own := newMap(len(n.Content) / 2)
	var merged *Map
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode := n.Content[i]
		value, err := t.value(n.Content[i+1], depth+1)
		if err != nil {
			return Value{}, err
		}
		if isPlain(keyNode) && keyNode.Value == scalar.MergeKey {
			if merged, err = mergeSources(merged, value); err != nil {
				return Value{}, err
			}
			continue
		}
		key, err := t.key(keyNode)
		if err != nil {
			return Value{}, err
		}
		keyOrigin := t.origin(keyNode)
		if value.origin.Line > keyOrigin.Line {
			value.origin = keyOrigin
		}
		t.put(own, key, value)
	}
	if merged == nil {
		return Value{data: own, origin: origin}, nil
	}
	for key, value := range own.All() {
		merged.set(key, value)
	}
	return Value{data: merged, origin: origin}, nil
}

// mergeSources adds one mapping, or a list of mappings of which earlier ones win, on top of what was merged before.
func mergeSources(merged *Map, value Value) (*Map, error) {
	sources := []Value{value}
	if items, ok := value.List(); ok {
		sources = items
	}
	result := merged.clone(0)
	for i := len(sources) - 1; i >= 0; i-- {
		source, ok := sources[i].Map()
		if !ok {
			return nil, WrongType(sources[i], scalar.MergeKey, "a mapping or a list of mappings", "")
		}
		for key, value := range source.All() {
			result.set(key, value)
		}
	}
	return result, nil
}

func (t *yamlTree) key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", &Error{Origin: *t.origin(n), Problem: "given a collection as key, expected a string"}
	}
	if isPlain(n) && n.Value == "=" {
		return n.Value, nil
	}
	value, err := t.scalar(n, t.origin(n))
	if err != nil {
		return "", err
	}
	key, ok := value.Str()
	if !ok {
		return "", WrongType(value, "", "a string as key", fmt.Sprintf("quote it: %q", n.Value))
	}
	return key, nil
}
