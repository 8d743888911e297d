package document

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/primus-fl/primus/document/internal/scalar"
)

// Map is an immutable mapping from string keys to values that keeps the order of its keys. A nil
// *Map is empty.
type Map struct {
	keys   []string
	values map[string]Value
}

// Len returns the number of keys.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.keys)
}

// Keys returns a copy of the keys in order.
func (m *Map) Keys() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.keys)
}

// All iterates over keys and values in order.
func (m *Map) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if m == nil {
			return
		}
		for _, key := range m.keys {
			if !yield(key, m.values[key]) {
				return
			}
		}
	}
}

// Lookup returns the value of exactly this key, dots included.
func (m *Map) Lookup(key string) (Value, bool) {
	if m == nil {
		return Value{}, false
	}
	value, ok := m.values[key]
	return value, ok
}

// Get returns the value at a dotted path. A key that itself contains dots is found by its own name
// first.
func (m *Map) Get(path string) (Value, bool) {
	if value, ok := m.Lookup(path); ok {
		return value, true
	}
	for i := range len(path) {
		if path[i] != '.' {
			continue
		}
		child, _ := m.Lookup(path[:i])
		nested, ok := child.Map()
		if !ok {
			continue
		}
		if value, found := nested.Get(path[i+1:]); found {
			return value, true
		}
	}
	return Value{}, false
}

// Origin returns where the value at a dotted path was written.
func (m *Map) Origin(path string) (Origin, bool) {
	value, ok := m.Get(path)
	return value.Origin(), ok
}

// Leaves returns the values that are not mappings, and empty mappings, with their dotted keys.
func (m *Map) Leaves() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) { m.leaves("", yield) }
}

func (m *Map) leaves(path string, yield func(string, Value) bool) bool {
	for key, v := range m.All() {
		at := JoinPath(path, key)
		if inner, ok := v.Map(); ok && inner.Len() > 0 {
			if !inner.leaves(at, yield) {
				return false
			}
		} else if !yield(at, v) {
			return false
		}
	}
	return true
}

// Any returns m as plain Go data, a deep copy; see [Value.Any].
func (m *Map) Any() map[string]any {
	fields := make(map[string]any, m.Len())
	for key, value := range m.All() {
		fields[key] = value.Any()
	}
	return fields
}

// Equal reports whether both maps hold equal values under the same keys, in any order.
func (m *Map) Equal(other *Map) bool {
	if m.Len() != other.Len() {
		return false
	}
	for key, value := range m.All() {
		theirs, ok := other.Lookup(key)
		if !ok || !value.Equal(theirs) {
			return false
		}
	}
	return true
}

// Without returns m minus the given keys.
func (m *Map) Without(drop ...string) *Map {
	kept := newMap(m.Len())
	for key, value := range m.All() {
		if !slices.Contains(drop, key) {
			kept.set(key, value)
		}
	}
	return kept
}

// NullStrings returns m with every string that is exactly "null" replaced by null, at any depth
// outside lists.
func (m *Map) NullStrings() *Map {
	result := newMap(m.Len())
	for key, value := range m.All() {
		if nested, ok := value.Map(); ok {
			value.data = nested.NullStrings()
		} else if value.data == "null" {
			value.data = nil
		}
		result.set(key, value)
	}
	return result
}

// FromGo converts plain Go data to a Value without origin: nil, bools, numbers, strings, []byte,
// slices, maps with string keys (sorted), *Map and Value. Anything else is an error.
func FromGo(data any) (Value, error) {
	switch d := data.(type) {
	case nil:
		return Value{}, nil
	case Value:
		return d, nil
	case *Map:
		return Value{data: d.clone(0)}, nil
	case *big.Int:
		if d.IsInt64() {
			return Value{data: d.Int64()}, nil
		}
		return Value{data: new(big.Int).Set(d)}, nil
	case []byte:
		return Value{data: slices.Clone(d)}, nil
	case bool, int64, float64, scalar.Date, scalar.Time:
		return Value{data: d}, nil
	}
	switch r := reflect.ValueOf(data); r.Kind() {
	case reflect.Bool:
		return Value{data: r.Bool()}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Value{data: r.Int()}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return FromGo(new(big.Int).SetUint64(r.Uint()))
	case reflect.Float32, reflect.Float64:
		return Value{data: r.Float()}, nil
	case reflect.String:
		if !utf8.ValidString(r.String()) {
			return Value{}, fmt.Errorf("document: %q is not UTF-8 text", r.String())
		}
		return Value{data: r.String()}, nil
	case reflect.Slice, reflect.Array:
		return listFromGo(r)
	case reflect.Map:
		return mapFromGo(r)
	default:
		return Value{}, fmt.Errorf("document: %T cannot be a configuration value", data)
	}
}

func listFromGo(r reflect.Value) (Value, error) {
	items := make([]Value, r.Len())
	for i := range items {
		item, err := FromGo(r.Index(i).Interface())
		if err != nil {
			return Value{}, err
		}
		items[i] = item
	}
	return Value{data: items}, nil
}

func mapFromGo(r reflect.Value) (Value, error) {
	if r.Type().Key().Kind() != reflect.String {
		return Value{}, fmt.Errorf("document: keys of %s are not strings", r.Type())
	}
	keys := r.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	m := newMap(len(keys))
	for _, key := range keys {
		value, err := FromGo(r.MapIndex(key).Interface())
		if err == nil && !utf8.ValidString(key.String()) {
			err = fmt.Errorf("document: key %q is not UTF-8 text", key.String())
		}
		if err != nil {
			return Value{}, err
		}
		m.set(key.String(), value)
	}
	return Value{data: m}, nil
}

func newMap(size int) *Map {
	return &Map{values: make(map[string]Value, size)}
}

// clone returns a shallow copy with room for extra more keys.
func (m *Map) clone(extra int) *Map {
	copied := newMap(m.Len() + extra)
	if m != nil {
		copied.keys = slices.Clone(m.keys)
		maps.Copy(copied.values, m.values)
	}
	return copied
}

// set adds or replaces a key in place; only for maps nobody else has seen yet.
func (m *Map) set(key string, value Value) {
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
}
