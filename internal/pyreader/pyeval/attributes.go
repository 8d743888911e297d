package pyeval

import (
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// attribute returns an attribute of a value.
func (m *Machine) attribute(v Value, name string, f *frame, n pysource.Node) Value {
	if a, found, known := m.Attr(v, name); found {
		return a
	} else if u, ok := m.resolve(v).(*Union); ok && !known {
		var values []Value
		for _, alternative := range u.Of {
			if isNone(alternative) {
				continue // it would raise
			}
			values = append(values, m.attribute(alternative, name, f, n))
		}
		if len(values) > 0 {
			return union(values...)
		}
	}
	return m.opaque(f, n, v)
}

// Attr returns an attribute of a value where it is known, and else whether it is known that there
// is none.
func (m *Machine) Attr(v Value, name string) (attr Value, found, known bool) {
	switch v := m.resolve(v).(type) {
	case External:
		path := v.Path + "." + name
		if stored, ok := m.overlay[path]; ok && m.running {
			return stored, true, true
		}
		return External{path}, true, true
	case Argument:
		path := strings.TrimPrefix(v.Path+"."+name, ".")
		if stored, ok := m.overlay["\x00"+path]; ok && m.running {
			return stored, true, true
		}
		return Argument{path}, true, false
	case *Module:
		return m.moduleAttr(v, name)
	case *Class:
		return m.classAttr(v, name)
	case *Object:
		return m.objectAttr(v, name)
	case *Function:
		if name == "__name__" || name == "__qualname__" {
			return Const{v.Name}, true, true
		}
		if name == "__doc__" && v.Def != nil {
			return Const{nil}, true, true
		}
	case Const:
		if _, ok := v.V.(string); !ok {
			return nil, false, v.V == nil
		}
		return &Native{Name: name, Call: method(v, name), Parts: []Value{v}}, true, true
	case *Sequence, *Mapping, *SourceText:
		return &Native{Name: name, Call: method(v, name), Parts: []Value{v}}, true, true
	case *Opaque:
		if method, ok := m.opaqueMethod(v, name); ok {
			return method, true, true
		}
	}
	return nil, false, false
}

func (m *Machine) moduleAttr(mod *Module, name string) (Value, bool, bool) {
	if v, ok := m.variable(mod, name); ok && !builtinOf(v, name) {
		return v, true, true
	}
	if _, _, ok := m.Exists(mod.Name + "." + name); ok {
		if sub, loaded := m.modules[mod.Name+"."+name]; loaded && sub != nil {
			return sub, true, true
		}
	}
	return nil, false, mod.done
}

func builtinOf(v Value, name string) bool {
	e, ok := v.(External)
	return ok && e.Path == "builtins."+name
}

func (m *Machine) classAttr(c *Class, name string) (Value, bool, bool) {
	switch name {
	case "__name__", "__qualname__":
		return Const{c.Name}, true, true
	case "__module__":
		return Const{c.Module.Name}, true, true
	}
	if stored, ok := m.overlay[c.Path()+"."+name]; ok && m.running {
		return stored, true, true
	}
	v, found, known := c.find(name)
	if fn, ok := v.(*Function); ok && fn.Kind == "classmethod" {
		bound := *fn
		bound.Self = c
		return &bound, true, true
	}
	return v, found, known
}

// Path returns the dotted name of a class.
func (c *Class) Path() string { return c.Module.Name + "." + c.Name }

// Path returns the dotted name of a function.
func (f *Function) Path() string {
	if f.Owner != nil {
		return f.Owner.Path() + "." + f.Name
	}
	return f.Module.Name + "." + f.Name
}

func (m *Machine) objectAttr(o *Object, name string) (Value, bool, bool) {
	if v, ok := o.Attrs[name]; ok {
		return v, true, true
	}
	if o.Class == nil {
		return nil, false, !o.Open
	}
	if name == "__class__" {
		return o.Class, true, true
	}
	v, found, known := o.Class.find(name)
	fn, ok := v.(*Function)
	if !ok || fn.Kind == "staticmethod" {
		return v, found, known
	}
	bound := *fn
	bound.Self = o
	if fn.Kind == "classmethod" {
		bound.Self = o.Class
	}
	if fn.Kind == "property" {
		return m.call(&Call{Func: &bound, Module: fn.Module}), true, true
	}
	return &bound, true, true
}

// store changes an attribute or an item.
func (m *Machine) store(s *Store) {
	s.Base = m.resolve(s.Base)
	s.Alternative = m.alternative > 0
	if u, ok := s.Base.(*Union); ok {
		for _, base := range u.Of {
			each := *s
			each.Base = base
			m.store(&each)
		}
		return
	}
	if s.Attr != "" && s.Method == "" {
		if old, found, _ := m.Attr(s.Base, s.Attr); found {
			s.Old = old
		}
	}
	if m.Hooks.Store != nil {
		m.Hooks.Store(s)
	}
	if s.Method != "" {
		return
	}
	switch base := s.Base.(type) {
	case External:
		if s.Attr != "" {
			m.overlay[base.Path+"."+s.Attr] = s.Value
		}
	case Argument:
		if s.Attr != "" && s.Value != nil {
			m.overlay["\x00"+strings.TrimPrefix(base.Path+"."+s.Attr, ".")] = s.Value
		}
	case *Module:
		if s.Attr != "" && s.Value != nil {
			m.setVariable(base, s.Attr, s.Value)
		}
	case *Class:
		if s.Attr != "" && s.Value != nil {
			if m.running {
				m.overlay[base.Path()+"."+s.Attr] = s.Value
			} else {
				base.Attrs[s.Attr] = s.Value
			}
		}
	case *Object:
		if s.Attr != "" && s.Value != nil {
			base.Attrs[s.Attr] = s.Value
		}
	case *Function:
		if s.Value != nil {
			base.Parts = append(base.Parts, s.Value)
		}
	case *Mapping:
		if s.Value != nil && (!base.shared || !m.running) {
			base.put(s.Key, s.Value)
		}
	case *Sequence:
		if i, ok := index(s.Key, len(base.Items)); ok && s.Value != nil && (!base.shared || !m.running) {
			base.Items[i] = s.Value
		}
	}
}

// item returns an item of a value.
func (m *Machine) item(f *frame, e *pysource.Subscript, v, key Value) Value {
	switch v := m.resolve(v).(type) {
	case *Mapping:
		if item, found, _ := v.get(key); found {
			return item
		}
	case *Sequence:
		if i, ok := index(key, len(v.Items)); ok && !v.Open {
			return v.Items[i]
		}
	case External:
		name, ok := Str(key)
		switch {
		case ok && v.Path == "sys.modules":
			return m.Import(name)
		case ok && v.Path == "os.environ":
			return m.variableOf(name, nil)
		}
		if ok {
			return External{v.Path + "[" + name + "]"}
		}
	case *Union:
		var values []Value
		for _, alternative := range v.Of {
			values = append(values, m.item(f, e, alternative, key))
		}
		return union(values...)
	}
	return m.opaque(f, e, v, key)
}
