package pyeval

import "maps"

// Scope holds the variables of a module, a class body or a call of a function.
type Scope struct {
	vars     map[string]Value
	parent   *Scope // the scope around a function; nil for modules
	module   *Module
	function *Function // nil for modules and classes
	global   map[string]bool
	outer    map[string]bool // nonlocal names
	class    bool
}

// lookup finds a name in a scope, the scopes of functions around it and its module.
func (s *Scope) lookup(m *Machine, name string) (Value, bool) {
	if s.global[name] {
		return m.variable(s.module, name)
	}
	for at := s; at != nil; at = at.parent {
		if at.class && at != s {
			continue
		}
		if at.isModule() {
			return m.variable(at.module, name)
		}
		if v, ok := at.vars[name]; ok {
			return v, true
		}
	}
	return m.variable(s.module, name)
}

func (s *Scope) isModule() bool { return s.function == nil && !s.class }

// captured finds a name in scopes of functions only.
func (s *Scope) captured(name string) (Value, bool) {
	for at := s; at != nil && !at.isModule(); at = at.parent {
		if v, ok := at.vars[name]; ok && !at.class {
			return v, true
		}
	}
	return nil, false
}

// set binds a name.
func (s *Scope) set(m *Machine, name string, v Value) {
	if s.global[name] || s.isModule() {
		m.setVariable(s.module, name, v)
		return
	}
	if s.outer[name] {
		for at := s.parent; at != nil && !at.isModule(); at = at.parent {
			if _, ok := at.vars[name]; ok {
				at.vars[name] = v
				return
			}
		}
	}
	s.vars[name] = v
}

func (s *Scope) snapshot() map[string]Value { return maps.Clone(s.vars) }

// merge makes every variable the union of its values on two branches.
func (s *Scope) merge(other map[string]Value) {
	for name, v := range other {
		if mine, ok := s.vars[name]; ok {
			s.vars[name] = union(mine, v)
		} else {
			s.vars[name] = v
		}
	}
}
