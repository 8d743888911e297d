package pyeval

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

func (m *Machine) evalCall(f *frame, e *pysource.Call) Value {
	c := &Call{Func: m.resolve(m.eval(f, e.Func)), Node: e, Module: f.scope.module}
	for _, a := range e.Args {
		star, ok := a.(*pysource.Starred)
		if !ok {
			c.Args = append(c.Args, m.eval(f, a))
			continue
		}
		next, known := m.iterate(m.eval(f, star.Value))
		if !known {
			c.Open = true
			continue
		}
		for v, ok := next(); ok; v, ok = next() {
			c.Args = append(c.Args, v)
		}
	}
	for _, k := range e.Keywords {
		v := m.eval(f, k.Value)
		if k.Name != "" {
			c.Keywords = append(c.Keywords, Named{k.Name, v})
			continue
		}
		d, ok := v.(*Mapping)
		if !ok || d.Open {
			c.Open = true
			continue
		}
		for i, key := range d.Keys {
			if name, ok := Str(key); ok {
				c.Keywords = append(c.Keywords, Named{name, d.Values[i]})
			}
		}
	}
	if name, ok := e.Func.(*pysource.Name); ok && name.ID == "super" && len(e.Args) == 0 {
		return m.opaque(f, e)
	}
	return m.call(c)
}

// call returns the value of a call.
func (m *Machine) call(c *Call) Value {
	if m.Hooks.Call != nil {
		if v, ok := m.Hooks.Call(c); ok {
			return v
		}
	}
	switch fn := m.resolve(c.Func).(type) {
	case *Native:
		if v := fn.Call(m, c); v != nil {
			return v
		}
	case *Function:
		return m.callFunction(fn, c)
	case *Class:
		return m.construct(fn, c)
	case External:
		if v, ok := m.library(fn.Path, c); ok {
			return v
		}
	case *Union:
		var values []Value
		for _, alternative := range fn.Of {
			if isNone(alternative) {
				continue
			}
			each := *c
			each.Func = alternative
			values = append(values, m.call(&each))
		}
		if len(values) > 0 {
			return union(values...)
		}
	}
	return m.result(c)
}

// result returns the value of a call that cannot be known.
func (m *Machine) result(c *Call) Value {
	parts := append([]Value{c.Func}, c.Args...)
	for _, k := range c.Keywords {
		parts = append(parts, k.Value)
	}
	source := "a call"
	if c.Node != nil {
		source = strings.Join(strings.Fields(c.Module.File.Source(c.Node)), " ")
	}
	return &Opaque{Source: source, Parts: parts}
}

// callFunction runs a function of the tree.
func (m *Machine) callFunction(fn *Function, c *Call) Value {
	if m.depth >= maxDepth || m.active[fn.Def] >= maxRecursion || m.exhausted || (fn.Def != nil && (fn.Def.Async || generates(fn.Def))) {
		return m.result(c)
	}
	vars, ok := m.bind(fn, c)
	if !ok {
		return m.result(c)
	}
	m.depth++
	m.active[fn.Def]++
	defer func() {
		m.depth--
		m.active[fn.Def]--
	}()
	f := &frame{scope: &Scope{vars: vars, parent: fn.Scope, module: fn.Module, function: fn}}
	if fn.Def == nil {
		return m.eval(f, fn.Body)
	}
	switch end := m.block(f, fn.Def.Body); {
	case end == raises && len(f.returns) == 0:
		return m.result(c)
	case end == goesOn:
		f.returns = append(f.returns, Const{nil})
	case m.exhausted:
		return m.result(c)
	}
	return union(f.returns...)
}

// generates reports whether a function is a generator.
func generates(def *pysource.FunctionDef) bool {
	found := false
	for _, s := range def.Body {
		pysource.Walk(s, func(n pysource.Node) bool {
			switch n.(type) {
			case *pysource.Yield, *pysource.YieldFrom:
				found = true
			case *pysource.FunctionDef, *pysource.Lambda, *pysource.ClassDef:
				return false
			}
			return !found
		})
	}
	return found
}

// bind assigns arguments to the parameters of a function; ok is false if they do not fit.
func (m *Machine) bind(fn *Function, c *Call) (vars map[string]Value, ok bool) {
	vars = map[string]Value{}
	args := c.Args
	if fn.Self != nil {
		args = append([]Value{fn.Self}, args...)
	}
	a := fn.Args
	positional := slices.Concat(a.Posonlyargs, a.Args)
	for i, p := range positional {
		if i < len(args) {
			vars[p.Name] = args[i]
		}
	}
	rest := &Sequence{Kind: "tuple", Open: c.Open}
	if len(args) > len(positional) {
		if a.Vararg == nil {
			return nil, false
		}
		rest.Items = args[len(positional):]
	}
	extra := &Mapping{Open: c.Open}
	named := slices.Concat(a.Args, a.Kwonlyargs)
	for _, k := range c.Keywords {
		if slices.ContainsFunc(named, func(p *pysource.Arg) bool { return p.Name == k.Name }) {
			vars[k.Name] = k.Value
		} else if a.Kwarg != nil {
			extra.put(Const{k.Name}, k.Value)
		} else {
			return nil, false
		}
	}
	for _, p := range slices.Concat(positional, a.Kwonlyargs) {
		if _, given := vars[p.Name]; given {
			continue
		}
		d, ok := fn.Defaults[p.Name]
		switch {
		case c.Open:
			vars[p.Name] = &Opaque{Source: p.Name}
		case ok:
			vars[p.Name] = d
		default:
			return nil, false
		}
	}
	if a.Vararg != nil {
		vars[a.Vararg.Name] = rest
	}
	if a.Kwarg != nil {
		vars[a.Kwarg.Name] = extra
	}
	return vars, true
}

// construct makes an instance of a class of the tree.
func (m *Machine) construct(class *Class, c *Call) Value {
	o := &Object{Class: class, Attrs: map[string]Value{}}
	if init, found, known := class.find("__init__"); found {
		if fn, ok := init.(*Function); ok {
			bound := *fn
			bound.Self = o
			each := *c
			each.Func = &bound
			m.callFunction(&bound, &each)
			return o
		}
	} else if !known {
		return m.result(c)
	}
	if !class.Dataclass || c.Open || len(c.Args) > len(class.fields) {
		return m.result(c)
	}
	for i, v := range c.Args {
		o.Attrs[class.fields[i]] = v
	}
	for _, k := range c.Keywords {
		o.Attrs[k.Name] = k.Value
	}
	if post, found, _ := class.find("__post_init__"); found {
		if fn, ok := post.(*Function); ok {
			bound := *fn
			bound.Self = o
			m.callFunction(&bound, &Call{Func: &bound, Module: c.Module, Node: c.Node})
		}
	}
	return o
}
