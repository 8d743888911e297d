package pyeval

import (
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// eval returns the value of an expression.
func (m *Machine) eval(f *frame, e pysource.Expr) Value {
	if !m.step() {
		return m.opaque(f, e)
	}
	switch e := e.(type) {
	case *pysource.Constant:
		return Const{e.Value}
	case *pysource.Name:
		if v, ok := f.scope.lookup(m, e.ID); ok {
			return v
		}
		return m.opaque(f, e)
	case *pysource.Attribute:
		return m.attribute(m.eval(f, e.Value), e.Attr, f, e)
	case *pysource.Subscript:
		return m.item(f, e, m.eval(f, e.Value), m.eval(f, e.Slice))
	case *pysource.Call:
		return m.evalCall(f, e)
	case *pysource.BoolOp:
		return m.boolOp(f, e)
	case *pysource.UnaryOp:
		return m.unary(f, e)
	case *pysource.BinOp:
		return m.binary(f, e, e.Op, m.eval(f, e.Left), m.eval(f, e.Right))
	case *pysource.Compare:
		return m.compare(f, e)
	case *pysource.IfExp:
		switch m.Truth(m.eval(f, e.Test)) {
		case True:
			return m.eval(f, e.Body)
		case False:
			return m.eval(f, e.Orelse)
		}
		return union(m.eval(f, e.Body), m.eval(f, e.Orelse))
	case *pysource.Lambda:
		fn := m.function(f, "<lambda>", e.Args)
		fn.Body = e.Body
		return fn
	case *pysource.List:
		return m.sequence(f, "list", e.Elts)
	case *pysource.Tuple:
		return m.sequence(f, "tuple", e.Elts)
	case *pysource.Set:
		return m.sequence(f, "set", e.Elts)
	case *pysource.Dict:
		return m.dict(f, e)
	case *pysource.JoinedStr:
		return m.joined(f, e)
	case *pysource.FormattedValue:
		return m.formatted(f, e)
	case *pysource.Comprehension:
		return m.comprehension(f, e)
	case *pysource.NamedExpr:
		v := m.eval(f, e.Value)
		m.assign(f, e.Target, v)
		return v
	case *pysource.Starred:
		return m.eval(f, e.Value)
	case *pysource.Await:
		return m.eval(f, e.Value)
	}
	return m.opaque(f, e)
}

// opaque returns the unknown value of an expression with these parts.
func (m *Machine) opaque(f *frame, n pysource.Node, parts ...Value) Value {
	source := strings.Join(strings.Fields(f.scope.module.File.Source(n)), " ")
	return &Opaque{Source: source, Parts: parts}
}

func (m *Machine) sequence(f *frame, kind string, elts []pysource.Expr) Value {
	s := &Sequence{Kind: kind, shared: !m.running}
	for _, e := range elts {
		star, ok := e.(*pysource.Starred)
		if !ok {
			s.Items = append(s.Items, m.eval(f, e))
			continue
		}
		v := m.eval(f, star.Value)
		next, known := m.iterate(v)
		if !known {
			s.Open, s.Items = true, append(s.Items, &Opaque{Source: "*", Parts: []Value{v}})
			continue
		}
		for item, ok := next(); ok; item, ok = next() {
			s.Items = append(s.Items, item)
		}
	}
	return s
}

func (m *Machine) dict(f *frame, e *pysource.Dict) Value {
	d := &Mapping{shared: !m.running}
	for i, value := range e.Values {
		v := m.eval(f, value)
		if e.Keys[i] != nil {
			d.put(m.eval(f, e.Keys[i]), v)
			continue
		}
		if other, ok := v.(*Mapping); ok {
			for j, key := range other.Keys {
				d.put(key, other.Values[j])
			}
			d.Open = d.Open || other.Open
			continue
		}
		d.Open = true
	}
	return d
}

// get returns the value of a key. known reports whether it is known if the key exists.
func (d *Mapping) get(key Value) (v Value, found, known bool) {
	known = !d.Open
	for i := len(d.Keys) - 1; i >= 0; i-- {
		switch equal(d.Keys[i], key) {
		case True:
			return d.Values[i], true, true
		case Unknown:
			known = false
		}
	}
	return nil, false, known
}

func (d *Mapping) put(key, v Value) {
	for i := range d.Keys {
		if equal(d.Keys[i], key) == True {
			d.Values[i] = v
			return
		}
	}
	d.Keys, d.Values = append(d.Keys, key), append(d.Values, v)
}

func (m *Machine) joined(f *frame, e *pysource.JoinedStr) Value {
	var b strings.Builder
	var parts []Value
	known := true
	for _, part := range e.Values {
		v := m.eval(f, part)
		parts = append(parts, v)
		s, ok := Str(v)
		known = known && ok
		b.WriteString(s)
	}
	if !known || b.Len() > maxText {
		return m.opaque(f, e, parts...)
	}
	return Const{b.String()}
}

func (m *Machine) formatted(f *frame, e *pysource.FormattedValue) Value {
	v := m.eval(f, e.Value)
	c, ok := v.(Const)
	if !ok || e.FormatSpec != nil {
		return m.opaque(f, e, v)
	}
	if e.Conversion == 'r' {
		return Const{Repr(c)}
	}
	return Const{text(c)}
}

func (m *Machine) comprehension(f *frame, e *pysource.Comprehension) Value {
	inner := &frame{scope: &Scope{vars: map[string]Value{}, parent: f.scope, module: f.scope.module, function: &Function{Name: "<comprehension>"}}}
	kind := map[string]string{"ListComp": "list", "SetComp": "set", "GeneratorExp": "list"}[e.Kind]
	s := &Sequence{Kind: kind, shared: !m.running}
	d := &Mapping{shared: !m.running}
	open := false
	var each func(generators []*pysource.Generator)
	each = func(generators []*pysource.Generator) {
		if len(generators) == 0 {
			if kind == "" {
				d.put(m.eval(inner, e.Elt), m.eval(inner, e.Value))
				return
			}
			s.Items = append(s.Items, m.eval(inner, e.Elt))
			return
		}
		g := generators[0]
		iterable := m.eval(inner, g.Iter)
		next, known := m.iterate(iterable)
		if !known {
			open = true
			m.assign(inner, g.Target, m.element(iterable, f.scope.module.File.Source(g.Iter)))
			each(generators[1:])
			return
		}
	items:
		for v, ok := next(); ok && m.step(); v, ok = next() {
			m.assign(inner, g.Target, v)
			for _, test := range g.Ifs {
				switch m.Truth(m.eval(inner, test)) {
				case False:
					continue items
				case Unknown:
					open = true
				}
			}
			each(generators[1:])
		}
	}
	each(e.Generators)
	if kind == "" {
		d.Open = open
		return d
	}
	s.Open = open
	return s
}

// iterate returns a function that returns the items of a value one by one; known is false if they
// are not known.
func (m *Machine) iterate(v Value) (next func() (Value, bool), known bool) {
	items := func(values []Value) (func() (Value, bool), bool) {
		i := -1
		return func() (Value, bool) {
			i++
			if i >= len(values) {
				return nil, false
			}
			return values[i], true
		}, true
	}
	switch v := m.resolve(v).(type) {
	case *Sequence:
		if !v.Open {
			return items(v.Items)
		}
	case *Mapping:
		if !v.Open {
			return items(v.Keys)
		}
	case *walker:
		return v.next, true
	case Const:
		if s, ok := v.V.(string); ok {
			var values []Value
			for _, r := range s {
				values = append(values, Const{string(r)})
			}
			return items(values)
		}
	}
	return nil, false
}

// element returns an item of a value whose items are not known.
func (m *Machine) element(v Value, source string) Value {
	switch v := v.(type) {
	case *Sequence:
		if len(v.Items) > 0 {
			return union(v.Items...)
		}
	case *Opaque:
		if path := PathOf(v); path == "sys.modules" {
			return &Sequence{Kind: "tuple", Items: []Value{&Opaque{Source: "name"}, External{AnyModule}}}
		}
	}
	return &Opaque{Source: "each of " + source, Parts: []Value{v}}
}

// AnyModule is the path of a module out of all that were imported.
const AnyModule = "<any already-imported module>"

// assign stores a value in a target.
func (m *Machine) assign(f *frame, target pysource.Expr, v Value) {
	switch t := target.(type) {
	case *pysource.Name:
		f.scope.set(m, t.ID, v)
	case *pysource.Attribute:
		m.store(&Store{Base: m.eval(f, t.Value), Attr: t.Attr, Value: v, Module: f.scope.module, Node: t})
	case *pysource.Subscript:
		m.store(&Store{Base: m.eval(f, t.Value), Key: m.eval(f, t.Slice), Value: v, Module: f.scope.module, Node: t})
	case *pysource.Starred:
		m.assign(f, t.Value, v)
	case *pysource.Tuple:
		m.unpack(f, t.Elts, v)
	case *pysource.List:
		m.unpack(f, t.Elts, v)
	}
}

func (m *Machine) unpack(f *frame, targets []pysource.Expr, v Value) {
	if s, ok := m.resolve(v).(*Sequence); ok && !s.Open && len(s.Items) == len(targets) {
		for i, t := range targets {
			m.assign(f, t, s.Items[i])
		}
		return
	}
	for i, t := range targets {
		m.assign(f, t, m.part(v, i, len(targets)))
	}
}

// part returns a part of a value that is unpacked and may be one of several.
func (m *Machine) part(v Value, i, n int) Value {
	var parts []Value
	for _, alternative := range Alternatives(v) {
		s, ok := m.resolve(alternative).(*Sequence)
		if !ok || s.Open || len(s.Items) != n {
			return &Opaque{Source: "part of a value", Parts: []Value{v}}
		}
		parts = append(parts, s.Items[i])
	}
	return union(parts...)
}

func (m *Machine) delete(f *frame, target pysource.Expr) {
	switch t := target.(type) {
	case *pysource.Attribute:
		m.store(&Store{Base: m.eval(f, t.Value), Attr: t.Attr, Module: f.scope.module, Node: t})
	case *pysource.Subscript:
		m.store(&Store{Base: m.eval(f, t.Value), Key: m.eval(f, t.Slice), Module: f.scope.module, Node: t})
	}
}
