package config

import (
	"strconv"
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
		b.WriteString("; over " + old.brief() + " (" + old.Origin().String() + ")")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, b.String())
}

// brief spells a scalar on one line, and describes everything else.
func (v Value) brief() string {
	switch d := v.data.(type) {
	case string:
		return strconv.Quote(shorten(d))
	case []Value, *Map:
		return v.describe()
	}
	return shorten(v.canonical())
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
