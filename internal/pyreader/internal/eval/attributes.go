package eval

import (
	"math/big"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// attribute returns an attribute of a value.
func (m *Machine) attribute(v Value, name string, f *frame, n *syntax.Node) Value {
	a, found, known := m.Attr(v, name)
	if found {
		return a
	}
	if !known {
		a = each(m.Resolve(v), func(alternative Value) Value { return m.attribute(alternative, name, f, n) })
	}
	if a == nil {
		a = m.opaque(f, n, v)
	}
	return a
}

// Attr returns an attribute of a value where it is known, and else whether it is known that there
// is none.
func (m *Machine) Attr(v Value, name string) (attr Value, found, known bool) {
	switch v := m.Resolve(v).(type) {
	case External:
		path := v.Path + "." + name
		if stored, ok := m.overlay[path]; ok && m.running {
			return stored, true, true
		}
		return External{path}, true, true
	case Argument:
		path := strings.TrimPrefix(v.Path+"."+name, ".")
		if stored, ok := m.overlay[argumentKey+path]; ok && m.running {
			return stored, true, true
		}
		return Argument{path}, true, false
	case *Module:
		if a, ok := m.variable(v, name); ok && a != (External{"builtins." + name}) {
			return a, true, true
		}
		if sub := m.modules[v.Name+"."+name]; sub != nil {
			return sub, true, true
		}
		return nil, false, v.done
	case *Class:
		return m.classAttr(v, name)
	case *Object:
		return m.objectAttr(v, name)
	case *Function:
		if name == "__name__" || name == "__qualname__" {
			return v.Name, true, true
		}
		if name == "__doc__" && !v.IsLambda() {
			return None, true, true
		}
	case string, *Sequence, *Mapping, *SourceText:
		return &Native{Name: name, Call: method(v, name), parts: []Value{v}}, true, true
	case *Opaque:
		if PathOf(v) == "sys.modules" && (name == "items" || name == "copy") {
			return &Native{Name: name, Call: func(*Machine, *Call) Value { return v }}, true, true
		}
	}
	return nil, false, v == None
}

// argumentKey begins the names of arguments among those of what a Run stored.
const argumentKey = "\x00"

func (m *Machine) classAttr(c *Class, name string) (Value, bool, bool) {
	switch name {
	case "__name__", "__qualname__":
		return c.Name, true, true
	case "__module__":
		return c.module.Name, true, true
	}
	if stored, ok := m.overlay[c.Path()+"."+name]; ok && m.running {
		return stored, true, true
	}
	v, found, known := c.find(name)
	if fn, ok := v.(*Function); ok && fn.kind == "classmethod" {
		v = fn.boundTo(c)
	}
	return v, found, known
}

func (m *Machine) objectAttr(o *Object, name string) (Value, bool, bool) {
	if v, ok := o.Attrs[name]; ok {
		return v, true, true
	}
	switch {
	case o.class == nil:
		return nil, false, !o.Open
	case name == "__class__":
		return o.class, true, true
	}
	v, found, known := o.class.find(name)
	if fn, ok := v.(*Function); ok {
		switch fn.kind {
		case "staticmethod":
		case "classmethod":
			v = fn.boundTo(o.class)
		case "property":
			v = m.call(&Call{Func: fn.boundTo(o), Module: fn.Module})
		default:
			v = fn.boundTo(o)
		}
	}
	return v, found, known
}

// store changes an attribute or an item.
func (m *Machine) store(s *Store) {
	s.Base = m.Resolve(s.Base)
	s.Alternative = m.alternative > 0
	if u, ok := s.Base.(*Union); ok {
		for _, base := range u.of {
			one := *s
			one.Base = base
			m.store(&one)
		}
		return
	}
	if m.OnStore != nil {
		m.OnStore(s)
	}
	if s.method != "" {
		return
	}
	set := s.Attr != "" && s.Value != nil
	switch base := s.Base.(type) {
	case External:
		if s.Attr != "" {
			m.overlay[base.Path+"."+s.Attr] = s.Value
		}
	case Argument:
		if set {
			m.overlay[argumentKey+strings.TrimPrefix(base.Path+"."+s.Attr, ".")] = s.Value
		}
	case *Module:
		if set {
			m.setVariable(base, s.Attr, s.Value)
		}
	case *Class:
		if set && m.running {
			m.overlay[base.Path()+"."+s.Attr] = s.Value
		} else if set {
			base.attrs[s.Attr] = s.Value
		}
	case *Object:
		if set {
			base.Attrs[s.Attr] = s.Value
		}
	case *Function:
		if s.Value != nil {
			base.Parts = append(base.Parts, s.Value)
		}
	case *Mapping:
		if s.Value != nil && !(base.shared && m.running) {
			base.put(s.Key, s.Value)
		}
	case *Sequence:
		if i, ok := index(s.Key, len(base.Items)); ok && s.Value != nil && !(base.shared && m.running) {
			base.Items[i] = s.Value
		}
	}
}

// item returns an item of a value.
func (m *Machine) item(f *frame, e *syntax.Node, v, key Value) Value {
	switch v := m.Resolve(v).(type) {
	case *Mapping:
		if item, found, _ := v.get(key); found {
			return item
		}
	case *Sequence:
		if i, ok := index(key, len(v.Items)); ok && !v.Open {
			return v.Items[i]
		}
	case External:
		if name, ok := key.(string); ok {
			switch v.Path {
			case "sys.modules":
				return m.Import(name)
			case "os.environ":
				return m.variableOf(name, nil)
			}
			return External{v.Path + "[" + name + "]"}
		}
	case *Union:
		var values []Value
		for _, alternative := range v.of {
			values = append(values, m.item(f, e, alternative, key))
		}
		return union(values...)
	}
	return m.opaque(f, e, v, key)
}

// index returns the index in a list that a key means.
func index(key Value, length int) (int, bool) {
	n, ok := key.(*big.Int)
	if !ok || !n.IsInt64() {
		return 0, false
	}
	i := n.Int64()
	if i < 0 {
		i += int64(length)
	}
	return int(i), i >= 0 && i < int64(length)
}
