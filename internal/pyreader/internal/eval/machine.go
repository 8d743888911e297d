// Package eval evaluates Python source files without Python, as far as their text determines the
// result.
//
// A Machine imports modules of a source tree in Python's order and runs their top level. Values
// from elsewhere (libraries, machines, command lines) are symbolic: each is an External under its
// dotted name, and the result of a computation with one is an Opaque with the source of the
// expression. A test may be true, false or unknown; if it is unknown, both branches are evaluated,
// and values that differ after them become a Union. So a result that is a constant is the same in
// every run, and any other names what it depends on. Hooks are called for every call and for every
// store to an attribute or an item.
//
// A Machine belongs to one goroutine. A file that cannot be read or parsed is in Machine.Faults;
// its module is then empty. Evaluation itself cannot fail: it ends after a number of steps.
package eval

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/meter"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// Module is a module of the source tree.
type Module struct {
	Name      string
	Path      string // of its file, below the root of the tree
	File      *syntax.File
	isPackage bool
	vars      map[string]Value
	scope     *scope
	done      bool
}

// Var returns a variable of a module.
func (mod *Module) Var(name string) (Value, bool) {
	v, ok := mod.vars[name]
	return v, ok
}

// Store is a change: an attribute or an item is set or deleted, or a method that changes its object
// is called.
type Store struct {
	Base        Value
	Attr        string // empty for items
	Key         Value  // nil for attributes
	Value       Value  // nil where it is deleted
	method      string // the method that changes the object: append, update, setdefault
	Module      *Module
	Node        *syntax.Node
	Alternative bool // only after an exception
}

// Machine evaluates the modules of a source tree.
type Machine struct {
	// OnCall is called before a call is evaluated. If its value is not nil, that is the result of the
	// call.
	OnCall func(*Call) Value
	// OnStore is called for every store to an attribute or an item of a value that is not local to a
	// function.
	OnStore func(*Store)
	Env     map[string]string // the environment; nil where it is not known
	Faults  []error
	Meter   *meter.Meter // of what the files cost; nil for none
	// Hopeful uses the result of a try block that returns, even if the block may also raise.
	Hopeful bool

	tree    fs.FS
	modules map[string]*Module
	order   []*Module
	overlay map[string]Value     // what was stored in a Run
	active  map[*syntax.Node]int // calls of a function inside of each other; the key nil counts those of lambdas
	evaluation
	exhausted bool // the steps are used up
}

// evaluation is the state of a Run or of an import.
type evaluation struct {
	running     bool // in Run, not importing
	steps       int
	depth       int
	alternative int
}

// Bounds of an evaluation: statements and expressions, nested calls, recursive calls of one
// function, bytes of a text and items of a list that are known, and bytes of a file.
const (
	maxSteps     = 400_000
	maxDepth     = 40
	maxRecursion = 3
	maxText      = 1 << 20
	maxItems     = 1 << 14
	maxSource    = 4 << 20
)

// New returns a machine for the modules below a folder.
func New(tree fs.FS) *Machine {
	return &Machine{tree: tree, modules: map[string]*Module{}, overlay: map[string]Value{}, active: map[*syntax.Node]int{}}
}

// Modules returns the imported modules, in the order in which their imports began.
func (m *Machine) Modules() []*Module { return slices.Clone(m.order) }

// find returns the file of a module of the tree, or its folder if it is a namespace package.
func (m *Machine) find(name string) (file string, ok bool) {
	base := strings.ReplaceAll(name, ".", "/")
	if !fs.ValidPath(base) || strings.Contains(name, "/") {
		return "", false
	}
	for _, candidate := range []string{base + "/__init__.py", base + ".py"} {
		if info, err := fs.Stat(m.tree, candidate); err == nil && info.Mode().IsRegular() {
			return candidate, true
		}
	}
	entries, err := fs.ReadDir(m.tree, base)
	return base, err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() || strings.HasSuffix(e.Name(), ".py") })
}

func (m *Machine) exists(name string) bool {
	_, ok := m.find(name)
	return ok
}

// Import imports a module as Python does, its parent packages first. For a module that is not in
// the tree it returns an External.
func (m *Machine) Import(name string) Value {
	var parent *Module
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			continue
		}
		mod := m.load(name[:i])
		if mod == nil {
			return External{name}
		}
		if parent != nil {
			last := name[strings.LastIndexByte(name[:i], '.')+1 : i]
			if _, bound := parent.vars[last]; !bound || mod.done {
				parent.vars[last] = mod
			}
		}
		parent = mod
	}
	return parent
}

// load returns a module of the tree, evaluated as far as possible; nil if there is none.
func (m *Machine) load(name string) *Module {
	if mod, ok := m.modules[name]; ok {
		return mod
	}
	file, ok := m.find(name)
	if !ok {
		m.modules[name] = nil
		return nil
	}
	mod := &Module{Name: name, Path: file, isPackage: !strings.HasSuffix(file, ".py") || strings.HasSuffix(file, "/__init__.py"), File: &syntax.File{Name: file}}
	mod.vars = map[string]Value{"__name__": name, "__package__": mod.pkg(), "__file__": file}
	mod.scope = &scope{vars: mod.vars, module: mod}
	m.modules[name] = mod
	m.order = append(m.order, mod)
	if mod.isPackage {
		mod.vars["__path__"] = &Sequence{Kind: "list", Items: []Value{strings.ReplaceAll(name, ".", "/")}, shared: true}
	}
	if strings.HasSuffix(file, ".py") {
		if parsed, err := m.Parse(file); err != nil {
			m.Faults = append(m.Faults, err)
		} else {
			mod.File = parsed
			outer := m.evaluation
			m.evaluation = evaluation{}
			m.block(&frame{scope: mod.scope}, parsed.Body)
			m.evaluation = outer
		}
	}
	mod.done = true
	return mod
}

