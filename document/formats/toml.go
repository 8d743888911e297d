package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/internal/scalar"
)

// maxTOML bounds the opening brackets and equals signs of a file: the TOML parser recurses once for
// each bracket that is open, and compares each key of a table with all before it.
const maxTOML = 10_000

// TOML is the format TOML 1.0. Written, null outside of lists becomes the string "null", which
// loads as null in parameters and platforms; null in lists, ints of more than 64 bits and bytes are
// errors that name the key.
type TOML struct {
	// Foreign writes for programs other than primus: strings as they are, although one may look like a
	// substitution, and every null is an error.
	Foreign bool
}

var _ document.Renderer = TOML{}

// Name implements document.Loader.
func (TOML) Name() string { return "toml" }

// Extensions implements document.Loader.
func (TOML) Extensions() []string { return []string{".toml"} }

// Load implements document.Loader. The ordinary decoder checks the document; its order and
// positions, which that decoder drops, are then read from the syntax tree.
func (TOML) Load(ctx context.Context, file string, data []byte) (document.Value, []document.Duplicate, error) {
	if n := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{")) + bytes.Count(data, []byte("=")); n > maxTOML {
		return document.Value{}, nil, &document.Error{
			Origin:  document.Origin{File: file},
			Problem: fmt.Sprintf("given %d brackets and equals signs, want at most %d", n, maxTOML),
			Hint:    "YAML and JSON may have more",
		}
	}
	var valid map[string]any
	if err := toml.Unmarshal(data, &valid); err != nil {
		origin := document.Origin{File: file}
		if decodeErr, ok := errors.AsType[*toml.DecodeError](err); ok {
			origin.Line, origin.Column = decodeErr.Position()
		}
		return document.Value{}, nil, &document.Error{Origin: origin, Problem: "invalid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	t := &tomlTree{Tree: document.NewTree(ctx), file: file, lines: newLines(data)}
	t.parser.Reset(data)
	root := newTOMLTable(t.lines.origin(file, 0))
	current := root
	for t.parser.NextExpression() {
		expression := t.parser.Expression()
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			current = t.table(root, expression)
		case unstable.KeyValue:
			if err := t.keyValue(current, expression, 0); err != nil {
				return document.Value{}, nil, err
			}
		}
	}
	if err := t.parser.Error(); err != nil {
		return document.Value{}, nil, &document.Error{Origin: document.Origin{File: file}, Problem: "invalid TOML", Err: err}
	}
	value, err := t.finish(root, 0)
	return value, t.Duplicates(), err
}

// tomlTable is a table under construction: entries holds finished values, and a null placeholder
// for each child table so that the order of keys is that of first mention.
type tomlTable struct {
	origin   document.Origin
	entries  document.Builder
	children map[string][]*tomlTable
	isArray  map[string]bool
}

func newTOMLTable(origin document.Origin) *tomlTable {
	return &tomlTable{origin: origin, children: map[string][]*tomlTable{}}
}

type tomlTree struct {
	document.Tree
	file   string
	parser unstable.Parser
	lines  lines
}

// child returns the table under key, the last one of an array of tables, creating it where it is
// missing.
func (t *tomlTable) child(key string, origin document.Origin) *tomlTable {
	if existing := t.children[key]; len(existing) > 0 {
		return existing[len(existing)-1]
	}
	return t.grow(key, origin)
}

func (t *tomlTable) grow(key string, origin document.Origin) *tomlTable {
	created := newTOMLTable(origin)
	t.children[key] = append(t.children[key], created)
	t.entries.Set(key, document.Value{})
	return created
}

// table opens the table a header names.
func (t *tomlTree) table(root *tomlTable, header *unstable.Node) *tomlTable {
	current := root
	for key := header.Key(); key.Next(); {
		name, origin := string(key.Node().Data), t.origin(key.Node().Raw)
		if header.Kind == unstable.ArrayTable && key.IsLast() {
			if current.isArray == nil {
				current.isArray = map[string]bool{}
			}
			current.isArray[name] = true
			return current.grow(name, origin)
		}
		current = current.child(name, origin)
	}
	return current
}

func (t *tomlTree) origin(r unstable.Range) document.Origin {
	return t.lines.origin(t.file, int(r.Offset))
}

func (t *tomlTree) keyValue(current *tomlTable, expression *unstable.Node, depth int) error {
	key := expression.Key()
	for key.Next() {
		node := key.Node()
		origin := t.origin(node.Raw)
		if !key.IsLast() {
			current = current.child(string(node.Data), origin)
			continue
		}
		value, err := t.value(expression.Value(), origin, depth+1)
		if err != nil {
			return err
		}
		current.entries.Set(string(node.Data), value.KeyAt(origin))
	}
	return nil
}

// value converts a value node; fallback is the position of its key, for nodes that carry none.
func (t *tomlTree) value(n *unstable.Node, fallback document.Origin, depth int) (document.Value, error) {
	origin := fallback
	if n.Raw.Length > 0 {
		origin = t.origin(n.Raw)
	}
	if err := t.Enter(origin, depth); err != nil {
		return document.Value{}, err
	}
	switch n.Kind {
	case unstable.Array:
		items := []document.Value{}
		for children := n.Children(); children.Next(); {
			if children.Node().Kind == unstable.Comment {
				continue
			}
			item, err := t.value(children.Node(), origin, depth+1)
			if err != nil {
				return document.Value{}, err
			}
			items = append(items, item)
		}
		return document.ListValue(items).At(origin), nil
	case unstable.InlineTable:
		table := newTOMLTable(origin)
		for children := n.Children(); children.Next(); {
			if err := t.keyValue(table, children.Node(), depth+1); err != nil {
				return document.Value{}, err
			}
		}
		return t.finish(table, depth)
	default:
		text := string(n.Data)
		data, err := tomlScalar(n.Kind, text)
		if err != nil {
			return document.Value{}, &document.Error{Origin: origin, Err: err}
		}
		return scalarValue(data, text, origin)
	}
}

func tomlScalar(kind unstable.Kind, text string) (any, error) {
	switch kind {
	case unstable.Bool:
		return text == "true", nil
	case unstable.Integer:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
		return n, err
	case unstable.Float:
		return strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	case unstable.LocalDate, unstable.LocalDateTime, unstable.DateTime:
		return scalar.Tagged("!!timestamp", strings.ToUpper(text))
	default:
		return text, nil
	}
}

// finish turns a table and its children into a mapping.
func (t *tomlTree) finish(table *tomlTable, depth int) (document.Value, error) {
	if err := t.Enter(table.origin, depth); err != nil {
		return document.Value{}, err
	}
	entries := table.entries.Map()
	finished := document.NewBuilder(entries)
	for _, key := range entries.Keys() {
		var items []document.Value
		for _, child := range table.children[key] {
			item, err := t.finish(child, depth+1)
			if err != nil {
				return document.Value{}, err
			}
			items = append(items, item)
		}
		switch {
		case table.isArray[key]:
			finished.Set(key, document.ListValue(items).At(items[0].Origin()))
		case len(items) == 1:
			finished.Set(key, items[0])
		}
	}
	return document.MapValue(finished.Map()).At(table.origin), nil
}
