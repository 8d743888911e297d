package pyeval

import (
	"maps"
	"slices"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// Value is a value of a Python program: one of the types of this package.
type Value any

type (
	// Const is a value that is known: nil for None, or a bool, *big.Int, float64, complex128, string,
	// pysource.Bytes or pysource.Ellipsis.
	Const struct{ V any }
	// Sequence is a list, tuple or set with known items.
	Sequence struct {
		Kind   string // list, tuple, set
		Items  []Value
		Open   bool // it may have more items
		shared bool // made at the top level of a module
	}
	// Mapping is a dict.
	Mapping struct {
		Keys, Values []Value
		Open         bool // it may have more entries
		shared       bool
	}
	// External is a value from a library, by its dotted name.
	External struct{ Path string }
	// Argument is a parameter of the experiment by its dotted name, empty for all of them.
	Argument struct{ Path string }
	// Variable is a variable of the environment.
	Variable struct{ Name string }
	// Function is a function or a lambda of the source tree.
	Function struct {
		Name     string
		Args     *pysource.Arguments
		Def      *pysource.FunctionDef // nil for a lambda
		Body     pysource.Expr         // of a lambda
		Module   *Module
		Scope    *Scope
		Owner    *Class // for methods
		Self     Value  // for bound methods
		Defaults map[string]Value
		Parts    []Value // arguments of its decorators
		Kind     string  // staticmethod, classmethod, property, or empty
	}
	// Class is a class of the source tree.
	Class struct {
		Name      string
		Def       *pysource.ClassDef
		Module    *Module
		Bases     []Value
		Attrs     map[string]Value
		Dataclass bool
		fields    []string
	}
	// Object is an instance.
	Object struct {
		Class *Class // nil for a plain namespace
		Attrs map[string]Value
		Open  bool // it may have more attributes
	}
	// Native is a function of this program.
	Native struct {
		Name  string
		Call  func(*Machine, *Call) Value
		Parts []Value
	}
	// Opaque is the unknown value of an expression with external values.
	Opaque struct {
		Source string
		Parts  []Value // the values in the expression
	}
	// Union is one of several values.
	Union struct {
		Of    []Value
		Truth Truth // of all of them, if known
	}
	// SourceText is the source of a function as text, as inspect.getsource returns it.
	SourceText struct {
		Of      Value
		Anchors [][2]string // texts and their replacements
	}
	lazyName struct {
		module, name string
	}
)

// Call is a call with its arguments.
type Call struct {
	Func     Value
	Args     []Value
	Keywords []Named
	Open     bool // there may be more arguments
	Node     *pysource.Call
	Module   *Module
}

// Named is a value with a name.
type Named struct {
	Name  string
	Value Value
}

// Arg returns an argument by its position or else by its name, nil if it is not given.
func (c *Call) Arg(i int, name string) Value {
	if i >= 0 && i < len(c.Args) {
		return c.Args[i]
	}
	for _, k := range c.Keywords {
		if k.Name == name {
			return k.Value
		}
	}
	return nil
}

// Str returns the text of a constant.
func Str(v Value) (string, bool) {
	c, ok := v.(Const)
	if !ok {
		return "", false
	}
	s, ok := c.V.(string)
	return s, ok
}

func union(values ...Value) Value {
	var of []Value
	for _, v := range values {
		if u, ok := v.(*Union); ok && u.Truth == Unknown {
			of = append(of, u.Of...)
		} else {
			of = append(of, v)
		}
	}
	var distinct []Value
	for _, v := range of {
		if !slices.ContainsFunc(distinct, func(w Value) bool { return same(v, w) }) {
			distinct = append(distinct, v)
		}
	}
	const most = 16
	if len(distinct) == 1 {
		return distinct[0]
	}
	return &Union{Of: distinct[:min(len(distinct), most)]}
}

// same reports whether two values are certainly the same.
func same(a, b Value) bool {
	if x, ok := a.(Const); ok {
		y, ok := b.(Const)
		return ok && equalConst(x.V, y.V) == True && constKind(x.V) == constKind(y.V)
	}
	switch a.(type) {
	case External, Argument, Variable, *Sequence, *Mapping, *Function, *Class, *Object, *Native, *Opaque, *Union, *Module, *SourceText, lazyName:
		return a == b
	}
	return false
}

// Alternatives returns the values that a value may be.
func Alternatives(v Value) []Value {
	if u, ok := v.(*Union); ok {
		return u.Of
	}
	return []Value{v}
}

// Inside calls visit for a value and for all values in it: items, captured variables of functions,
// arguments of calls.
func (m *Machine) Inside(v Value, visit func(Value)) {
	seen := map[any]bool{}
	var walk func(v Value)
	walkAll := func(values []Value) {
		for _, v := range values {
			walk(v)
		}
	}
	walk = func(v Value) {
		if v == nil {
			return
		}
		switch v.(type) {
		case *Sequence, *Mapping, *Function, *Class, *Object, *Opaque, *Union, *Native, *SourceText:
			if seen[v] {
				return
			}
			seen[v] = true
		}
		visit(v)
		switch v := v.(type) {
		case *Sequence:
			walkAll(v.Items)
		case *Mapping:
			walkAll(v.Keys)
			walkAll(v.Values)
		case *Union:
			walkAll(v.Of)
		case *Opaque:
			walkAll(v.Parts)
		case *Native:
			walkAll(v.Parts)
		case *SourceText:
			walk(v.Of)
		case *Object:
			for _, name := range slices.Sorted(maps.Keys(v.Attrs)) {
				walk(v.Attrs[name])
			}
		case *Class:
			if v.local() {
				walkAll(v.Bases)
				for _, name := range slices.Sorted(maps.Keys(v.Attrs)) {
					walk(v.Attrs[name])
				}
			}
		case *Function:
			walkAll(v.Parts)
			walk(v.Self)
			for _, name := range slices.Sorted(maps.Keys(v.Defaults)) {
				walk(v.Defaults[name])
			}
			for _, captured := range m.captured(v) {
				walk(captured)
			}
		}
	}
	walk(v)
}

func (c *Class) local() bool {
	_, ok := c.Module.vars[c.Name]
	return !ok
}

// captured returns the values of the variables of enclosing functions that a function names, and
// what was stored in their attributes; PATH.* stands for attributes whose names are not known.
func (m *Machine) captured(f *Function) []Value {
	if f.Scope == nil || f.Scope.function == nil {
		return nil
	}
	var values []Value
	seen := map[string]bool{}
	visit := func(n pysource.Node) bool {
		switch n := n.(type) {
		case *pysource.Name:
			if v, ok := f.Scope.captured(n.ID); ok && !seen[n.ID] {
				seen[n.ID] = true
				values = append(values, v)
			}
		case *pysource.Attribute:
			if v, ok := m.overlay[f.Scope.dotted(n)]; ok {
				values = append(values, v)
			}
		case *pysource.Call:
			if name, ok := n.Func.(*pysource.Name); ok && name.ID == "getattr" && len(n.Args) > 1 {
				if _, known := n.Args[1].(*pysource.Constant); !known {
					values = append(values, External{f.Scope.dotted(n.Args[0]) + ".*"})
				}
			}
		}
		return true
	}
	if f.Def != nil {
		for _, s := range f.Def.Body {
			pysource.Walk(s, visit)
		}
	} else {
		pysource.Walk(f.Body, visit)
	}
	return values
}

// dotted returns the path of an attribute of an external value; empty for others.
func (s *Scope) dotted(e pysource.Expr) string {
	switch e := e.(type) {
	case *pysource.Name:
		v, _ := s.captured(e.ID)
		return PathOf(v)
	case *pysource.Attribute:
		if base := s.dotted(e.Value); base != "" {
			return base + "." + e.Attr
		}
	}
	return ""
}
