package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/pyrepr"
)

// The values of templates are nil, bool, int64, float64, string, undefined, *list, *Map,
// *namespace, *loop and *function.
type (
	// undefined is the value of a name that has none.
	undefined struct{ name string }

	list struct {
		items []any
		tuple bool
	}

	namespace struct{ attributes map[string]any }

	function struct {
		name string
		call func(c *call) any
	}
)

// Map is a mapping that keeps the order of its keys, as JSON objects in templates do.
type Map struct {
	keys   []any
	values []any
	index  map[any]int
}

// NewMap returns an empty Map.
func NewMap() *Map { return &Map{index: map[any]int{}} }

// Set sets the value of a key: nil, a bool, an int64, a float64, a string, a *Map, or a list of
// such values as ParseJSON returns it.
func (m *Map) Set(key string, value any) *Map {
	m.set(key, value)
	return m
}

// Get returns the value of a key, and whether there is one.
func (m *Map) Get(key string) (value any, ok bool) { return m.get(key) }

func (m *Map) set(key, value any) {
	k := hashed(key)
	if i, ok := m.index[k]; ok {
		m.values[i] = value
		return
	}
	m.index[k] = len(m.keys)
	m.keys, m.values = append(m.keys, key), append(m.values, value)
}

func (m *Map) get(key any) (any, bool) {
	i, ok := m.index[hashed(key)]
	if !ok {
		return nil, false
	}
	return m.values[i], true
}

// hashable reports whether a value can be a key.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// hashed returns the same for keys that are equal, such as 1, 1.0 and true.
func hashed(key any) any {
	switch k := key.(type) {
	case bool:
		return toInt(k)
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k)
		}
	}
	return key
}

func toInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// maxNesting bounds how deep values of JSON are nested.
const maxNesting = 100

// ParseJSON returns a JSON value for templates. Objects become *Map, in the order of their keys.
func ParseJSON(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("chat: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("chat: given more after the JSON value, want one value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the JSON value is nested deeper than %d levels", maxNesting)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return i, nil
		}
		f, err := t.Float64()
		return f, err
	case json.Delim:
		if t == '[' {
			l := &list{}
			for d.More() {
				v, err := readJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				l.items = append(l.items, v)
			}
			_, err := d.Token()
			return l, err
		}
		m := NewMap()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			m.set(key, v)
		}
		_, err := d.Token()
		return m, err
	default:
		return t, nil // null, a bool or a string
	}
}

// truth reports whether a condition holds for a value.
func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *Map:
		return len(v.keys) > 0
	}
	return true
}

// typeName returns the name of the type of a value for errors.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case string:
		return "a string"
	case undefined:
		return v.name + ", which is undefined"
	case *list:
		if v.tuple {
			return "a tuple"
		}
		return "a list"
	case *Map:
		return "a mapping"
	case *namespace:
		return "a namespace"
	case *function:
		return "the function " + v.name
	case *loop:
		return "the loop"
	}
	return fmt.Sprintf("%T", v)
}

// number returns a value as a float, and whether it is a number. Booleans are numbers.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		return float64(toInt(v)), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// integer returns a value as an int, and whether it is one. Booleans are integers.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		return toInt(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// equal reports whether two values are equal.
func equal(w walk, a, b any) bool {
	w = w.into(b)
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return x == y
		}
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *list:
		other, ok := b.(*list)
		return ok && a.tuple == other.tuple && slices.EqualFunc(a.items, other.items, func(x, y any) bool { return equal(w, x, y) })
	case *Map:
		other, ok := b.(*Map)
		if !ok || len(a.keys) != len(other.keys) {
			return false
		}
		for i, key := range a.keys {
			if v, ok := other.get(key); !ok || !equal(w, a.values[i], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

// order compares two values that have an order.
func order(w walk, a, b any) (int, bool) {
	w = w.into(b)
	if x, ok := number(a); ok {
		y, ok := number(b)
		return cmp.Compare(x, y), ok
	}
	switch a := a.(type) {
	case string:
		s, ok := b.(string)
		return strings.Compare(a, s), ok
	case *list:
		other, ok := b.(*list)
		if !ok || a.tuple != other.tuple {
			return 0, false
		}
		for i := range min(len(a.items), len(other.items)) {
			if c, ok := order(w, a.items[i], other.items[i]); !ok || c != 0 {
				return c, ok
			}
		}
		return cmp.Compare(len(a.items), len(other.items)), true
	}
	return 0, false
}

// show returns the text of a value as Python's str does, which is what a template prints.
func show(w walk, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	represent(w, &b, v)
	return b.String()
}

// represent writes a value as Python's repr does.
func represent(w walk, b *strings.Builder, v any) {
	w = w.into(v)
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(pyrepr.Float(v))
	case string:
		b.WriteString(pyrepr.Quote(v))
	case undefined:
		b.WriteString("Undefined")
	case *list:
		open, end := "[", "]"
		if v.tuple {
			open, end = "(", ")"
		}
		b.WriteString(open)
		for i, item := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			represent(w, b, item)
		}
		if v.tuple && len(v.items) == 1 {
			b.WriteByte(',')
		}
		b.WriteString(end)
	case *Map:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			represent(w, b, key)
			b.WriteString(": ")
			represent(w, b, v.values[i])
		}
		b.WriteByte('}')
	default:
		b.WriteString("<" + typeName(v) + ">")
	}
}
