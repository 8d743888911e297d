package pyreader

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// argumentsModule is where Megatron-LM makes its parser of arguments.
const argumentsModule = "megatron.training.arguments"

// Defaults are the defaults of a framework's parameters, as its source tree states them.
type Defaults struct {
	Version string // of the framework
	Values  map[string]any
	Unknown []string // parameters whose defaults are computed
}

// MegatronDefaults reads the defaults of the parser of a source tree of Megatron-LM: those of
// add_argument, and of the dataclasses from which groups of arguments are made.
func MegatronDefaults(tree string) (*Defaults, error) {
	if !isFolder(tree) {
		return nil, fmt.Errorf("source tree of a framework: %q is not a folder", tree)
	}
	r := &defaultsReader{
		index: &index{files: map[string]*pysource.File{}},
		found: &Defaults{Values: map[string]any{}}, seen: map[string]bool{},
	}
	r.index.roots = append(r.index.roots, os.DirFS(tree))
	path, ok := r.index.module(argumentsModule)
	if ok {
		r.file = r.index.parse(path)
	}
	if r.file == nil {
		return nil, fmt.Errorf("%s: no module %s that can be read, expected the root of a checkout of Megatron-LM", tree, argumentsModule)
	}
	for _, s := range r.file.Body {
		if def, ok := s.(*pysource.FunctionDef); ok {
			r.function(def)
		}
	}
	if len(r.found.Values) == 0 {
		return nil, fmt.Errorf("%s: it adds no arguments in a way that can be read", filepath.Join(tree, path))
	}
	slices.Sort(r.found.Unknown)
	var err error
	r.found.Version, err = FrameworkVersion(tree, "megatron")
	return r.found, err
}

// defaultsReader collects defaults.
type defaultsReader struct {
	index *index
	file  *pysource.File // of the parser
	found *Defaults
	seen  map[string]bool
}

// add records a default. The first one of a parameter counts, as for argparse.
func (r *defaultsReader) add(name string, value any, known bool) {
	if name == "" || r.seen[name] {
		return
	}
	r.seen[name] = true
	if known {
		r.found.Values[name] = value
	} else {
		r.found.Unknown = append(r.found.Unknown, name)
	}
}

// function reads the arguments that a function adds.
func (r *defaultsReader) function(def *pysource.FunctionDef) {
	lists := map[string]pysource.Expr{} // that the function assigns
	classes := map[string][2]string{}   // that it imports, by module and name
	pysource.Walk(def, func(n pysource.Node) bool {
		switch n := n.(type) {
		case *pysource.ImportFrom:
			for _, a := range n.Names {
				classes[cmp.Or(a.AsName, a.Name)] = [2]string{absolute(n, argumentsModule, ""), a.Name}
			}
		case *pysource.Assign:
			if name, ok := n.Targets[0].(*pysource.Name); ok {
				lists[name.ID] = n.Value
			}
		case *pysource.Call:
			switch fn := n.Func.(type) {
			case *pysource.Attribute:
				if fn.Attr == "add_argument" {
					r.argument(n)
				}
			case *pysource.Name:
				if fn.ID == "ArgumentGroupFactory" && len(n.Args) > 0 {
					r.group(n, lists, classes)
				}
			}
		}
		return true
	})
}

// keywords returns the keyword arguments of a call.
func keywords(call *pysource.Call) map[string]pysource.Expr {
	named := map[string]pysource.Expr{}
	for _, k := range call.Keywords {
		named[k.Name] = k.Value
	}
	return named
}

// argument reads a call of add_argument.
func (r *defaultsReader) argument(call *pysource.Call) {
	named := keywords(call)
	dest, _ := text(named["dest"])
	for _, a := range call.Args {
		if flag, ok := text(a); ok && dest == "" && strings.HasPrefix(flag, "--") {
			dest = strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_")
		}
	}
	if given, ok := named["default"]; ok {
		value, known := evaluate(given)
		r.add(dest, value, known)
		return
	}
	switch action, _ := text(named["action"]); action {
	case "store_true":
		r.add(dest, false, true)
	case "store_false":
		r.add(dest, true, true)
	default:
		r.add(dest, nil, true)
	}
}

// group reads a group that is made from a dataclass.
func (r *defaultsReader) group(call *pysource.Call, lists map[string]pysource.Expr, classes map[string][2]string) {
	name, ok := call.Args[0].(*pysource.Name)
	if !ok {
		return
	}
	excluded := keywords(call)["exclude"]
	if variable, ok := excluded.(*pysource.Name); ok {
		excluded = lists[variable.ID]
	}
	var left []string
	if list, ok := excluded.(*pysource.List); ok {
		for _, e := range list.Elts {
			word, _ := text(e)
			left = append(left, word)
		}
	}
	class := r.class(argumentsModule, name.ID, 0)
	if from, ok := classes[name.ID]; ok {
		class = r.class(from[0], from[1], 0)
	}
	for _, f := range r.fields(class, 0) {
		if !slices.Contains(left, f.name) {
			r.add(f.dest, f.value, f.known)
		}
	}
}

// classAt is a class with the module that it is in.
type classAt struct {
	module string
	def    *pysource.ClassDef
}

// class finds a class by the name that it has in a module.
func (r *defaultsReader) class(module, name string, depth int) *classAt {
	path, ok := r.index.module(module)
	if !ok || depth > maxImports {
		return nil
	}
	file := r.index.parse(path)
	if file == nil {
		return nil
	}
	var found *classAt
	top(file.Body, func(n pysource.Node, bound, _ string) {
		if bound != name || found != nil {
			return
		}
		switch n := n.(type) {
		case *pysource.ClassDef:
			found = &classAt{module, n}
		case *pysource.ImportFrom:
			for _, a := range n.Names {
				if cmp.Or(a.AsName, a.Name) == name {
					found = r.class(absolute(n, module, path), a.Name, depth+1)
				}
			}
		}
	})
	return found
}

