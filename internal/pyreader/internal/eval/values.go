package eval

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// Value is a value of a Python program. One that is known is None, a bool, *big.Int, float64,
// complex128, string, syntax.Bytes or syntax.Ellipsis; the others are of the types below. In Go,
// nil is no value.
type Value any

// None is the value None.
var None = none{}

type none struct{}

type (
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
		Def      *syntax.Node // a FunctionDef or a Lambda
		Module   *Module
		scope    *scope
		owner    *Class // for methods
		self     Value  // for bound methods
		defaults map[string]Value
		Parts    []Value // arguments of its decorators
		kind     string  // staticmethod, classmethod, property, or empty
	}
	// Class is a class of the source tree.
	Class struct {
		Name      string
		module    *Module
		bases     []Value
		attrs     map[string]Value
		dataclass bool
		fields    []string
	}
	// Object is an instance.
	Object struct {
		class *Class // nil for a plain namespace
		Attrs map[string]Value
		Open  bool // it may have more attributes
	}
	// Native is a function of this program.
	Native struct {
		Name  string
		Call  func(*Machine, *Call) Value // its result is nil if it is not known
		parts []Value
	}
	// Opaque is the unknown value of an expression with external values.
	Opaque struct {
		Source string
		Parts  []Value // the values in the expression
	}
	// Union is one of several values.
	Union struct {
		of    []Value
		truth Truth // of all of them, if known
	}
	// SourceText is the source of a function as text, as inspect.getsource returns it.
	SourceText struct {
		of      Value
		Anchors [][2]string // texts and their replacements
	}
	// lazyName is a module, or a name of one, that a function has imported and not used yet.
	lazyName struct{ module, name string }
)

// Call is a call with its arguments.
type Call struct {
	Func     Value
	Args     []Value
	keywords Mapping
	open     bool         // there may be more arguments
	Node     *syntax.Node // nil for a call that the source does not have
	Module   *Module
}

// Arg returns an argument by its position, which is negative for none, or else by its name; nil if
// it is not given.
func (c *Call) Arg(i int, name string) Value {
	if i >= 0 && i < len(c.Args) {
		return c.Args[i]
	}
	if at := slices.Index(c.keywords.Keys, Value(name)); at >= 0 {
		return c.keywords.Values[at]
	}
	return nil
}

// IsLiteral reports whether a value is a constant, or a list, tuple or set.
func IsLiteral(v Value) bool {
	_, sequence := v.(*Sequence)
	return sequence || isConst(v)
}

func isConst(v Value) bool {
	switch v.(type) {
	case none, bool, *big.Int, float64, complex128, string, syntax.Bytes, syntax.Ellipsis:
		return true
	}
	return false
}

func union(values ...Value) Value {
	const maxValues = 16
	var distinct []Value
	for _, v := range values {
		of := []Value{v}
		if u, ok := v.(*Union); ok && u.truth == Unknown {
			of = u.of
		}
		for _, v := range of {
			if !slices.ContainsFunc(distinct, func(w Value) bool { return same(v, w) }) {
				distinct = append(distinct, v)
			}
		}
	}
	if len(distinct) == 1 {
		return distinct[0]
	}
	return &Union{of: distinct[:min(len(distinct), maxValues)]}
}

// same reports whether two values are certainly the same.
func same(a, b Value) bool {
	if isConst(a) {
		return isConst(b) && equalConst(a, b) == True && constKind(a) == constKind(b)
	}
	return a == b
}

// alternatives returns the values that a value may be.
func alternatives(v Value) []Value {
	if u, ok := v.(*Union); ok {
		return u.of
	}
	return []Value{v}
}

// each returns a union of the results of f for the values that a union may be, None left out; nil
// if v is no union or has no other value.
func each(v Value, f func(Value) Value) Value {
	u, ok := v.(*Union)
	if !ok {
		return nil
	}
	var values []Value
	for _, w := range u.of {
		if w != None {
			values = append(values, f(w))
		}
	}
	if len(values) == 0 {
		return nil
	}
	return union(values...)
}

