package pyeval

import (
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

func (m *Machine) define(f *frame, s *pysource.FunctionDef) {
	fn := m.function(f, s.Name, s.Args)
	fn.Def = s
	var v Value = fn
	for i := len(s.Decorators) - 1; i >= 0; i-- {
		v = m.decorate(f, s.Decorators[i], v)
	}
	f.scope.set(m, s.Name, v)
}

func (m *Machine) function(f *frame, name string, args *pysource.Arguments) *Function {
	fn := &Function{Name: name, Args: args, Module: f.scope.module, Scope: f.scope, Defaults: map[string]Value{}}
	positional := append(args.Posonlyargs[:len(args.Posonlyargs):len(args.Posonlyargs)], args.Args...)
	for i, d := range args.Defaults {
		fn.Defaults[positional[len(positional)-len(args.Defaults)+i].Name] = m.eval(f, d)
	}
	for i, d := range args.KwDefaults {
		if d != nil {
			fn.Defaults[args.Kwonlyargs[i].Name] = m.eval(f, d)
		}
	}
	return fn
}

// decorate applies a decorator. A decorator of a library is assumed to return the function, with
// the arguments of the decorator as parts.
func (m *Machine) decorate(f *frame, d pysource.Expr, v Value) Value {
	decorator := m.resolve(m.eval(f, d))
	switch decorator := decorator.(type) {
	case *Native, *Function:
		call := &Call{Func: decorator, Args: []Value{v}, Module: f.scope.module}
		if c, ok := d.(*pysource.Call); ok {
			call.Node = c
		}
		if result := m.call(call); !isNone(result) {
			return result
		}
		return v
	}
	fn, ok := v.(*Function)
	if !ok {
		if class, ok := v.(*Class); ok && strings.Contains(PathOf(decorator), "dataclass") {
			class.Dataclass = true
		}
		return v
	}
	switch name := strings.TrimPrefix(PathOf(decorator), "builtins."); name {
	case "staticmethod", "classmethod", "property":
		fn.Kind = name
	case "functools.cached_property":
		fn.Kind = "property"
	default:
		fn.Parts = append(fn.Parts, decorator)
	}
	return v
}

func isNone(v Value) bool {
	c, ok := v.(Const)
	return ok && c.V == nil
}

// PathOf returns the dotted name of an external value, or of the external value that an opaque
// value came from; empty for others.
func PathOf(v Value) string {
	switch v := v.(type) {
	case External:
		return v.Path
	case *Opaque:
		if len(v.Parts) > 0 {
			return PathOf(v.Parts[0])
		}
	}
	return ""
}

func (m *Machine) defineClass(f *frame, s *pysource.ClassDef) {
	class := &Class{Name: s.Name, Def: s, Module: f.scope.module, Attrs: map[string]Value{}}
	for _, base := range s.Bases {
		b := m.resolve(m.eval(f, base))
		class.Bases = append(class.Bases, b)
		if parent, ok := b.(*Class); ok {
			class.fields = append(class.fields, parent.fields...)
		}
	}
	for _, k := range s.Keywords {
		m.eval(f, k.Value)
	}
	scope := &Scope{vars: class.Attrs, parent: f.scope, module: f.scope.module, class: true}
	m.block(&frame{scope: scope}, s.Body)
	class.Attrs = scope.vars
	for _, stmt := range s.Body {
		if a, ok := stmt.(*pysource.AnnAssign); ok {
			if name, ok := a.Target.(*pysource.Name); ok && !strings.Contains(class.Module.File.Source(a.Annotation), "ClassVar") {
				class.fields = append(class.fields, name.ID)
			}
		}
	}
	for _, v := range class.Attrs {
		if fn, ok := v.(*Function); ok && fn.Owner == nil {
			fn.Owner = class
		}
	}
	var v Value = class
	for i := len(s.Decorators) - 1; i >= 0; i-- {
		v = m.decorate(f, s.Decorators[i], v)
	}
	f.scope.set(m, s.Name, v)
}

// find looks up an attribute in a class and its bases; known is false if a base is not known.
func (c *Class) find(name string) (v Value, found, known bool) {
	if v, ok := c.Attrs[name]; ok {
		return v, true, true
	}
	known = true
	for _, b := range c.Bases {
		parent, ok := b.(*Class)
		if !ok {
			known = known && PathOf(b) == "builtins.object"
			continue
		}
		v, found, ok := parent.find(name)
		if found {
			return v, true, true
		}
		known = known && ok
	}
	return nil, false, known
}
