package eval

import (
	"iter"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// eval returns the value of an expression.
func (m *Machine) eval(f *frame, e *syntax.Node) Value {
	if !m.step() {
		return m.opaque(f, e)
	}
	switch e.Kind {
	case syntax.Constant:
		if e.Const == nil {
			return None
		}
		return e.Const
	case syntax.Name:
		if v, ok := f.lookup(m, e.Name); ok {
			return v
		}
	case syntax.Attribute:
		return m.attribute(m.eval(f, e.Value), e.Name, f, e)
	case syntax.Subscript:
		return m.item(f, e, m.eval(f, e.Value), m.eval(f, e.Right))
	case syntax.Call:
		return m.evalCall(f, e)
	case syntax.BoolOp:
		return m.boolOp(f, e)
	case syntax.UnaryOp:
		return m.unary(f, e)
	case syntax.BinOp:
		return m.binary(f, e, m.eval(f, e.Value), m.eval(f, e.Right))
	case syntax.Compare:
		return m.compare(f, e)
	case syntax.IfExp:
		switch m.Truth(m.eval(f, e.Value)) {
		case True:
			return m.eval(f, e.List[0])
		case False:
			return m.eval(f, e.List[1])
		}
		return union(m.eval(f, e.List[0]), m.eval(f, e.List[1]))
	case syntax.Lambda:
		return m.function(f, "<lambda>", e)
	case syntax.List:
		return m.sequence(f, "list", e.List)
	case syntax.Tuple:
		return m.sequence(f, "tuple", e.List)
	case syntax.Set:
		return m.sequence(f, "set", e.List)
	case syntax.Dict:
		return m.dict(f, e)
	case syntax.JoinedStr:
		return m.joined(f, e)
	case syntax.FormattedValue:
		v := m.eval(f, e.Value)
		switch {
		case !isConst(v) || e.Right != nil:
			return m.opaque(f, e, v)
		case e.Level == 'r':
			return Repr(v)
		}
		return text(v)
	case syntax.ListComp, syntax.SetComp, syntax.GeneratorExp, syntax.DictComp:
		return m.comprehension(f, e)
	case syntax.NamedExpr:
		v := m.eval(f, e.Value)
		m.assign(f, e.Target, v)
		return v
	case syntax.Starred, syntax.Await:
		return m.eval(f, e.Value)
	}
	return m.opaque(f, e)
}

// opaque returns the unknown value of an expression with these parts.
func (m *Machine) opaque(f *frame, n *syntax.Node, parts ...Value) Value {
	return &Opaque{Source: f.module.File.Words(n), Parts: parts}
}

// list returns a list, tuple or set.
func (m *Machine) list(kind string, items ...Value) *Sequence {
	return &Sequence{Kind: kind, Items: items, shared: !m.running}
}

func (m *Machine) sequence(f *frame, kind string, elements []*syntax.Node) Value {
	s := m.list(kind)
	for _, e := range elements {
		if e.Kind != syntax.Starred {
			s.Items = append(s.Items, m.eval(f, e))
			continue
		}
		v := m.eval(f, e.Value)
		if items, known := m.iterate(v); known {
			s.Items = slices.AppendSeq(s.Items, items)
		} else {
			s.Open, s.Items = true, append(s.Items, &Opaque{Source: "*", Parts: []Value{v}})
		}
	}
	return s
}

func (m *Machine) dict(f *frame, e *syntax.Node) Value {
	d := &Mapping{shared: !m.running}
	for i, value := range e.List {
		v := m.eval(f, value)
		other, ok := v.(*Mapping)
		switch {
		case e.Keys[i] != nil:
			d.put(m.eval(f, e.Keys[i]), v)
		case ok:
			d.putAll(other)
			d.Open = d.Open || other.Open
		default:
			d.Open = true
		}
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

func (d *Mapping) putAll(other *Mapping) {
	for i, key := range other.Keys {
		d.put(key, other.Values[i])
	}
}

func (m *Machine) joined(f *frame, e *syntax.Node) Value {
	var b strings.Builder
	var parts []Value
	known := true
	for _, part := range e.List {
		v := m.eval(f, part)
		s, ok := v.(string)
		parts, known = append(parts, v), known && ok
		b.WriteString(s)
	}
	if !known || b.Len() > maxText {
		return m.opaque(f, e, parts...)
	}
	return b.String()
}

func (m *Machine) comprehension(f *frame, e *syntax.Node) Value {
	inner := &frame{scope: &scope{kind: functionScope, vars: map[string]Value{}, parent: f.scope, module: f.module}}
	s, d := m.list("list"), &Mapping{shared: !m.running}
	if e.Kind == syntax.SetComp {
		s.Kind = "set"
	}
	open := false
	var each func(generators []*syntax.Node)
	each = func(generators []*syntax.Node) {
		if len(generators) == 0 {
			if e.Kind == syntax.DictComp {
				d.put(m.eval(inner, e.Value), m.eval(inner, e.Right))
			} else {
				s.Items = append(s.Items, m.eval(inner, e.Value))
			}
			return
		}
		g := generators[0]
		iterable := m.eval(inner, g.Value)
		items, known := m.iterate(iterable)
		if !known {
			open = true
			m.assign(inner, g.Target, m.element(iterable, f.module.File.Source(g.Value)))
			each(generators[1:])
			return
		}
	items:
		for v := range items {
			if !m.step() {
				break
			}
			m.assign(inner, g.Target, v)
			for _, test := range g.List {
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
	each(e.List)
	s.Open, d.Open = open, open
	if e.Kind == syntax.DictComp {
		return d
	}
	return s
}

// iterate returns the items of a value; known is false if they are not known.
func (m *Machine) iterate(v Value) (items iter.Seq[Value], known bool) {
	switch v := m.Resolve(v).(type) {
	case *Sequence:
		return slices.Values(v.Items), !v.Open
	case *Mapping:
		return slices.Values(v.Keys), !v.Open
	case *walker:
		return v.each, true
	case string:
		return func(yield func(Value) bool) {
			for _, r := range v {
				if !yield(string(r)) {
					return
				}
			}
		}, true
	}
	return nil, false
}

// element returns an item of a value whose items are not known.
func (m *Machine) element(v Value, source string) Value {
	if s, ok := v.(*Sequence); ok && len(s.Items) > 0 {
		return union(s.Items...)
	}
	if o, ok := v.(*Opaque); ok && PathOf(o) == "sys.modules" {
		return &Sequence{Kind: "tuple", Items: []Value{&Opaque{Source: "name"}, External{anyModule}}}
	}
	return &Opaque{Source: "each of " + source, Parts: []Value{v}}
}

// anyModule is the path of a module out of all that were imported.
const anyModule = "<any already-imported module>"

// assign stores a value in a target.
func (m *Machine) assign(f *frame, target *syntax.Node, v Value) {
	switch target.Kind {
	case syntax.Name:
		f.set(m, target.Name, v)
	case syntax.Attribute, syntax.Subscript:
		m.storeIn(f, target, v)
	case syntax.Starred:
		m.assign(f, target.Value, v)
	case syntax.Tuple, syntax.List:
		for i, t := range target.List {
			m.assign(f, t, m.part(v, i, len(target.List)))
		}
	}
}

// storeIn changes an attribute or an item, or deletes it where v is nil.
func (m *Machine) storeIn(f *frame, target *syntax.Node, v Value) {
	s := &Store{Base: m.eval(f, target.Value), Value: v, Module: f.module, Node: target}
	if target.Kind == syntax.Attribute {
		s.Attr = target.Name
	} else {
		s.Key = m.eval(f, target.Right)
	}
	m.store(s)
}

// part returns a part of a value that is unpacked and may be one of several.
func (m *Machine) part(v Value, i, n int) Value {
	fits := func(v Value) (*Sequence, bool) {
		s, ok := m.Resolve(v).(*Sequence)
		return s, ok && !s.Open && len(s.Items) == n
	}
	if s, ok := fits(v); ok {
		return s.Items[i]
	}
	var parts []Value
	for _, alternative := range alternatives(v) {
		s, ok := fits(alternative)
		if !ok {
			return &Opaque{Source: "part of a value", Parts: []Value{v}}
		}
		parts = append(parts, s.Items[i])
	}
	return union(parts...)
}

// boolOp returns the value of and and or. The truth is known if one operand decides it whatever the
// unknown ones are.
func (m *Machine) boolOp(f *frame, e *syntax.Node) Value {
	decides := truthOf(e.Name == "or")
	var open []Value
	for i, operand := range e.List {
		v := m.eval(f, operand)
		last := i == len(e.List)-1
		switch t := m.Truth(v); {
		case t == decides && len(open) == 0, t != Unknown && last && len(open) == 0:
			return v
		case t == decides:
			return &Union{of: append(open, v), truth: decides}
		case t == Unknown:
			open = append(open, v)
		case last:
			return &Union{of: append(open, v)}
		}
	}
	if len(open) == 1 {
		return open[0]
	}
	return &Union{of: open}
}
