package config

import (
	"bytes"
	"strings"
	"unicode"
)

// note says in one line where v was written and what it replaced, "" for a value made by code or a mapping that replaced
// nothing, whose keys speak for themselves.
func (v Value) note() string {
	replaced := v.Replaced()
	if v.Origin().IsZero() || v.Kind() == KindMap && len(replaced) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(v.Origin().String())
	for _, old := range replaced {
		b.WriteString("; over " + shorten(old.String()) + " (" + old.Origin().String() + ")")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, b.String())
}

// String spells a value on one line: scalars as in YAML, but strings in quotes, lists and mappings as in JSON.
func (v Value) String() string {
	switch v.Kind() {
	case KindString, KindList, KindMap:
		var b bytes.Buffer
		if err := v.appendJSON(&b); err != nil {
			return v.describe()
		}
		return b.String()
	}
	return v.canonical()
}

// listOrigins adds to list, for each value below m that has an origin, its path with where it was written and what it
// replaced.
func listOrigins(list, m *Map, path string) {
	for key, value := range m.All() {
		at := joinPath(path, key)
		replaced := value.Replaced()
		if nested, ok := value.Map(); ok {
			listOrigins(list, nested, at)
			if len(replaced) == 0 {
				continue
			}
		}
		if value.Origin().IsZero() {
			continue
		}
		entry := newMap(2)
		entry.set("origin", Value{data: value.Origin().String()})
		var older []Value
		for _, old := range replaced {
			one := newMap(2)
			old.over = nil
			one.set("value", old)
			one.set("origin", Value{data: old.Origin().String()})
			older = append(older, Value{data: one})
		}
		if older != nil {
			entry.set("replaced", Value{data: older})
		}
		list.set(at, Value{data: entry})
	}
}
