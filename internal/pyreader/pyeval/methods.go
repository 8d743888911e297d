package pyeval

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// method returns a method of a value of Python's own types.
func method(v Value, name string) func(*Machine, *Call) Value {
	return func(m *Machine, c *Call) Value {
		switch v := v.(type) {
		case Const:
			return v.method(m, name, c)
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
	from, ok := Str(c.Arg(0, "old"))
	to, known := Str(c.Arg(1, "new"))
	if name == "replace" && ok && known {
		return &SourceText{Of: t.Of, Anchors: append(slices.Clone(t.Anchors), [2]string{from, to})}
	}
	return &Opaque{Source: "source." + name, Parts: []Value{t}}
}

func (c Const) method(m *Machine, name string, call *Call) Value {
	s, ok := c.V.(string)
	if !ok {
		return nil
	}
	first, given := Str(call.Arg(0, ""))
	switch name {
	case "lower":
		return Const{strings.ToLower(s)}
	case "upper":
		return Const{strings.ToUpper(s)}
	case "strip", "lstrip", "rstrip":
		return strip(name, s, first, given)
	case "startswith", "endswith":
		test := map[string]func(string, string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix}[name]
		if given {
			return Const{test(s, first)}
		}
		if options, ok := call.Arg(0, "").(*Sequence); ok && !options.Open {
			return Const{slices.ContainsFunc(options.Items, func(v Value) bool {
				t, ok := Str(v)
				return ok && test(s, t)
			})}
		}
	case "replace":
		if to, ok := Str(call.Arg(1, "")); ok && given && (len(s)+1)*(len(to)+1) <= maxText {
			return Const{strings.ReplaceAll(s, first, to)}
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
		list := &Sequence{Kind: "list", shared: !m.running}
		for _, p := range parts {
			list.Items = append(list.Items, Const{p})
		}
		return list
	case "join":
		next, known := m.iterate(call.Arg(0, ""))
		if !known {
			return nil
		}
		var parts []string
		size := 0
		for v, ok := next(); ok; v, ok = next() {
			t, isText := Str(v)
			if !isText {
				return nil
			}
			parts = append(parts, t)
			if size += len(t) + len(s); size > maxText {
				return nil
			}
		}
		return Const{strings.Join(parts, s)}
	case "format":
		return format(s, call)
	case "isdigit":
		return Const{s != "" && strings.Trim(s, "0123456789") == ""}
	}
	return nil
}

func strip(name, s, cut string, given bool) Value {
	if !given {
		cut = " \t\n\r\f\v"
	}
	if name != "rstrip" {
		s = strings.TrimLeft(s, cut)
	}
	if name != "lstrip" {
		s = strings.TrimRight(s, cut)
	}
	return Const{s}
}

// format fills the plain fields of a text: {} and {name}.
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
		if !ok || s[at] == '}' {
			return nil
		}
		v := c.Arg(-1, field)
		if field == "" {
			v = c.Arg(place, "")
			place++
		} else if i, err := strconv.Atoi(field); err == nil {
			v = c.Arg(i, "")
		}
		known, ok := v.(Const)
		if !ok {
			return nil
		}
		b.WriteString(text(known))
		if s = rest; b.Len() > maxText {
			return nil
		}
	}
	return Const{b.String()}
}

func (d *Mapping) method(m *Machine, name string, c *Call) Value {
	switch name {
	case "get":
		v, found, known := d.get(c.Arg(0, ""))
		fallback := c.Arg(1, "default")
		if fallback == nil {
			fallback = Const{nil}
		}
		switch {
		case found:
			return v
		case known:
			return fallback
		}
		return nil
	case "items", "keys", "values":
		list := &Sequence{Kind: "list", Open: d.Open, shared: !m.running}
		for i, key := range d.Keys {
			switch name {
			case "keys":
				list.Items = append(list.Items, key)
			case "values":
				list.Items = append(list.Items, d.Values[i])
			default:
				list.Items = append(list.Items, &Sequence{Kind: "tuple", Items: []Value{key, d.Values[i]}})
			}
		}
		return list
	case "copy":
		return &Mapping{Keys: slices.Clone(d.Keys), Values: slices.Clone(d.Values), Open: d.Open, shared: !m.running}
	}
	m.store(&Store{Base: d, Method: name, Key: c.Arg(0, ""), Value: c.Arg(1, ""), Module: c.Module, Node: node(c)})
	if d.shared && m.running {
		return nil
	}
	switch name {
	case "setdefault":
		if v, found, known := d.get(c.Arg(0, "")); found {
			return v
		} else if known && c.Arg(1, "") != nil {
			d.put(c.Arg(0, ""), c.Arg(1, ""))
			return c.Arg(1, "")
		}
	case "update":
		if other, ok := c.Arg(0, "").(*Mapping); ok && !other.Open {
			for i, key := range other.Keys {
				d.put(key, other.Values[i])
			}
			return Const{nil}
		}
	case "clear":
		d.Keys, d.Values = nil, nil
		return Const{nil}
	}
	d.Open = true
	return nil
}

func node(c *Call) pysource.Node {
	if c.Node == nil {
		return nil
	}
	return c.Node
}

func (s *Sequence) method(m *Machine, name string, c *Call) Value {
	switch name {
	case "index", "count", "union", "intersection", "issubset", "copy", "difference", "isdisjoint", "issuperset":
		return nil
	}
	m.store(&Store{Base: s, Method: name, Value: c.Arg(0, ""), Module: c.Module, Node: node(c)})
	if s.shared && m.running {
		return nil
	}
	switch name {
	case "append", "add":
		if v := c.Arg(0, ""); v != nil && len(s.Items) < maxItems {
			s.Items = append(s.Items, v)
			return Const{nil}
		}
	case "extend", "update":
		if next, known := m.iterate(c.Arg(0, "")); known {
			for v, ok := next(); ok && len(s.Items) < maxItems; v, ok = next() {
				s.Items = append(s.Items, v)
			}
			return Const{nil}
		}
	}
	s.Open = true
	return nil
}

// opaqueMethod returns the result of a method of an opaque value, as far as it is known.
func (m *Machine) opaqueMethod(o *Opaque, name string) (Value, bool) {
	if PathOf(o) == "sys.modules" && (name == "items" || name == "copy") {
		return &Native{Name: name, Call: func(*Machine, *Call) Value { return o }}, true
	}
	return nil, false
}

// index returns the index in a list that a key means.
func index(key Value, length int) (int, bool) {
	c, ok := key.(Const)
	if !ok {
		return 0, false
	}
	n, ok := c.V.(*big.Int)
	if !ok || !n.IsInt64() {
		return 0, false
	}
	i := n.Int64()
	if i < 0 {
		i += int64(length)
	}
	return int(i), i >= 0 && i < int64(length)
}

// text returns str of a constant.
func text(c Const) string {
	if s, ok := c.V.(string); ok {
		return s
	}
	return Repr(c)
}

// Repr returns a value as Python writes it.
func Repr(v Value) string {
	switch v := v.(type) {
	case Const:
		switch c := v.V.(type) {
		case nil:
			return "None"
		case bool:
			if c {
				return "True"
			}
			return "False"
		case *big.Int:
			return c.String()
		case float64:
			s := strconv.FormatFloat(c, 'g', -1, 64)
			if !strings.ContainsAny(s, ".enI") {
				s += ".0"
			}
			return s
		case string:
			if strings.Contains(c, "'") && !strings.Contains(c, `"`) {
				return `"` + c + `"`
			}
			return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(c) + "'"
		}
	case *Sequence:
		var parts []string
		for _, item := range v.Items {
			parts = append(parts, Repr(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case External:
		return v.Path
	case Argument:
		return "args." + v.Path
	case Variable:
		return "$" + v.Name
	case *Opaque:
		return v.Source
	case *Function:
		return v.Path()
	case *Class:
		return v.Path()
	case *Module:
		return v.Name
	case lazyName:
		return strings.TrimSuffix(v.module+"."+v.name, ".")
	case *Native:
		if len(v.Parts) > 0 {
			return Repr(v.Parts[0]) + "." + v.Name
		}
		return v.Name
	case *Object:
		if v.Class != nil {
			return "an instance of " + v.Class.Path()
		}
	case *Union:
		var parts []string
		for _, w := range v.Of {
			parts = append(parts, Repr(w))
		}
		return strings.Join(parts, " or ")
	}
	return "unknown"
}
