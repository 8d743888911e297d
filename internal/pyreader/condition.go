package pyreader

import (
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// condition returns what is known of the condition of a registration.
func (c *Checkout) condition(r *Record, reg registration) *Condition {
	cond := &Condition{Kind: "name", Keys: []string{}, Env: []string{}}
	fn, ok := reg.condition.(*eval.Function)
	if !ok {
		cond.Source = eval.Repr(reg.condition)
		cond.Words = cond.Source
		cond.Probes = []string{cond.Source}
		return cond
	}
	file := fn.Module.File
	if fn.IsLambda() {
		cond.Kind = "lambda"
		cond.Source = strings.TrimSpace(file.Source(fn.Def.Returns))
	} else {
		cond.Source, cond.Doc = file.Source(fn.Def), docstring(fn.Def.Body)
		cond.File, cond.Line = fn.Module.Path, file.Line(defStart(file, fn.Def))
	}
	reads := &reads{machine: c.machine, cond: cond}
	reads.function(fn, nil)
	cond.Probes = outermost(cond.Probes)
	words := &wording{machine: c.machine}
	cond.Words, cond.Static = words.function(fn, nil).words(false), len(cond.Probes) == 0
	cond.Always = c.machine.Truth(c.machine.Run(fn, c.context(r, eval.Argument{}))) == eval.True
	return cond
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

// names knows what the names in a function stand for.
type names struct {
	fn    *eval.Function
	given map[string]string     // the parameters that a call sets to texts
	local map[string]eval.Value // what the function imports
}

// namesOf reads the names of a function. The last result is its body.
func namesOf(machine *eval.Machine, fn *eval.Function, given map[string]string) (*names, []*syntax.Node) {
	n := &names{fn, given, map[string]eval.Value{}}
	body := []*syntax.Node{fn.Def.Returns}
	if !fn.IsLambda() {
		body = fn.Def.Body
	}
	for _, s := range body {
		syntax.Walk(s, func(s *syntax.Node) bool {
			for _, a := range s.List {
				switch {
				case s.Kind == syntax.Import && a.As != "":
					n.local[a.As] = machine.Import(a.Name)
				case s.Kind == syntax.Import:
					root, _, _ := strings.Cut(a.Name, ".")
					n.local[root] = machine.Import(root)
				case s.Kind == syntax.ImportFrom:
					v, found, _ := machine.Attr(machine.Import(s.Name), a.Name)
					if !found {
						v = &eval.Opaque{Source: s.Name + "." + a.Name}
					}
					n.local[a.Bound()] = v
				}
			}
			return true
		})
	}
	return n, body
}

// named returns what a name stands for; nil for parameters and variables of the function.
func (w *names) named(name string) eval.Value {
	if v, ok := w.local[name]; ok {
		return v
	}
	parameter := func(p *syntax.Node) bool {
		return p.Name == name && (p.Level == syntax.Positional || p.Level == syntax.KeywordOnly)
	}
	if v, ok := w.fn.Module.Var(name); ok && !slices.ContainsFunc(w.fn.Def.Params, parameter) {
		return v
	}
	return nil
}

// path returns the dotted name of an expression that is external; empty for others.
func (w *names) path(e *syntax.Node) string {
	switch e.Kind {
	case syntax.Name:
		return eval.PathOf(w.named(e.Name))
	case syntax.Attribute:
		if base := w.path(e.Value); base != "" {
			return base + "." + e.Name
		}
	}
	return ""
}

// name returns the text of an expression that names something, or its source in angle brackets.
func (w *names) name(e *syntax.Node) string {
	if s, ok := e.Str(); ok {
		return s
	}
	if s, ok := w.given[e.Ident()]; ok {
		return s
	}
	if s, ok := w.named(e.Ident()).(string); ok {
		return s
	}
	return "<" + w.fn.Module.File.Source(e) + ">"
}

// constants returns the parameters of a function that a call sets to texts.
func constants(fn *eval.Function, call *syntax.Node) map[string]string {
	given := map[string]string{}
	i := 0
	for _, p := range fn.Def.Params {
		if p.Level != syntax.Positional || i >= len(call.List) {
			continue
		}
		if s, ok := call.List[i].Str(); ok {
			given[p.Name] = s
		}
		i++
	}
	return given
}

// parameters reports whether an expression is the parameters of the experiment, or those below a
// path: the result of get_args, a variable, or the attribute of one of these.
func (w *names) parameters(e *syntax.Node) (path string, ok bool) {
	switch {
	case e.Kind == syntax.Name:
		return "", e.Name != "ctx" && w.named(e.Name) == nil && !w.ofContext(e.Name)
	case e.Kind != syntax.Call || e.Value.Ident() == "":
		return "", false
	case e.Value.Name == "get_args":
		return "", true
	case e.Value.Name != "getattr" || len(e.List) < 2:
		return "", false
	}
	attr, _ := e.List[1].Str()
	if attr == "params" {
		return "", true
	}
	base, ok := w.parameters(e.List[0])
	return strings.TrimPrefix(base+"."+attr, "."), ok && attr != ""
}

// ofContext reports whether a variable is set to a part of the context other than the parameters.
func (w *names) ofContext(name string) bool {
	if w.fn.IsLambda() {
		return false
	}
	found := false
	for _, s := range w.fn.Def.Body {
		syntax.Walk(s, func(n *syntax.Node) bool {
			if n.Kind == syntax.Assign {
				found = found || n.Targets[0].Ident() == name && strings.HasPrefix(w.fn.Module.File.Source(n.Value), "ctx.")
			}
			return !found
		})
	}
	return found
}

// reads collects what a condition reads, also in the functions that it calls by name. It walks each
// statement breadth first, as Python's ast.walk does.
type reads struct {
	machine *eval.Machine
	cond    *Condition
	seen    []*names
}

// function walks through a function; given are the parameters that the call sets to constants.
func (r *reads) function(fn *eval.Function, given map[string]string) {
	if slices.ContainsFunc(r.seen, func(other *names) bool { return other.fn.Def == fn.Def && maps.Equal(other.given, given) }) {
		return
	}
	if r.machine.Spend(1+len(r.seen)) != nil {
		return
	}
	w, body := namesOf(r.machine, fn, given)
	r.seen = append(r.seen, w)
	for _, s := range body {
		for queue := []*syntax.Node{s}; len(queue) > 0; queue = queue[1:] {
			queue[0].Children(func(n *syntax.Node) { queue = append(queue, n) })
			r.node(w, queue[0])
		}
	}
}

func (r *reads) node(w *names, n *syntax.Node) {
	switch n.Kind {
	case syntax.Call:
		r.call(w, n)
	case syntax.Subscript:
		if name, ok := n.Right.Str(); ok && w.path(n.Value) == "os.environ" {
			r.cond.Env = addTo(r.cond.Env, name)
		}
	case syntax.Compare:
		if name, ok := n.Value.Str(); ok && w.path(n.List[0]) == "os.environ" {
			r.cond.Env = addTo(r.cond.Env, name)
		}
	case syntax.Attribute, syntax.Name:
		if n.Kind == syntax.Attribute && n.Value.Ident() == "args" && w.named("args") == nil {
			r.cond.Keys = addTo(r.cond.Keys, n.Name)
		}
		// A module alone is not recorded: its attribute is, as a whole.
		if root, _, dotted := strings.Cut(w.path(n), "."); dotted && !slices.Contains(known, root) {
			r.cond.Probes = addTo(r.cond.Probes, w.path(n))
		}
	}
}

// known are modules that do not depend on the machine.
var known = []string{"os", "re", "math", "typing", "functools", "logging", "warnings", "builtins", "json", "enum", "__future__", "sys", "inspect"}

func (r *reads) call(w *names, call *syntax.Node) {
	args := call.List
	if call.Value.Kind != syntax.Name {
		if path := w.path(call.Value); len(args) > 0 && (path == "os.environ.get" || path == "os.getenv") {
			r.cond.Env = addTo(r.cond.Env, w.name(args[0]))
		}
		return
	}
	name := call.Value.Name
	if fn, ok := w.named(name).(*eval.Function); ok {
		if name == "get_param" && len(args) > 1 {
			r.cond.Keys = addTo(r.cond.Keys, w.name(args[1]))
		}
		if !strings.HasPrefix(fn.Module.Name, engine) {
			r.function(fn, constants(fn, call))
		}
		return
	}
	if (name == "getattr" || name == "hasattr") && len(args) > 1 {
		if path, ok := w.parameters(args[0]); ok {
			r.cond.Keys = addTo(r.cond.Keys, strings.TrimPrefix(path+"."+w.name(args[1]), "."))
		}
	}
}

func addTo(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
