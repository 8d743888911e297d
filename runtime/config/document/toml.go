package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/primus-fl/primus/runtime/config/document/internal/scalar"
)

// maxTOMLBrackets bounds the opening brackets of a file: the TOML parser recurses once for each one that is open.
const maxTOMLBrackets = 10_000

// tomlLoader reads TOML 1.0. The document is validated by the ordinary decoder; its order and positions, which that decoder
// drops, are then read from the syntax tree.
type tomlLoader struct{}

// Extensions implements loader.
func (tomlLoader) Extensions() []string { return []string{".toml"} }

// Load implements loader.
func (tomlLoader) Load(file string, data []byte) (Value, []Duplicate, error) {
	if open := strings.Count(string(data), "[") + strings.Count(string(data), "{"); open > maxTOMLBrackets {
		return Value{}, nil, &Error{
			Origin:  Origin{File: file},
			Problem: fmt.Sprintf("given %d brackets, expected at most %d", open, maxTOMLBrackets),
		}
	}
	var valid map[string]any
	if err := toml.Unmarshal(data, &valid); err != nil {
		origin := Origin{File: file}
		if decodeErr, ok := errors.AsType[*toml.DecodeError](err); ok {
			origin.Line, origin.Column = decodeErr.Position()
		}
		return Value{}, nil, &Error{Origin: origin, Problem: "invalid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
	}
	t := &tomlTree{tree: tree{file: file}, lines: newLines(data)}
	t.parser.Reset(data)
	root := &tomlTable{entries: newMap(0), children: map[string][]*tomlTable{}}
	current := root
	for t.parser.NextExpression() {
		expression := t.parser.Expression()
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			current = t.table(root, expression)
		case unstable.KeyValue:
			if err := t.keyValue(current, expression, 0); err != nil {
				return Value{}, nil, err
			}
		}
	}
	if err := t.parser.Error(); err != nil {
		return Value{}, nil, &Error{Origin: Origin{File: file}, Problem: "invalid TOML", Err: err}
	}
	value, err := t.finish(root, 0)
	return value, t.duplicates, err
}

// tomlTable is a table under construction: entries holds finished values, and a null placeholder for each child table so
// that the order of keys is that of first mention.
type tomlTable struct {
	origin   *Origin
	entries  *Map
	children map[string][]*tomlTable
	isArray  map[string]bool
}

type tomlTree struct {
	tree
	parser unstable.Parser
	lines  lines
}

// child returns the table under key, the last one of an array of tables, creating it where it is missing.
func (t *tomlTable) child(key string, origin *Origin) *tomlTable {
	if existing := t.children[key]; len(existing) > 0 {
		return existing[len(existing)-1]
	}
	return t.grow(key, origin)
}

func (t *tomlTable) grow(key string, origin *Origin) *tomlTable {
	created := &tomlTable{origin: origin, entries: newMap(0), children: map[string][]*tomlTable{}}
	t.children[key] = append(t.children[key], created)
	t.entries.set(key, Value{})
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

func (t *tomlTree) origin(r unstable.Range) *Origin { return t.lines.origin(t.file, int(r.Offset)) }

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
		current.entries.set(string(node.Data), value)
	}
	return nil
}

// value converts a value node; fallback is the position of its key, for nodes that carry none.
func (t *tomlTree) value(n *unstable.Node, fallback *Origin, depth int) (Value, error) {
	origin := fallback
	if n.Raw.Length > 0 {
		origin = t.origin(n.Raw)
	}
	if err := t.enter(origin, depth); err != nil {
		return Value{}, err
	}
	switch n.Kind {
	case unstable.Array:
		items := []Value{}
		for children := n.Children(); children.Next(); {
			if children.Node().Kind == unstable.Comment {
				continue
			}
			item, err := t.value(children.Node(), origin, depth+1)
			if err != nil {
				return Value{}, err
			}
			items = append(items, item)
		}
		return Value{data: items, origin: origin}, nil
	case unstable.InlineTable:
		table := &tomlTable{origin: origin, entries: newMap(0), children: map[string][]*tomlTable{}}
		for children := n.Children(); children.Next(); {
			if err := t.keyValue(table, children.Node(), depth+1); err != nil {
				return Value{}, err
			}
		}
		return t.finish(table, depth)
	default:
		text := string(n.Data)
		data, err := tomlScalar(n.Kind, text)
		if err != nil {
			return Value{}, &Error{Origin: *origin, Err: err}
		}
		value := Value{data: data, origin: origin}
		if _, isString := data.(string); !isString {
			value.text = text
		}
		return value, nil
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
func (t *tomlTree) finish(table *tomlTable, depth int) (Value, error) {
	if table.origin == nil {
		table.origin = t.lines.origin(t.file, 0)
	}
	if err := t.enter(table.origin, depth); err != nil {
		return Value{}, err
	}
	for _, key := range table.entries.Keys() {
		var items []Value
		for _, child := range table.children[key] {
			item, err := t.finish(child, depth+1)
			if err != nil {
				return Value{}, err
			}
			items = append(items, item)
		}
		switch {
		case table.isArray[key]:
			table.entries.set(key, Value{data: items, origin: items[0].origin})
		case len(items) == 1:
			table.entries.set(key, items[0])
		}
	}
	return Value{data: table.entries, origin: table.origin}, nil
}