// field is a field of a dataclass with its default.
type field struct {
	name  string
	dest  string // of its argument
	value any
	known bool
}

// fields returns the fields of a dataclass, those of its bases first.
func (r *defaultsReader) fields(c *classAt, depth int) []field {
	if c == nil || depth > maxImports {
		return nil
	}
	var all []field
	for _, base := range c.def.Bases {
		if name, ok := base.(*pysource.Name); ok {
			all = append(all, r.fields(r.class(c.module, name.ID, 0), depth+1)...)
		}
	}
	for _, s := range c.def.Body {
		assigned, ok := s.(*pysource.AnnAssign)
		if !ok || assigned.Value == nil || annotated(assigned.Annotation, "ClassVar", "InitVar") {
			continue
		}
		name, ok := assigned.Target.(*pysource.Name)
		if !ok {
			continue
		}
		f := field{name: name.ID, dest: name.ID}
		value := assigned.Value
		if call, ok := value.(*pysource.Call); ok && calls(call, "field") {
			named := keywords(call)
			if initialised, _ := evaluate(named["init"]); initialised == false {
				continue
			}
			meta := argparseMeta(named)
			if value = meta["default"]; value == nil {
				value = fieldDefault(named)
			}
			if dest, ok := text(meta["dest"]); ok {
				f.dest = dest
			}
		}
		f.value, f.known = evaluate(value)
		if i := slices.IndexFunc(all, func(other field) bool { return other.name == f.name }); i >= 0 {
			all[i] = f
		} else {
			all = append(all, f)
		}
	}
	return all
}

// argparseMeta returns what a field says of its argument beside its type, by the keywords of its
// call.
func argparseMeta(named map[string]pysource.Expr) map[string]pysource.Expr {
	said := map[string]pysource.Expr{}
	meta, ok := named["metadata"].(*pysource.Dict)
	if !ok {
		return said
	}
	for i, key := range meta.Keys {
		inner, ok := meta.Values[i].(*pysource.Dict)
		if word, _ := text(key); word != "argparse_meta" || !ok {
			continue
		}
		for j, k := range inner.Keys {
			word, _ := text(k)
			said[word] = inner.Values[j]
		}
	}
	return said
}

// fieldDefault returns the expression of the default of a field, by the keywords of its call.
func fieldDefault(named map[string]pysource.Expr) pysource.Expr {
	if value, ok := named["default"]; ok {
		return value
	}
	switch factory := named["default_factory"].(type) {
	case *pysource.Lambda:
		return factory.Body
	case *pysource.Name:
		switch factory.ID {
		case "list":
			return &pysource.List{}
		case "dict":
			return &pysource.Dict{}
		}
	}
	return nil
}

func calls(call *pysource.Call, function string) bool {
	switch fn := call.Func.(type) {
	case *pysource.Name:
		return fn.ID == function
	case *pysource.Attribute:
		return fn.Attr == function
	}
	return false
}

// annotated reports whether an annotation begins with one of some names.
func annotated(annotation pysource.Expr, names ...string) bool {
	if s, ok := annotation.(*pysource.Subscript); ok {
		annotation = s.Value
	}
	switch a := annotation.(type) {
	case *pysource.Name:
		return slices.Contains(names, a.ID)
	case *pysource.Attribute:
		return slices.Contains(names, a.Attr)
	}
	return false
}

// evaluate returns the value of a default; known is false when it is computed. A member of an
// enumeration is its name, and a number out of a variable the number that stands in for it.
func evaluate(e pysource.Expr) (value any, known bool) {
	switch e := e.(type) {
	case *pysource.Constant:
		switch v := e.Value.(type) {
		case *big.Int:
			return v.Int64(), v.IsInt64()
		case nil, bool, string, float64:
			return v, true
		}
	case *pysource.UnaryOp:
		v, _ := evaluate(e.Operand)
		switch v := v.(type) {
		case int64:
			return -v, e.Op == "-"
		case float64:
			return -v, e.Op == "-"
		}
	case *pysource.BinOp:
		left, _ := evaluate(e.Left)
		right, _ := evaluate(e.Right)
		a, first := left.(int64)
		b, second := right.(int64)
		switch {
		case !first || !second:
		case e.Op == "*":
			return a * b, true
		case e.Op == "**" && b >= 0 && b < 63:
			return int64(math.Pow(float64(a), float64(b))), true
		}
	case *pysource.List:
		items := []any{}
		for _, item := range e.Elts {
			v, ok := evaluate(item)
			if !ok {
				return nil, false
			}
			items = append(items, v)
		}
		return items, true
	case *pysource.Attribute:
		if base, ok := e.Value.(*pysource.Name); ok {
			return e.Attr, base.ID != "args"
		}
	case *pysource.Call:
		return fromVariable(e)
	}
	return nil, false
}

// fromVariable evaluates int(os.getenv(name, default)) where the variable is not set.
func fromVariable(call *pysource.Call) (any, bool) {
	if !calls(call, "int") || len(call.Args) != 1 {
		return nil, false
	}
	getenv, ok := call.Args[0].(*pysource.Call)
	if !ok || !calls(getenv, "getenv") && !calls(getenv, "get") || len(getenv.Args) != 2 {
		return nil, false
	}
	digits, ok := text(getenv.Args[1])
	n, isNumber := new(big.Int).SetString(digits, 10)
	return n.Int64(), ok && isNumber
}