// Parse reads a file of the tree.
func (m *Machine) Parse(file string) (*syntax.File, error) {
	f, err := m.tree.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSource+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSource {
		return nil, fmt.Errorf("%s: given more than %d bytes, want at most so many", file, maxSource)
	}
	if err := m.Spend(len(text)); err != nil {
		return nil, err
	}
	return syntax.Parse(file, text, m.may)
}

// pkg returns the package that relative imports of a module start from.
func (mod *Module) pkg() string {
	if mod.isPackage {
		return mod.Name
	}
	return parentOf(mod.Name)
}

// parentOf returns the package that a module is in.
func parentOf(module string) string { return module[:max(strings.LastIndexByte(module, '.'), 0)] }

// variable returns a variable of a module, including values that a Run stored.
func (m *Machine) variable(mod *Module, name string) (Value, bool) {
	if v, ok := m.overlay[mod.Name+"."+name]; ok && m.running {
		return v, true
	}
	if v, ok := mod.vars[name]; ok {
		return v, true
	}
	if builtins[name] {
		return External{"builtins." + name}, true
	}
	return nil, false
}

func (m *Machine) setVariable(mod *Module, name string, v Value) {
	if m.running {
		m.overlay[mod.Name+"."+name] = v
		return
	}
	mod.vars[name] = v
}

// Run calls a function and returns its value. Changes that the function makes are kept separate
// from the modules.
func (m *Machine) Run(f Value, args ...Value) Value {
	m.overlay, m.evaluation, m.exhausted = map[string]Value{}, evaluation{running: true}, false
	defer func() { m.running = false }()
	mod := &Module{vars: map[string]Value{}, File: &syntax.File{}}
	if fn, ok := f.(*Function); ok {
		mod = fn.Module
	}
	return m.call(&Call{Func: f, Args: args, Module: mod})
}

// Spend counts work on the files, and returns an error when there may be no more.
func (m *Machine) Spend(work int) error {
	if m.Meter == nil {
		return nil
	}
	return m.Meter.Spend(work)
}

// may returns an error when there may be no more work on the files.
func (m *Machine) may() error {
	if m.Meter == nil {
		return nil
	}
	return m.Meter.Check()
}

// step counts a step and reports whether more steps are allowed.
func (m *Machine) step() bool {
	m.steps++
	m.exhausted = m.exhausted || m.steps > maxSteps || m.Spend(1) != nil
	return !m.exhausted
}

type scopeKind uint8

const (
	moduleScope scopeKind = iota
	functionScope
	classScope
)

// scope has the variables of a module, a class body or a call of a function.
type scope struct {
	kind   scopeKind
	vars   map[string]Value
	parent *scope // the scope around a function; nil for modules
	module *Module
	global map[string]bool
	outer  map[string]bool // nonlocal names
}

// lookup finds a name in a scope, the scopes of functions around it and its module.
func (s *scope) lookup(m *Machine, name string) (Value, bool) {
	for at := s; at != nil && at.kind != moduleScope && !s.global[name]; at = at.parent {
		if v, ok := at.vars[name]; ok && (at == s || at.kind != classScope) {
			return v, true
		}
	}
	return m.variable(s.module, name)
}

// captured finds a name in scopes of functions only.
func (s *scope) captured(name string) (Value, bool) {
	for at := s; at != nil && at.kind != moduleScope; at = at.parent {
		if v, ok := at.vars[name]; ok && at.kind != classScope {
			return v, true
		}
	}
	return nil, false
}

// dotted returns the path of an attribute of an external value; empty for others.
func (s *scope) dotted(e *syntax.Node) string {
	switch e.Kind {
	case syntax.Name:
		v, _ := s.captured(e.Name)
		return PathOf(v)
	case syntax.Attribute:
		if base := s.dotted(e.Value); base != "" {
			return base + "." + e.Name
		}
	}
	return ""
}

// set binds a name.
func (s *scope) set(m *Machine, name string, v Value) {
	if s.global[name] || s.kind == moduleScope {
		m.setVariable(s.module, name, v)
		return
	}
	for at := s.parent; s.outer[name] && at != nil && at.kind != moduleScope; at = at.parent {
		if _, ok := at.vars[name]; ok {
			at.vars[name] = v
			return
		}
	}
	s.vars[name] = v
}

func (s *scope) snapshot() map[string]Value { return maps.Clone(s.vars) }

// restore sets the variables to those of an earlier state.
func (s *scope) restore(vars map[string]Value) {
	s.vars = vars
	if s.kind == moduleScope {
		s.module.vars = vars
	}
}

// merge makes every variable the union of its values on two branches.
func (s *scope) merge(other map[string]Value) {
	for name, v := range other {
		if mine, ok := s.vars[name]; ok {
			v = union(mine, v)
		}
		s.vars[name] = v
	}
}
