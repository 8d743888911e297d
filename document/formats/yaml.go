package formats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/internal/scalar"
)

// YAML is the format YAML. One document is read and typed by the rules of YAML 1.1, which the yaml
// module itself does not follow: `yes` is a bool, 0777 is 511, and 1e-5 is text while 1.0e-5 is a
// float.
type YAML struct{}

var _ document.Renderer = YAML{}

// Name implements document.Loader.
func (YAML) Name() string { return "yaml" }

// Extensions implements document.Loader.
func (YAML) Extensions() []string { return []string{".yaml", ".yml"} }

// Load implements document.Loader.
func (YAML) Load(ctx context.Context, file string, data []byte) (document.Value, []document.Duplicate, error) {
	t := &yamlTree{Tree: document.NewTree(ctx), file: file, open: map[*yaml.Node]bool{}}
	decoder := yaml.NewDecoder(t.Reader(data))
	var first, second yaml.Node
	switch err := decoder.Decode(&first); {
	case errors.Is(err, io.EOF):
		return document.Value{}, nil, nil
	case err != nil:
		return document.Value{}, nil, cmp.Or(t.Err(document.Origin{File: file}), yamlError(file, data, err))
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		return document.Value{}, nil, &document.Error{
			Origin:  document.Origin{File: file, Line: second.Line, Column: second.Column},
			Problem: "given a second document, want a single one", Hint: "remove the --- separator",
		}
	case !errors.Is(err, io.EOF):
		return document.Value{}, nil, cmp.Or(t.Err(document.Origin{File: file}), yamlError(file, data, err))
	}
	root, err := t.value(&first, 0)
	return root, t.Duplicates(), err
}

// yamlError turns an error of the parser, which tells a line at best, into one with a position.
func yamlError(file string, data []byte, err error) error {
	origin, problem := document.Origin{File: file, Line: 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if line, convErr := strconv.Atoi(number); convErr == nil {
			origin.Line, problem = line, text
			if countsFromZero(text) { // the end of a file without a last newline counts as a line
				origin.Line = min(line+1, bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))+1)
			}
		}
	}
	return &document.Error{Origin: origin, Problem: "invalid YAML: " + problem}
}

// countsFromZero reports whether a message is about grammar, for which the module counts lines from
// 0. For characters it counts from 1.
func countsFromZero(problem string) bool {
	what, ok := strings.CutPrefix(problem, "did not find expected ")
	return ok && (what == "key" || what == "node content" || strings.HasPrefix(what, "'") || strings.HasPrefix(what, "<"))
}

// yamlTree converts a node tree.
type yamlTree struct {
	document.Tree
	file string
	// open holds the anchored collections that are being converted, to find anchors that contain
	// themselves.
	open map[*yaml.Node]bool
}

func (t *yamlTree) value(n *yaml.Node, depth int) (document.Value, error) {
	origin := t.origin(n)
	if err := t.Enter(origin, depth); err != nil {
		return document.Value{}, err
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return t.value(n.Content[0], depth)
	case yaml.AliasNode:
		if t.open[n.Alias] {
			return document.Value{}, &document.Error{Origin: origin, Problem: fmt.Sprintf("anchor %q contains itself", n.Value), Kind: document.ErrCycle}
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
		return document.Value{}, &document.Error{Origin: origin, Problem: fmt.Sprintf("unsupported tag %q", tag)}
	}
}

// list converts every step-th node: all of a sequence, or the keys of a set, which is a list here.
func (t *yamlTree) list(nodes []*yaml.Node, step int, origin document.Origin, depth int) (document.Value, error) {
	items := make([]document.Value, 0, len(nodes)/step)
	for i := 0; i < len(nodes); i += step {
		item, err := t.value(nodes[i], depth+1)
		if err != nil {
			return document.Value{}, err
		}
		items = append(items, item)
	}
	return document.ListValue(items).At(origin), nil
}

func (t *yamlTree) origin(n *yaml.Node) document.Origin {
	return document.Origin{File: t.file, Line: n.Line, Column: n.Column}
}

func isPlain(n *yaml.Node) bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.Kind == yaml.ScalarNode && n.Style&(quoted|yaml.TaggedStyle) == 0
}

func (t *yamlTree) scalar(n *yaml.Node, origin document.Origin) (document.Value, error) {
	var (
		data any = n.Value
		err  error
	)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		data, err = scalar.Tagged(n.ShortTag(), n.Value)
	case isPlain(n) && strings.HasSuffix(n.Value, ":"):
		// Only inside brackets; other parsers read [a:] as [{a: null}].
		err = fmt.Errorf("%q ends with a colon; quote it, or write a space and a value after the colon", n.Value)
	case isPlain(n):
		data, err = scalar.YAML(n.Value)
	}
	if err != nil {
		return document.Value{}, &document.Error{Origin: origin, Err: err}
	}
	value, err := scalarValue(data, n.Value, origin)
	if isPlain(n) && n.Anchor == "" && !strings.Contains(n.Value, " ") { // a line that is folded becomes a space
		value = value.Verbatim()
	}
	return value, err
}

// mapping converts a mapping; the content of merge keys comes first and never replaces the
// mapping's own keys. A value that begins below its key has the position of the key, where a reader
// looks first.
func (t *yamlTree) mapping(n *yaml.Node, origin document.Origin, depth int) (document.Value, error) {
	var own document.Builder
	var merged *document.Map
	for i := 0; i+1 < len(n.Content); i += 2 {
		keyNode := n.Content[i]
		value, err := t.value(n.Content[i+1], depth+1)
		if err != nil {
			return document.Value{}, err
		}
		if isPlain(keyNode) && keyNode.Value == scalar.MergeKey {
			if merged, err = mergeSources(merged, value); err != nil {
				return document.Value{}, err
			}
			continue
		}
		key, err := t.key(keyNode)
		if err != nil {
			return document.Value{}, err
		}
		keyOrigin := t.origin(keyNode)
		if value.Origin().Line > keyOrigin.Line {
			value = value.At(keyOrigin)
		}
		t.Put(&own, key, value.KeyAt(keyOrigin))
	}
	if merged == nil {
		return document.MapValue(own.Map()).At(origin), nil
	}
	whole := document.NewBuilder(merged)
	for key, value := range own.Map().All() {
		whole.Set(key, value)
	}
	return document.MapValue(whole.Map()).At(origin), nil
}

// mergeSources adds one mapping, or a list of mappings of which earlier ones win, on top of what
// was merged before.
func mergeSources(merged *document.Map, value document.Value) (*document.Map, error) {
	sources := []document.Value{value}
	if items, ok := value.List(); ok {
		sources = items
	}
	result := document.NewBuilder(merged)
	for i := len(sources) - 1; i >= 0; i-- {
		source, ok := sources[i].Map()
		if !ok {
			return nil, document.WrongType(sources[i], scalar.MergeKey, "a mapping or a list of mappings", "")
		}
		for key, value := range source.All() {
			result.Set(key, value)
		}
	}
	return result.Map(), nil
}

func (t *yamlTree) key(n *yaml.Node) (string, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return "", &document.Error{Origin: t.origin(n), Problem: "given a collection as key, want a string"}
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
		return "", document.WrongType(value, "", "a string as key", fmt.Sprintf("quote it: %q", n.Value))
	}
	return key, nil
}