// Inside calls visit for a value and for all values in it: items, captured variables of functions,
// arguments of calls.
func (m *Machine) Inside(v Value, visit func(Value)) {
	seen := map[Value]bool{}
	var walk func(values ...Value)
	attributes := func(attrs map[string]Value) {
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			walk(attrs[name])
		}
	}
	walk = func(values ...Value) {
		for _, v := range values {
			if v == nil {
				continue
			}
			switch v.(type) {
			case *Sequence, *Mapping, *Function, *Class, *Object, *Opaque, *Union, *Native, *SourceText:
				if seen[v] {
					continue
				}
				seen[v] = true
			}
			visit(v)
			switch v := v.(type) {
			case *Sequence:
				walk(v.Items...)
			case *Mapping:
				walk(v.Keys...)
				walk(v.Values...)
			case *Union:
				walk(v.of...)
			case *Opaque:
				walk(v.Parts...)
			case *Native:
				walk(v.parts...)
			case *SourceText:
				walk(v.of)
			case *Object:
				attributes(v.Attrs)
			case *Class:
				if _, global := v.module.vars[v.Name]; !global {
					walk(v.bases...)
					attributes(v.attrs)
				}
			case *Function:
				walk(v.Parts...)
				walk(v.self)
				attributes(v.defaults)
				walk(m.captured(v)...)
			}
		}
	}
	walk(v)
}

// captured returns the values of the variables of enclosing functions that a function names, and
// what was stored in their attributes; PATH.* stands for attributes whose names are not known.
func (m *Machine) captured(f *Function) []Value {
	if f.scope == nil || f.scope.kind != functionScope {
		return nil
	}
	var values []Value
	seen := map[string]bool{}
	for _, s := range f.body() {
		syntax.Walk(s, func(n *syntax.Node) bool {
			switch n.Kind {
			case syntax.Name:
				if v, ok := f.scope.captured(n.Name); ok && !seen[n.Name] {
					seen[n.Name] = true
					values = append(values, v)
				}
			case syntax.Attribute:
				if v, ok := m.overlay[f.scope.dotted(n)]; ok {
					values = append(values, v)
				}
			case syntax.Call:
				if n.Value.Ident() == "getattr" && len(n.List) > 1 && n.List[1].Kind != syntax.Constant {
					values = append(values, External{f.scope.dotted(n.List[0]) + ".*"})
				}
			}
			return true
		})
	}
	return values
}

// body returns the statements of a function, or the expression of a lambda.
func (f *Function) body() []*syntax.Node {
	if f.IsLambda() {
		return []*syntax.Node{f.Def.Returns}
	}
	return f.Def.Body
}

// IsLambda reports whether the function is a lambda.
func (f *Function) IsLambda() bool { return f.Def.Kind == syntax.Lambda }

// Path returns the dotted name of a class.
func (c *Class) Path() string { return c.module.Name + "." + c.Name }

// path returns the dotted name of a function.
func (f *Function) path() string {
	if f.owner != nil {
		return f.owner.Path() + "." + f.Name
	}
	return f.Module.Name + "." + f.Name
}

// PathOf returns the dotted name of an external value, or of the external value that an opaque
// value came from; empty for others.
func PathOf(v Value) string {
	switch v := v.(type) {
	case External:
		return v.Path
	case *Opaque:
		if len(v.Parts) > 0 {
			return PathOf(v.Parts[0])
		}
	}
	return ""
}

// text returns str of a constant.
func text(v Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	return Repr(v)
}

// Repr returns a value as Python writes it.
func Repr(v Value) string {
	left := maxItems
	return repr(v, &left)
}

// repr stops after a number of values, since a value may hold another one many times.
func repr(v Value, left *int) string {
	if *left--; *left < 0 {
		return "…"
	}
	join := func(values []Value, separator string) string {
		var parts []string
		for _, w := range values[:min(len(values), max(*left, 0)+1)] {
			parts = append(parts, repr(w, left))
		}
		return strings.Join(parts, separator)
	}
	switch v := v.(type) {
	case none:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case *big.Int:
		return v.String()
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".enI") {
			s += ".0"
		}
		return s
	case string:
		if strings.Contains(v, "'") && !strings.Contains(v, `"`) {
			return `"` + v + `"`
		}
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(v) + "'"
	case *Sequence:
		return "[" + join(v.Items, ", ") + "]"
	case External:
		return v.Path
	case Argument:
		return "args." + v.Path
	case Variable:
		return "$" + v.Name
	case *Opaque:
		return v.Source
	case *Function:
		return v.path()
	case *Class:
		return v.Path()
	case *Module:
		return v.Name
	case lazyName:
		return strings.TrimSuffix(v.module+"."+v.name, ".")
	case *Native:
		if len(v.parts) > 0 {
			return repr(v.parts[0], left) + "." + v.Name
		}
		return v.Name
	case *Object:
		if v.class != nil {
			return "an instance of " + v.class.Path()
		}
	case *Union:
		return join(v.of, " or ")
	}
	return "unknown"
}

// constKind names the type of a constant.
func constKind(v Value) string {
	switch v.(type) {
	case *big.Int:
		return "int"
	case float64:
		return "float"
	}
	return fmt.Sprintf("%T", v)
}
