package eval

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

func (m *Machine) evalCall(f *frame, e *syntax.Node) Value {
	c := &Call{Func: m.Resolve(m.eval(f, e.Value)), Node: e, Module: f.module}
	for _, a := range e.List {
		if a.Kind != syntax.Starred {
			c.Args = append(c.Args, m.eval(f, a))
		} else if items, known := m.iterate(m.eval(f, a.Value)); known {
			c.Args = slices.AppendSeq(c.Args, items)
		} else {
			c.open = true
		}
	}
	give := func(name, v Value) {
		c.keywords.Keys, c.keywords.Values = append(c.keywords.Keys, name), append(c.keywords.Values, v)
	}
	for _, k := range e.Keywords {
		v := m.eval(f, k.Value)
		d, ok := v.(*Mapping)
		switch {
		case k.Name != "":
			give(k.Name, v)
		case !ok || d.Open:
			c.open = true
		default:
			for i, key := range d.Keys {
				if name, ok := key.(string); ok {
					give(name, d.Values[i])
				}
			}
		}
	}
	if e.Value.Ident() == "super" && len(e.List) == 0 {
		return m.opaque(f, e)
	}
	return m.call(c)
}

// call returns the value of a call.
func (m *Machine) call(c *Call) Value {
	if m.OnCall != nil {
		if v := m.OnCall(c); v != nil {
			return v
		}
	}
	var v Value
	switch fn := m.Resolve(c.Func).(type) {
	case *Native:
		v = fn.Call(m, c)
	case *Function:
		v = m.callFunction(fn, c)
	case *Class:
		v = m.construct(fn, c)
	case External:
		v = m.library(fn.Path, c)
	case *Union:
		v = each(fn, func(alternative Value) Value {
			one := *c
			one.Func = alternative
			return m.call(&one)
		})
	}
	if v == nil {
		v = m.result(c)
	}
	return v
}

// result returns the value of a call that cannot be known.
func (m *Machine) result(c *Call) Value {
	source := "a call"
	if c.Node != nil {
		source = c.Module.File.Words(c.Node)
	}
	return &Opaque{Source: source, Parts: slices.Concat([]Value{c.Func}, c.Args, c.keywords.Values)}
}

// function returns a function or a lambda.
func (m *Machine) function(f *frame, name string, def *syntax.Node) *Function {
	fn := &Function{Name: name, Def: def, Module: f.module, scope: f.scope, defaults: map[string]Value{}}
	for _, p := range def.Params {
		if p.Value != nil {
			fn.defaults[p.Name] = m.eval(f, p.Value)
		}
	}
	return fn
}

// callFunction runs a function of the tree; its result is nil if it is not known.
func (m *Machine) callFunction(fn *Function, c *Call) Value {
	active := fn.Def
	if fn.IsLambda() {
		active = nil
	}
	if m.depth >= maxDepth || m.active[active] >= maxRecursion || m.exhausted || fn.Def.Async || !fn.IsLambda() && generates(fn.Def) {
		return nil
	}
	vars, ok := bind(fn, c)
	if !ok {
		return nil
	}
	m.depth++
	m.active[active]++
	defer func() {
		m.depth--
		m.active[active]--
	}()
	f := &frame{scope: &scope{kind: functionScope, vars: vars, parent: fn.scope, module: fn.Module}}
	if fn.IsLambda() {
		return m.eval(f, fn.Def.Returns)
	}
	switch end := m.block(f, fn.Def.Body); {
	case end == raises && len(f.returns) == 0:
		return nil
	case end == goesOn:
		f.returns = append(f.returns, None)
	case m.exhausted:
		return nil
	}
	return union(f.returns...)
}

// generates reports whether a function is a generator.
func generates(def *syntax.Node) bool {
	found := false
	for _, s := range def.Body {
		syntax.Walk(s, func(n *syntax.Node) bool {
			found = found || n.Kind == syntax.Yield || n.Kind == syntax.YieldFrom
			return !found && n.Kind != syntax.FunctionDef && n.Kind != syntax.Lambda && n.Kind != syntax.ClassDef
		})
	}
	return found
}

