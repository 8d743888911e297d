package eval

import (
	"slices"
	"strconv"
	"strings"
)

// method returns a method of a value of Python's own types.
func method(v Value, name string) func(*Machine, *Call) Value {
	return func(m *Machine, c *Call) Value {
		switch v := v.(type) {
		case string:
			return m.textMethod(v, name, c)
		case *SourceText:
			return v.method(name, c)
		case *Mapping:
			return v.method(m, name, c)
		case *Sequence:
			return v.method(m, name, c)
		}
		return nil
	}
}

func (t *SourceText) method(name string, c *Call) Value {
	from, ok := c.Arg(0, "old").(string)
	to, known := c.Arg(1, "new").(string)
	if name == "replace" && ok && known {
		return &SourceText{of: t.of, Anchors: append(slices.Clone(t.Anchors), [2]string{from, to})}
	}
	return &Opaque{Source: "source." + name, Parts: []Value{t}}
}

func (m *Machine) textMethod(s, name string, call *Call) Value {
	first, given := call.Arg(0, "").(string)
	switch name {
	case "lower":
		return strings.ToLower(s)
	case "upper":
		return strings.ToUpper(s)
	case "strip", "lstrip", "rstrip":
		if !given {
			first = " \t\n\r\f\v"
		}
		if name != "rstrip" {
			s = strings.TrimLeft(s, first)
		}
		if name != "lstrip" {
			s = strings.TrimRight(s, first)
		}
		return s
	case "startswith", "endswith":
		test := map[string]func(string, string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix}[name]
		if given {
			return test(s, first)
		}
		if options, ok := call.Arg(0, "").(*Sequence); ok && !options.Open {
			return slices.ContainsFunc(options.Items, func(v Value) bool {
				t, ok := v.(string)
				return ok && test(s, t)
			})
		}
	case "replace":
		if to, ok := call.Arg(1, "").(string); ok && given && (len(s)+1)*(len(to)+1) <= maxText {
			return strings.ReplaceAll(s, first, to)
		}
	case "split":
		var parts []string
		switch {
		case len(call.Args) == 0:
			parts = strings.Fields(s)
		case given && first != "" && len(call.Args) == 1:
			parts = strings.Split(s, first)
		default:
			return nil
		}
		list := m.list("list")
		for _, p := range parts {
			list.Items = append(list.Items, p)
		}
		return list
	case "join":
		items, known := m.iterate(call.Arg(0, ""))
		if !known {
			return nil
		}
		var parts []string
		size := 0
		for v := range items {
			t, isText := v.(string)
			if size += len(t) + len(s); !isText || size > maxText {
				return nil
			}
			parts = append(parts, t)
		}
		return strings.Join(parts, s)
	case "format":
		return format(s, call)
	case "isdigit":
		return s != "" && strings.Trim(s, "0123456789") == ""
	}
	return nil
}

// format fills the plain fields of a text: {} and {name}; it is nil if the text has others.
func format(s string, c *Call) Value {
	var b strings.Builder
	place := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		if strings.HasPrefix(s[at:], "{{") || strings.HasPrefix(s[at:], "}}") {
			b.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		field, rest, ok := strings.Cut(s[at+1:], "}")
		v := c.Arg(-1, field)
		if field == "" {
			v = c.Arg(place, "")
			place++
		} else if i, err := strconv.Atoi(field); err == nil {
			v = c.Arg(i, "")
		}
		if !ok || s[at] == '}' || !isConst(v) || b.Len() > maxText {
			return nil
		}
		b.WriteString(text(v))
		s = rest
	}
	return b.String()
}

func (d *Mapping) method(m *Machine, name string, c *Call) Value {
	key, value := c.Arg(0, ""), c.Arg(1, "")
	switch name {
	case "get":
		v, found, known := d.get(key)
		if found || !known {
			return v
		}
		if fallback := c.Arg(1, "default"); fallback != nil {
			return fallback
		}
		return None
	case "items", "keys", "values":
		list := m.list("list")
		list.Open = d.Open
		for i, key := range d.Keys {
			item := map[string]Value{"keys": key, "values": d.Values[i]}[name]
			if name == "items" {
				item = &Sequence{Kind: "tuple", Items: []Value{key, d.Values[i]}}
			}
			list.Items = append(list.Items, item)
		}
		return list
	case "copy":
		return &Mapping{Keys: slices.Clone(d.Keys), Values: slices.Clone(d.Values), Open: d.Open, shared: !m.running}
	}
	m.store(&Store{Base: d, method: name, Key: key, Value: value, Module: c.Module, Node: c.Node})
	if d.shared && m.running {
		return nil
	}
	switch name {
	case "setdefault":
		if v, found, known := d.get(key); found {
			return v
		} else if known && value != nil {
			d.put(key, value)
			return value
		}
	case "update":
		if other, ok := key.(*Mapping); ok && !other.Open {
			d.putAll(other)
			return None
		}
	case "clear":
		d.Keys, d.Values = nil, nil
		return None
	}
	d.Open = true
	return nil
}

func (s *Sequence) method(m *Machine, name string, c *Call) Value {
	first := c.Arg(0, "")
	switch name {
	case "index", "count", "union", "intersection", "issubset", "copy", "difference", "isdisjoint", "issuperset":
		return nil
	}
	m.store(&Store{Base: s, method: name, Value: first, Module: c.Module, Node: c.Node})
	if s.shared && m.running {
		return nil
	}
	switch name {
	case "append", "add":
		if first != nil && len(s.Items) < maxItems {
			s.Items = append(s.Items, first)
			return None
		}
	case "extend", "update":
		if items, known := m.iterate(first); known {
			for v := range items {
				if len(s.Items) >= maxItems {
					break
				}
				s.Items = append(s.Items, v)
			}
			return None
		}
	}
	s.Open = true
	return nil
}
