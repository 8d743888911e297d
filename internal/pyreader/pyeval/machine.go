package pyeval

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// Module is a module of the source tree.
type Module struct {
	Name    string
	Path    string // of its file, below the root of the tree
	Package bool
	File    *pysource.File
	vars    map[string]Value
	scope   *Scope
	done    bool
}

// Var returns a variable of a module.
func (mod *Module) Var(name string) (Value, bool) {
	v, ok := mod.vars[name]
	return v, ok
}

// Hooks are called while a program is evaluated.
type Hooks struct {
	// Call is called before a call is evaluated. If it returns true, its value is the result of the
	// call.
	Call func(*Call) (Value, bool)
	// Store is called for every store to an attribute or an item of a value that is not local to a
	// function.
	Store func(*Store)
}

// Store is a change: an attribute or an item is set or deleted, or a method that changes its object
// is called.
type Store struct {
	Base        Value
	Attr        string // empty for items
	Key         Value  // nil for attributes
	Value       Value  // nil where it is deleted
	Method      string // the method that changes the object: append, update, setdefault
	Old         Value  // the earlier value, nil if it is not known
	Module      *Module
	Node        pysource.Node
	Alternative bool // only after an exception
}

// Machine evaluates the modules of a source tree.
type Machine struct {
	Hooks  Hooks
	Env    map[string]string // the environment; nil where it is not known
	Faults []error
	// Hopeful uses the result of a try block that returns, even if the block may also raise.
	Hopeful bool

	tree        fs.FS
	modules     map[string]*Module
	order       []*Module
	overlay     map[string]Value // what was stored in a Run
	running     bool             // in Run, not importing
	steps       int
	depth       int
	active      map[*pysource.FunctionDef]int // calls of a function inside of each other
	alternative int
	exhausted   bool
}

// Bounds of an evaluation: statements and expressions, nested calls, and recursive calls of one
// function.
const (
	maxSteps     = 400_000
	maxDepth     = 40
	maxRecursion = 3
)

// maxText and maxItems bound the length of texts and lists that are known.
const (
	maxText  = 1 << 20
	maxItems = 1 << 14
)

// maxSource bounds the size of a file in bytes.
const maxSource = 4 << 20

// New returns a machine for the modules below a folder.
func New(tree fs.FS) *Machine {
	return &Machine{tree: tree, modules: map[string]*Module{}, overlay: map[string]Value{}, active: map[*pysource.FunctionDef]int{}}
}

// Modules returns the imported modules, in the order in which their imports began.
func (m *Machine) Modules() []*Module { return slices.Clone(m.order) }

// Exists reports whether the tree has a module, and returns its file.
func (m *Machine) Exists(name string) (file string, isPackage, ok bool) {
	base := strings.ReplaceAll(name, ".", "/")
	if !fs.ValidPath(base) || strings.Contains(name, "/") {
		return "", false, false
	}
	for _, candidate := range []string{base + "/__init__.py", base + ".py"} {
		if info, err := fs.Stat(m.tree, candidate); err == nil && info.Mode().IsRegular() {
			return candidate, strings.HasSuffix(candidate, "/__init__.py"), true
		}
	}
	if info, err := fs.Stat(m.tree, base); err == nil && info.IsDir() {
		if entries, err := fs.ReadDir(m.tree, base); err == nil && slices.ContainsFunc(entries, pythonEntry) {
			return base, true, true
		}
	}
	return "", false, false
}

func pythonEntry(e fs.DirEntry) bool { return e.IsDir() || strings.HasSuffix(e.Name(), ".py") }

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
	file, isPackage, ok := m.Exists(name)
	if !ok {
		m.modules[name] = nil
		return nil
	}
	mod := &Module{Name: name, Path: file, Package: isPackage, vars: map[string]Value{}}
	mod.scope = &Scope{vars: mod.vars, module: mod}
	m.modules[name] = mod
	m.order = append(m.order, mod)
	mod.vars["__name__"] = Const{name}
	if isPackage {
		mod.vars["__path__"] = &Sequence{Kind: "list", Items: []Value{Const{strings.ReplaceAll(name, ".", "/")}}, shared: true}
	}
	mod.vars["__package__"] = Const{mod.pkg()}
	mod.vars["__file__"] = Const{file}
	if !strings.HasSuffix(file, ".py") { // a namespace package
		mod.File, mod.done = &pysource.File{Name: file}, true
		return mod
	}
	parsed, err := m.Parse(file)
	if err != nil {
		m.Faults = append(m.Faults, err)
		mod.File, mod.done = &pysource.File{Name: file}, true
		return mod
	}
	mod.File = parsed
	running, steps, depth, alternative := m.running, m.steps, m.depth, m.alternative
	m.running, m.steps, m.depth, m.alternative = false, 0, 0, 0
	m.block(&frame{scope: mod.scope}, parsed.Body)
	m.running, m.steps, m.depth, m.alternative = running, steps, depth, alternative
	mod.done = true
	return mod
}

// Parse reads a file of the tree.
func (m *Machine) Parse(file string) (*pysource.File, error) {
	info, err := fs.Stat(m.tree, file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSource {
		return nil, fmt.Errorf("%s: it has %d bytes, expected at most %d", file, info.Size(), maxSource)
	}
	text, err := fs.ReadFile(m.tree, file)
	if err != nil {
		return nil, err
	}
	return pysource.Parse(file, text)
}

// pkg returns the package that relative imports of a module start from.
func (mod *Module) pkg() string {
	if mod.Package {
		return mod.Name
	}
	return mod.Name[:max(strings.LastIndexByte(mod.Name, '.'), 0)]
}

// variable returns a variable of a module, including values that a Run stored.
func (m *Machine) variable(mod *Module, name string) (Value, bool) {
	if m.running {
		if v, ok := m.overlay[mod.Name+"."+name]; ok {
			return v, true
		}
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
	m.overlay, m.running, m.steps, m.depth, m.alternative, m.exhausted = map[string]Value{}, true, 0, 0, 0, false
	defer func() { m.running = false }()
	mod := &Module{Name: "", vars: map[string]Value{}, File: &pysource.File{}}
	if fn, ok := f.(*Function); ok {
		mod = fn.Module
	}
	return m.call(&Call{Func: f, Args: args, Module: mod})
}

// step counts a step and reports whether more steps are allowed.
func (m *Machine) step() bool {
	m.steps++
	if m.steps > maxSteps && !m.exhausted {
		m.exhausted = true
	}
	return !m.exhausted
}
