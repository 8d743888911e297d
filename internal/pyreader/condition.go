package pyreader

import (
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pyeval"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// condition returns what is known of the condition of a registration.
func (c *Checkout) condition(r *Record, reg registration) *Condition {
	cond := &Condition{Kind: "name", Keys: []string{}, Env: []string{}}
	fn, ok := reg.condition.(*pyeval.Function)
	if !ok {
		cond.Source = pyeval.Repr(reg.condition)
		cond.Words = cond.Source
		cond.Probes = []string{cond.Source}
		return cond
	}
	reads := &reads{machine: c.machine, cond: cond}
	if fn.Def == nil {
		cond.Kind = "lambda"
		cond.Source = strings.TrimSpace(fn.Module.File.Source(fn.Body))
	} else {
		cond.Source, cond.Doc = fn.Module.File.Source(fn.Def), docstring(fn.Def.Body)
		cond.File, cond.Line = fn.Module.Path, fn.Module.File.Line(defStart(fn.Module.File, fn.Def))
	}
	reads.function(fn, nil)
	cond.Probes = outermost(cond.Probes)
	cond.Words, cond.Static = c.words(fn), len(cond.Probes) == 0
	cond.Always = c.machine.Truth(c.machine.Run(fn, c.context(r, pyeval.Argument{}))) == pyeval.True
	return cond
}

// reads collects what a condition reads, also in the functions that it calls by name. It walks each
// statement breadth first, as Python's ast.walk does.
type reads struct {
	machine *pyeval.Machine
	cond    *Condition
	seen    []*readsOf
}

// function walks through a function; given are the parameters that the call sets to constants.
func (r *reads) function(fn *pyeval.Function, given map[string]string) {
	w := &readsOf{reads: r, fn: fn, given: given, local: map[string]pyeval.Value{}}
	same := func(other *readsOf) bool {
		return other.fn.Def == fn.Def && other.fn.Body == fn.Body && maps.Equal(other.given, given)
	}
	if slices.ContainsFunc(r.seen, same) {
		return
	}
	r.seen = append(r.seen, w)
	var body []pysource.Node
	if fn.Def == nil {
		body = append(body, fn.Body)
	} else {
		for _, s := range fn.Def.Body {
			body = append(body, s)
		}
	}
	w.imports(body)
	for _, s := range body {
		for queue := []pysource.Node{s}; len(queue) > 0; queue = queue[1:] {
			queue = append(queue, children(queue[0])...)
			w.node(queue[0])
		}
	}
}

// children returns the direct children of a node.
func children(n pysource.Node) []pysource.Node {
	var below []pysource.Node
	pysource.Walk(n, func(m pysource.Node) bool {
		if m != n {
			below = append(below, m)
		}
		return m == n
	})
	return below
}

// readsOf walks through one function.
type readsOf struct {
	*reads
	fn    *pyeval.Function
	given map[string]string
	local map[string]pyeval.Value // what it imports
}

// outermost leaves out the paths that others begin with.
func outermost(paths []string) []string {
	var kept []string
	for _, p := range paths {
		if !slices.ContainsFunc(paths, func(longer string) bool { return strings.HasPrefix(longer, p+".") }) {
			kept = append(kept, p)
		}
	}
	return kept
}

// imports records what a function imports.
func (w *readsOf) imports(body []pysource.Node) {
	for _, n := range body {
		pysource.Walk(n, func(n pysource.Node) bool {
			switch n := n.(type) {
			case *pysource.Import:
				for _, a := range n.Names {
					name := a.AsName
					if name == "" {
						name, _, _ = strings.Cut(a.Name, ".")
						w.local[name] = w.machine.Import(name)
						continue
					}
					w.local[name] = w.machine.Import(a.Name)
				}
			case *pysource.ImportFrom:
				for _, a := range n.Names {
					name := a.AsName
					if name == "" {
						name = a.Name
					}
					v, found, _ := w.machine.Attr(w.machine.Import(n.Module), a.Name)
					if !found {
						v = &pyeval.Opaque{Source: n.Module + "." + a.Name}
					}
					w.local[name] = v
				}
			}
			return true
		})
	}
}

// named returns what a name stands for in a function; nil for its parameters and variables.
func (w *readsOf) named(name string) pyeval.Value {
	if v, ok := w.local[name]; ok {
		return v
	}
	if v, ok := w.fn.Module.Var(name); ok && !w.bound(name) {
		return v
	}
	return nil
}

// bound reports whether a name is a parameter of the function.
func (w *readsOf) bound(name string) bool {
	is := func(a *pysource.Arg) bool { return a.Name == name }
	return slices.ContainsFunc(w.fn.Args.Args, is) || slices.ContainsFunc(w.fn.Args.Kwonlyargs, is)
}

func (w *readsOf) node(n pysource.Node) {
	switch n := n.(type) {
	case *pysource.Call:
		w.call(n)
	case *pysource.Subscript:
		if name, ok := text(n.Slice); ok && w.path(n.Value) == "os.environ" {
			w.cond.Env = addTo(w.cond.Env, name)
		}
	case *pysource.Compare:
		if name, ok := text(n.Left); ok && w.path(n.Comparators[0]) == "os.environ" {
			w.cond.Env = addTo(w.cond.Env, name)
		}
	case *pysource.Attribute:
		if base, ok := n.Value.(*pysource.Name); ok && base.ID == "args" && w.named("args") == nil {
			w.cond.Keys = addTo(w.cond.Keys, n.Attr)
		}
		w.probe(n, w.path(n))
	case *pysource.Name:
		w.probe(n, w.path(n))
	}
}

// known are modules that do not depend on the machine.
var known = []string{"os", "re", "math", "typing", "functools", "logging", "warnings", "builtins", "json", "enum", "__future__", "sys", "inspect"}

// probe records that a condition reads something other than parameters and variables.
func (w *readsOf) probe(n pysource.Node, path string) {
	root, _, dotted := strings.Cut(path, ".")
	if path == "" || slices.Contains(known, root) {
		return
	}
	if !dotted {
		return // the module of an attribute, which is recorded as a whole
	}
	w.cond.Probes = addTo(w.cond.Probes, path)
}

// path returns the dotted name of an expression that is external; empty for others.
func (w *readsOf) path(e pysource.Node) string {
	switch e := e.(type) {
	case *pysource.Name:
		return pyeval.PathOf(w.named(e.ID))
	case *pysource.Attribute:
		if base := w.path(e.Value); base != "" {
			return base + "." + e.Attr
		}
	}
	return ""
}

func (w *readsOf) call(call *pysource.Call) {
	name, ok := call.Func.(*pysource.Name)
	if !ok {
		if path := w.path(call.Func); len(call.Args) > 0 && (path == "os.environ.get" || path == "os.getenv") {
			w.cond.Env = addTo(w.cond.Env, w.name(call.Args[0]))
		}
		return
	}
	if fn, ok := w.named(name.ID).(*pyeval.Function); ok {
		if name.ID == "get_param" && len(call.Args) > 1 {
			w.cond.Keys = addTo(w.cond.Keys, w.name(call.Args[1]))
		}
		if !strings.HasPrefix(fn.Module.Name, engine) {
			w.reads.function(fn, w.constants(fn, call))
		}
		return
	}
	if name.ID != "getattr" && name.ID != "hasattr" || len(call.Args) < 2 {
		return
	}
	if path, ok := w.parameters(call.Args[0]); ok {
		w.cond.Keys = addTo(w.cond.Keys, strings.TrimPrefix(path+"."+w.name(call.Args[1]), "."))
	}
}

// constants returns the parameters of a function that a call sets to texts.
func (w *readsOf) constants(fn *pyeval.Function, call *pysource.Call) map[string]string {
	given := map[string]string{}
	for i, a := range call.Args {
		if s, ok := text(a); ok && i < len(fn.Args.Args) {
			given[fn.Args.Args[i].Name] = s
		}
	}
	return given
}

// name returns the text of an expression that names something, or its source in angle brackets.
func (w *readsOf) name(e pysource.Expr) string {
	if s, ok := text(e); ok {
		return s
	}
	if n, ok := e.(*pysource.Name); ok {
		if s, ok := w.given[n.ID]; ok {
			return s
		}
		if s, ok := pyeval.Str(w.named(n.ID)); ok {
			return s
		}
	}
	return "<" + w.fn.Module.File.Source(e) + ">"
}

// parameters reports whether an expression is the parameters of the experiment, or those below a
// path: the result of get_args, a variable, or the attribute of one of these.
func (w *readsOf) parameters(e pysource.Expr) (path string, ok bool) {
	switch e := e.(type) {
	case *pysource.Call:
		name, ok := e.Func.(*pysource.Name)
		switch {
		case !ok:
			return "", false
		case name.ID == "get_args":
			return "", true
		case name.ID != "getattr" || len(e.Args) < 2:
			return "", false
		}
		attr, _ := text(e.Args[1])
		if attr == "params" {
			return "", true
		}
		base, ok := w.parameters(e.Args[0])
		return strings.TrimPrefix(base+"."+attr, "."), ok && attr != ""
	case *pysource.Name:
		return "", e.ID != "ctx" && w.named(e.ID) == nil && !w.ofContext(e.ID)
	}
	return "", false
}

// ofContext reports whether a variable is set to a part of the context other than the parameters.
func (w *readsOf) ofContext(name string) bool {
	if w.fn.Def == nil {
		return false
	}
	found := false
	for _, s := range w.fn.Def.Body {
		pysource.Walk(s, func(n pysource.Node) bool {
			assign, ok := n.(*pysource.Assign)
			if !ok {
				return !found
			}
			target, ok := assign.Targets[0].(*pysource.Name)
			value := w.fn.Module.File.Source(assign.Value)
			found = found || ok && target.ID == name && strings.HasPrefix(value, "ctx.")
			return !found
		})
	}
	return found
}

func text(e pysource.Node) (string, bool) {
	c, ok := e.(*pysource.Constant)
	if !ok {
		return "", false
	}
	s, ok := c.Value.(string)
	return s, ok
}

func addTo(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
