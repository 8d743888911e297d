package eval

import (
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// frame is a call of a function, or the top level of a module or class.
type frame struct {
	*scope
	returns []Value
}

// flow says how a block ends.
type flow uint8

const (
	goesOn flow = iota
	returns
	raises
	breaks
	continues
)

func (m *Machine) block(f *frame, body []*syntax.Node) flow {
	for _, s := range body {
		if !m.step() {
			return returns
		}
		if end := m.statement(f, s); end != goesOn {
			return end
		}
	}
	return goesOn
}

func (m *Machine) statement(f *frame, s *syntax.Node) flow {
	switch s.Kind {
	case syntax.ExprStmt:
		m.eval(f, s.Value)
	case syntax.Assign:
		v := m.eval(f, s.Value)
		for _, target := range s.Targets {
			m.assign(f, target, v)
		}
	case syntax.AnnAssign:
		if s.Value != nil {
			m.assign(f, s.Target, m.eval(f, s.Value))
		}
	case syntax.AugAssign:
		m.assign(f, s.Target, m.binary(f, s, m.eval(f, s.Target), m.eval(f, s.Value)))
	case syntax.Delete:
		for _, target := range s.Targets {
			if target.Kind == syntax.Attribute || target.Kind == syntax.Subscript {
				m.storeIn(f, target, nil)
			}
		}
	case syntax.Return:
		v := Value(None)
		if s.Value != nil {
			v = m.eval(f, s.Value)
		}
		f.returns = append(f.returns, v)
		return returns
	case syntax.Raise:
		return raises
	case syntax.Break:
		return breaks
	case syntax.Continue:
		return continues
	case syntax.If:
		return m.branch(f, m.Truth(m.eval(f, s.Value)), s.Body, s.Else)
	case syntax.For:
		return m.loop(f, s)
	case syntax.While:
		return m.while(f, s)
	case syntax.With:
		for _, item := range s.List {
			v := m.eval(f, item.Value)
			if item.Target != nil {
				m.assign(f, item.Target, &Opaque{Source: f.module.File.Source(item.Value), Parts: []Value{v}})
			}
		}
		return m.block(f, s.Body)
	case syntax.Try:
		return m.try(f, s)
	case syntax.Match:
		m.eval(f, s.Value)
		end := goesOn
		for _, c := range s.List {
			end = m.branch(f, Unknown, c.Body, nil)
		}
		if end == returns {
			end = goesOn
		}
		return end
	case syntax.Import:
		m.importNames(f, s)
	case syntax.ImportFrom:
		m.importFrom(f, s)
	case syntax.FunctionDef:
		m.decorate(f, s, m.function(f, s.Name, s))
	case syntax.ClassDef:
		m.decorate(f, s, m.class(f, s))
	case syntax.Global:
		f.global = add(f.global, s.Words)
	case syntax.Nonlocal:
		f.outer = add(f.outer, s.Words)
	}
	return goesOn
}

func add(set map[string]bool, names []string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// branch evaluates one branch, or both and joins their results.
func (m *Machine) branch(f *frame, test Truth, yes, no []*syntax.Node) flow {
	switch test {
	case True:
		return m.block(f, yes)
	case False:
		return m.block(f, no)
	}
	before := f.snapshot()
	first := m.block(f, yes)
	after := f.vars
	f.restore(before)
	second := m.block(f, no)
	switch {
	case first == second:
		f.merge(after)
		return first
	case first == goesOn:
		f.restore(after)
	case second != goesOn:
		f.merge(after)
	}
	return goesOn
}

func (m *Machine) loop(f *frame, s *syntax.Node) flow {
	iterable := m.eval(f, s.Value)
	items, known := m.iterate(iterable)
	if !known {
		m.assign(f, s.Target, m.element(iterable, f.module.File.Source(s.Value)))
		m.maybe(f, s.Body)
		m.block(f, s.Else)
		return goesOn
	}
	for v := range items {
		m.assign(f, s.Target, v)
		switch end := m.block(f, s.Body); {
		case end == breaks:
			return goesOn
		case end == returns || end == raises:
			return end
		case m.exhausted:
			return returns
		}
	}
	return m.block(f, s.Else)
}

// maybe evaluates a block that may run or not.
func (m *Machine) maybe(f *frame, body []*syntax.Node) {
	before := f.snapshot()
	m.block(f, body)
	f.merge(before)
}

func (m *Machine) while(f *frame, s *syntax.Node) flow {
	for m.step() {
		switch m.Truth(m.eval(f, s.Value)) {
		case False:
			return m.block(f, s.Else)
		case Unknown:
			m.maybe(f, s.Body)
			return goesOn
		}
		switch end := m.block(f, s.Body); end {
		case breaks:
			return goesOn
		case returns, raises:
			return end
		}
	}
	return returns
}

// try runs the body as if it raised nothing. Changes made by handlers are alternatives, and their
// return values count if the body may raise. A class or module of the tree that a handler replaces
// by one of a library may be either.
func (m *Machine) try(f *frame, s *syntax.Node) flow {
	before := f.snapshot()
	returned := len(f.returns)
	end := m.block(f, s.Body)
	after, results := f.vars, f.returns[returned:len(f.returns):len(f.returns)]
	certain := m.certain(s.Body, results)
	if end != raises {
		m.alternative++
	}
	for _, h := range s.Handlers {
		f.restore(maps.Clone(before))
		if h.As != "" {
			f.set(m, h.As, &Opaque{Source: h.As})
		}
		count := len(f.returns)
		handled := m.block(f, h.Body)
		if end == goesOn && handled == goesOn {
			m.joinUpstream(after, f.vars)
		}
		if certain || m.Hopeful && end == returns {
			f.returns = f.returns[:count]
		}
		if end == raises {
			end, after = handled, f.vars
		} else if handled == goesOn && end == returns && !certain {
			end, after = goesOn, f.vars
		}
	}
	if end != raises {
		m.alternative = max(m.alternative-1, 0)
	}
	f.restore(after)
	if end == goesOn {
		end = m.block(f, s.Else)
	}
	if last := m.block(f, s.Finally); last != goesOn {
		return last
	}
	return end
}

// joinUpstream adds to variables for classes and modules of the tree those of libraries that have
// the same name in a handler.
func (m *Machine) joinUpstream(vars, handler map[string]Value) {
	for name, v := range handler {
		upstream, ok := m.Resolve(v).(External)
		if own := vars[name]; ok && own != nil {
			switch own = m.Resolve(own); own.(type) {
			case *Class, *Module:
				vars[name] = union(own, upstream)
			}
		}
	}
}

// certain reports whether a body that returned these values certainly raises nothing: it imports
// nothing, and its values are known.
func (m *Machine) certain(body []*syntax.Node, results []Value) bool {
	imports := false
	for _, s := range body {
		syntax.Walk(s, func(n *syntax.Node) bool {
			imports = imports || n.Kind == syntax.Import || n.Kind == syntax.ImportFrom || n.Kind == syntax.Raise
			return !imports
		})
	}
	return !imports && !slices.ContainsFunc(results, func(v Value) bool { return m.Truth(v) == Unknown })
}

func (m *Machine) importNames(f *frame, s *syntax.Node) {
	for _, alias := range s.List {
		v := m.importLater(alias.Name)
		if root, _, dotted := strings.Cut(alias.Name, "."); alias.As == "" && dotted {
			f.set(m, root, m.importLater(root))
			continue
		}
		f.set(m, alias.Bound(), v)
	}
}

// importLater imports a module. While a function runs, modules of the tree are imported only when
// they are used.
func (m *Machine) importLater(name string) Value {
	if _, loaded := m.modules[name]; m.running && !loaded && m.exists(name) {
		return lazyName{module: name}
	}
	return m.Import(name)
}

func (m *Machine) importFrom(f *frame, s *syntax.Node) {
	name := s.Name
	if s.Level > 0 {
		base := f.module.pkg()
		for range s.Level - 1 {
			base = parentOf(base)
		}
		name = strings.Trim(base+"."+name, ".")
	}
	for _, alias := range s.List {
		switch {
		case alias.Name == "*":
			m.importStar(f, name)
		case m.running && m.exists(name):
			f.set(m, alias.Bound(), lazyName{name, alias.Name})
		default:
			f.set(m, alias.Bound(), m.member(name, alias.Name))
		}
	}
}

// member returns a name of a module: a variable, or a module in the package.
func (m *Machine) member(module, name string) Value {
	mod, ok := m.Import(module).(*Module)
	if !ok {
		return External{module + "." + name}
	}
	if v, ok := m.variable(mod, name); ok && v != (External{"builtins." + name}) {
		return v
	}
	if m.exists(module + "." + name) {
		return m.Import(module + "." + name)
	}
	return &Opaque{Source: module + "." + name}
}

func (m *Machine) importStar(f *frame, name string) {
	mod, ok := m.Import(name).(*Module)
	if !ok {
		return
	}
	if all, ok := mod.vars["__all__"].(*Sequence); ok {
		for _, item := range all.Items {
			if s, ok := item.(string); ok {
				f.set(m, s, m.member(name, s))
			}
		}
		return
	}
	for public, v := range mod.vars {
		if !strings.HasPrefix(public, "_") {
			f.set(m, public, v)
		}
	}
}

// Resolve returns the value of a name that a function has imported and not used yet, and other
// values as they are.
func (m *Machine) Resolve(v Value) Value {
	l, ok := v.(lazyName)
	switch {
	case !ok:
		return v
	case l.name == "":
		return m.Import(l.module)
	}
	return m.Resolve(m.member(l.module, l.name))
}
