package pyeval

import (
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// frame is a call of a function, or the top level of a module or class.
type frame struct {
	scope   *Scope
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

func (m *Machine) block(f *frame, body []pysource.Stmt) flow {
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

func (m *Machine) statement(f *frame, s pysource.Stmt) flow {
	switch s := s.(type) {
	case *pysource.ExprStmt:
		m.eval(f, s.Value)
	case *pysource.Assign:
		v := m.eval(f, s.Value)
		for _, target := range s.Targets {
			m.assign(f, target, v)
		}
	case *pysource.AnnAssign:
		if s.Value != nil {
			m.assign(f, s.Target, m.eval(f, s.Value))
		}
	case *pysource.AugAssign:
		v := m.binary(f, s, s.Op, m.eval(f, s.Target), m.eval(f, s.Value))
		m.assign(f, s.Target, v)
	case *pysource.Delete:
		for _, target := range s.Targets {
			m.delete(f, target)
		}
	case *pysource.Return:
		v := Value(Const{nil})
		if s.Value != nil {
			v = m.eval(f, s.Value)
		}
		f.returns = append(f.returns, v)
		return returns
	case *pysource.Raise:
		return raises
	case *pysource.Break:
		return breaks
	case *pysource.Continue:
		return continues
	case *pysource.If:
		return m.branch(f, m.Truth(m.eval(f, s.Test)), s.Body, s.Orelse)
	case *pysource.For:
		return m.loop(f, s)
	case *pysource.While:
		return m.while(f, s)
	case *pysource.With:
		for _, item := range s.Items {
			v := m.eval(f, item.ContextExpr)
			if item.OptionalVars != nil {
				m.assign(f, item.OptionalVars, &Opaque{Source: f.scope.module.File.Source(item.ContextExpr), Parts: []Value{v}})
			}
		}
		return m.block(f, s.Body)
	case *pysource.Try:
		return m.try(f, s)
	case *pysource.Match:
		m.eval(f, s.Subject)
		end := goesOn
		for _, c := range s.Cases {
			end = m.branch(f, Unknown, c.Body, nil)
		}
		if end == returns {
			end = goesOn
		}
		return end
	case *pysource.Import:
		m.importNames(f, s)
	case *pysource.ImportFrom:
		m.importFrom(f, s)
	case *pysource.FunctionDef:
		m.define(f, s)
	case *pysource.ClassDef:
		m.defineClass(f, s)
	case *pysource.Global:
		f.scope.global = add(f.scope.global, s.Names)
	case *pysource.Nonlocal:
		f.scope.outer = add(f.scope.outer, s.Names)
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
func (m *Machine) branch(f *frame, test Truth, yes, no []pysource.Stmt) flow {
	switch test {
	case True:
		return m.block(f, yes)
	case False:
		return m.block(f, no)
	}
	before := f.scope.snapshot()
	first := m.block(f, yes)
	after := f.scope.vars
	m.restore(f, before)
	second := m.block(f, no)
	switch {
	case first == second:
		f.scope.merge(after)
		return first
	case first == goesOn:
		m.restore(f, after)
	case second != goesOn:
		f.scope.merge(after)
	}
	return goesOn
}

// restore sets the variables of a scope to an earlier state.
func (m *Machine) restore(f *frame, vars map[string]Value) {
	f.scope.vars = vars
	if f.scope.isModule() {
		f.scope.module.vars = vars
	}
}

func (m *Machine) loop(f *frame, s *pysource.For) flow {
	iterable := m.eval(f, s.Iter)
	next, known := m.iterate(iterable)
	if !known {
		m.assign(f, s.Target, m.element(iterable, f.scope.module.File.Source(s.Iter)))
		before := f.scope.snapshot()
		m.block(f, s.Body)
		f.scope.merge(before)
		m.block(f, s.Orelse)
		return goesOn
	}
	for v, ok := next(); ok; v, ok = next() {
		m.assign(f, s.Target, v)
		switch end := m.block(f, s.Body); end {
		case breaks:
			return goesOn
		case returns, raises:
			return end
		}
		if m.exhausted {
			return returns
		}
	}
	return m.block(f, s.Orelse)
}

func (m *Machine) while(f *frame, s *pysource.While) flow {
	for m.step() {
		switch m.Truth(m.eval(f, s.Test)) {
		case False:
			return m.block(f, s.Orelse)
		case Unknown:
			before := f.scope.snapshot()
			m.block(f, s.Body)
			f.scope.merge(before)
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
func (m *Machine) try(f *frame, s *pysource.Try) flow {
	before := f.scope.snapshot()
	returned := len(f.returns)
	end := m.block(f, s.Body)
	after, results := f.scope.vars, f.returns[returned:len(f.returns):len(f.returns)]
	certain := m.certain(s.Body, results)
	if end != raises {
		m.alternative++
	}
	for _, h := range s.Handlers {
		vars := map[string]Value{}
		for name, v := range before {
			vars[name] = v
		}
		m.restore(f, vars)
		if h.Name != "" {
			f.scope.set(m, h.Name, &Opaque{Source: h.Name})
		}
		count := len(f.returns)
		handled := m.block(f, h.Body)
		if end == goesOn && handled == goesOn {
			m.joinUpstream(after, f.scope.vars)
		}
		if certain || m.Hopeful && end == returns {
			f.returns = f.returns[:count]
		}
		if end == raises {
			end, after = handled, f.scope.vars
		} else if handled == goesOn && end == returns && !certain {
			end, after = goesOn, f.scope.vars
		}
	}
	if end != raises {
		m.alternative = max(m.alternative-1, 0)
	}
	m.restore(f, after)
	if end == goesOn {
		end = m.block(f, s.Orelse)
	}
	if last := m.block(f, s.Finalbody); last != goesOn {
		return last
	}
	return end
}

// joinUpstream adds to variables for classes and modules of the tree those of libraries that have
// the same name in a handler.
func (m *Machine) joinUpstream(vars, handler map[string]Value) {
	for name, v := range handler {
		upstream, ok := m.resolve(v).(External)
		if own := vars[name]; ok && own != nil {
			switch own = m.resolve(own); own.(type) {
			case *Class, *Module:
				vars[name] = union(own, upstream)
			}
		}
	}
}

// certain reports whether a body that returned these values certainly raises nothing: it imports
// nothing, and its values are known.
func (m *Machine) certain(body []pysource.Stmt, results []Value) bool {
	imports := false
	for _, s := range body {
		pysource.Walk(s, func(n pysource.Node) bool {
			switch n.(type) {
			case *pysource.Import, *pysource.ImportFrom, *pysource.Raise:
				imports = true
			}
			return !imports
		})
	}
	if imports || len(results) == 0 {
		return !imports && len(results) == 0
	}
	for _, v := range results {
		if m.Truth(v) == Unknown {
			return false
		}
	}
	return true
}

func (m *Machine) importNames(f *frame, s *pysource.Import) {
	for _, alias := range s.Names {
		v := m.importLater(alias.Name)
		switch root, _, dotted := strings.Cut(alias.Name, "."); {
		case alias.AsName != "":
			f.scope.set(m, alias.AsName, v)
		case dotted:
			f.scope.set(m, root, m.importLater(root))
		default:
			f.scope.set(m, root, v)
		}
	}
}

// importLater imports a module. While a function runs, modules of the tree are imported only when
// they are used.
func (m *Machine) importLater(name string) Value {
	if _, _, ok := m.Exists(name); ok && m.running {
		if _, loaded := m.modules[name]; !loaded {
			return lazyName{module: name}
		}
	}
	return m.Import(name)
}

func (m *Machine) importFrom(f *frame, s *pysource.ImportFrom) {
	name := s.Module
	if s.Level > 0 {
		base := f.scope.module.pkg()
		for range s.Level - 1 {
			base = base[:max(strings.LastIndexByte(base, '.'), 0)]
		}
		name = strings.Trim(base+"."+name, ".")
	}
	for _, alias := range s.Names {
		if alias.Name == "*" {
			m.importStar(f, name)
			continue
		}
		as := alias.AsName
		if as == "" {
			as = alias.Name
		}
		if _, _, ok := m.Exists(name); ok && m.running {
			f.scope.set(m, as, lazyName{name, alias.Name})
			continue
		}
		f.scope.set(m, as, m.member(name, alias.Name))
	}
}

// member returns a name of a module: a variable, or a module in the package.
func (m *Machine) member(module, name string) Value {
	mod, ok := m.Import(module).(*Module)
	if !ok {
		return External{module + "." + name}
	}
	if v, ok := m.variable(mod, name); ok {
		if e, builtin := v.(External); !builtin || e.Path != "builtins."+name {
			return v
		}
	}
	if _, _, ok := m.Exists(module + "." + name); ok {
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
			if s, ok := Str(item); ok {
				f.scope.set(m, s, m.member(name, s))
			}
		}
		return
	}
	for public, v := range mod.vars {
		if !strings.HasPrefix(public, "_") {
			f.scope.set(m, public, v)
		}
	}
}

// Resolve returns the value of a name that a function has imported and not used yet.
func (m *Machine) Resolve(v Value) Value { return m.resolve(v) }

// resolve imports a module that a function has imported and not used yet.
func (m *Machine) resolve(v Value) Value {
	l, ok := v.(lazyName)
	switch {
	case !ok:
		return v
	case l.name == "":
		return m.Import(l.module)
	}
	return m.resolve(m.member(l.module, l.name))
}