// bind assigns arguments to the parameters of a function; ok is false if they do not fit.
func bind(fn *Function, c *Call) (vars map[string]Value, ok bool) {
	args := c.Args
	if fn.self != nil {
		args = append([]Value{fn.self}, args...)
	}
	vars = map[string]Value{}
	var named []string
	var variable, keywords string
	taken := 0
	for _, p := range fn.Def.Params {
		switch p.Level {
		case syntax.VarArgs:
			variable = p.Name
			continue
		case syntax.VarKeywords:
			keywords = p.Name
			continue
		case syntax.PositionalOnly, syntax.Positional:
			if taken < len(args) {
				vars[p.Name] = args[taken]
				taken++
			}
		}
		if p.Level != syntax.PositionalOnly {
			named = append(named, p.Name)
		}
	}
	if taken < len(args) && variable == "" {
		return nil, false
	}
	extra := &Mapping{Open: c.open}
	for i, key := range c.keywords.Keys {
		name := key.(string)
		switch {
		case slices.Contains(named, name):
			vars[name] = c.keywords.Values[i]
		case keywords != "":
			extra.put(name, c.keywords.Values[i])
		default:
			return nil, false
		}
	}
	for _, p := range fn.Def.Params {
		if _, given := vars[p.Name]; given || p.Level == syntax.VarArgs || p.Level == syntax.VarKeywords {
			continue
		}
		d, ok := fn.defaults[p.Name]
		switch {
		case c.open:
			vars[p.Name] = &Opaque{Source: p.Name}
		case ok:
			vars[p.Name] = d
		default:
			return nil, false
		}
	}
	if variable != "" {
		vars[variable] = &Sequence{Kind: "tuple", Items: args[taken:], Open: c.open}
	}
	if keywords != "" {
		vars[keywords] = extra
	}
	return vars, true
}

// decorate binds a function or a class with what its decorators make of it. A decorator of a
// library is assumed to return the function, with the arguments of the decorator as parts.
func (m *Machine) decorate(f *frame, def *syntax.Node, v Value) {
	for _, d := range slices.Backward(def.Decorators) {
		decorator := m.Resolve(m.eval(f, d))
		switch decorator.(type) {
		case *Native, *Function:
			call := &Call{Func: decorator, Args: []Value{v}, Module: f.module}
			if d.Kind == syntax.Call {
				call.Node = d
			}
			if result := m.call(call); result != None {
				v = result
			}
			continue
		}
		path := PathOf(decorator)
		switch v := v.(type) {
		case *Class:
			v.dataclass = v.dataclass || strings.Contains(path, "dataclass")
		case *Function:
			switch name := strings.TrimPrefix(path, "builtins."); name {
			case "staticmethod", "classmethod", "property":
				v.kind = name
			case "functools.cached_property":
				v.kind = "property"
			default:
				v.Parts = append(v.Parts, decorator)
			}
		}
	}
	f.set(m, def.Name, v)
}

// class evaluates the body of a class.
func (m *Machine) class(f *frame, s *syntax.Node) *Class {
	class := &Class{Name: s.Name, module: f.module}
	for _, base := range s.List {
		b := m.Resolve(m.eval(f, base))
		class.bases = append(class.bases, b)
		if parent, ok := b.(*Class); ok {
			class.fields = append(class.fields, parent.fields...)
		}
	}
	for _, k := range s.Keywords {
		m.eval(f, k.Value)
	}
	body := &scope{kind: classScope, vars: map[string]Value{}, parent: f.scope, module: f.module}
	m.block(&frame{scope: body}, s.Body)
	class.attrs = body.vars
	for _, stmt := range s.Body {
		if stmt.Kind == syntax.AnnAssign && stmt.Target.Kind == syntax.Name && !strings.Contains(f.module.File.Source(stmt.Annotation), "ClassVar") {
			class.fields = append(class.fields, stmt.Target.Name)
		}
	}
	for _, v := range class.attrs {
		if fn, ok := v.(*Function); ok && fn.owner == nil {
			fn.owner = class
		}
	}
	return class
}

// find looks up an attribute in a class and its bases; known is false if a base is not known.
func (c *Class) find(name string) (v Value, found, known bool) {
	if v, ok := c.attrs[name]; ok {
		return v, true, true
	}
	known = true
	for _, b := range c.bases {
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

// boundTo returns a method that gets a value as its first argument.
func (f *Function) boundTo(self Value) *Function {
	bound := *f
	bound.self = self
	return &bound
}

// construct makes an instance of a class of the tree; it is nil if it is not known.
func (m *Machine) construct(class *Class, c *Call) Value {
	o := &Object{class: class, Attrs: map[string]Value{}}
	init, found, known := class.find("__init__")
	if fn, ok := init.(*Function); ok {
		m.callFunction(fn.boundTo(o), c)
		return o
	}
	if !found && !known || !class.dataclass || c.open || len(c.Args) > len(class.fields) {
		return nil
	}
	for i, v := range c.Args {
		o.Attrs[class.fields[i]] = v
	}
	for i, name := range c.keywords.Keys {
		o.Attrs[name.(string)] = c.keywords.Values[i]
	}
	if post, _, _ := class.find("__post_init__"); post != nil {
		if fn, ok := post.(*Function); ok {
			m.callFunction(fn.boundTo(o), &Call{Module: c.Module, Node: c.Node})
		}
	}
	return o
}
