package explore

import (
	"strings"

	"github.com/primus-fl/primus/runtime/patch/pyeval"
	"github.com/primus-fl/primus/runtime/patch/pysource"
)

// words says a condition in words: what it reads by the names of parameters and variables, helpers by what they return.
func (c *Checkout) words(fn *pyeval.Function) string {
	w := &wording{machine: c.machine}
	return w.function(fn, nil)
}

type wording struct {
	machine *pyeval.Machine
	inside  []*pyeval.Function
}

// phrase is a function whose expressions are put into words.
type phrase struct {
	*wording
	*readsOf
	values map[string]pysource.Expr // variables that are set once
}

func (w *wording) function(fn *pyeval.Function, given map[string]string) string {
	for _, other := range w.inside {
		if other.Def == fn.Def && other.Body == fn.Body {
			return fn.Name
		}
	}
	w.inside = append(w.inside, fn)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	p := &phrase{w, &readsOf{reads: &reads{machine: w.machine, cond: &Condition{}}, fn: fn, given: given, local: map[string]pyeval.Value{}}, map[string]pysource.Expr{}}
	if fn.Def == nil {
		return p.words(fn.Body)
	}
	var body []pysource.Node
	for _, s := range fn.Def.Body {
		body = append(body, s)
	}
	p.imports(body)
	return p.block(fn.Def.Body)
}

// block says what a block returns: "A; else B".
func (p *phrase) block(body []pysource.Stmt) string {
	var parts []string
	for _, s := range body {
		switch s := s.(type) {
		case *pysource.Assign:
			if name, ok := s.Targets[0].(*pysource.Name); ok {
				p.values[name.ID] = s.Value
			}
		case *pysource.If:
			yes := p.block(s.Body)
			if yes == "" {
				continue
			}
			test := p.words(s.Test)
			switch yes {
			case "no":
				parts = append(parts, "not if "+test)
			case "always":
				parts = append(parts, "if "+test)
			default:
				parts = append(parts, "if "+test+": "+yes)
			}
			if no := p.block(s.Orelse); no != "" {
				parts = append(parts, no)
			}
		case *pysource.Return:
			if s.Value != nil {
				parts = append(parts, p.words(s.Value))
			}
			return strings.Join(parts, "; else ")
		case *pysource.Try:
			if inner := p.block(s.Body); inner != "" {
				parts = append(parts, inner)
			}
		case *pysource.For:
			if inner := p.block(s.Body); inner != "" {
				parts = append(parts, "for each of "+p.source(s.Iter)+": "+inner)
			}
		}
	}
	return strings.Join(parts, "; else ")
}

func (p *phrase) source(n pysource.Node) string {
	return strings.Join(strings.Fields(p.fn.Module.File.Source(n)), " ")
}

// words says an expression as a test.
func (p *phrase) words(e pysource.Expr) string {
	switch e := e.(type) {
	case *pysource.Constant:
		switch e.Value {
		case true:
			return "always"
		case false:
			return "no"
		}
	case *pysource.BoolOp:
		var parts []string
		for _, v := range e.Values {
			s := p.words(v)
			if _, nested := v.(*pysource.BoolOp); nested {
				s = "(" + s + ")"
			}
			parts = append(parts, s)
		}
		return strings.Join(parts, " "+e.Op+" ")
	case *pysource.UnaryOp:
		if name, ok := p.read(e.Operand); ok && e.Op == "not" {
			return name + " is not set"
		}
		if e.Op == "not" {
			return "not (" + p.words(e.Operand) + ")"
		}
	case *pysource.Compare:
		return p.comparison(e)
	case *pysource.Call:
		return p.calls(e)
	}
	if name, ok := p.read(e); ok {
		return name + " is set"
	}
	return p.source(e)
}

func (p *phrase) comparison(e *pysource.Compare) string {
	said := map[string]string{"==": "is", "!=": "is not", "is": "is", "is not": "is not", "in": "is one of", "not in": "is none of"}
	s := p.operand(e.Left)
	for i, op := range e.Ops {
		if word, ok := said[op]; ok {
			op = word
		}
		s += " " + op + " " + p.operand(e.Comparators[i])
	}
	return strings.ReplaceAll(s, "is not None", "is given")
}

// operand says an expression as a value.
func (p *phrase) operand(e pysource.Expr) string {
	if name, ok := p.read(e); ok {
		return name
	}
	return p.source(e)
}

// calls says what a helper tests.
func (p *phrase) calls(e *pysource.Call) string {
	if name, ok := p.read(e); ok {
		return name + " is set"
	}
	name, ok := e.Func.(*pysource.Name)
	if !ok {
		return p.source(e)
	}
	if fn, ok := p.named(name.ID).(*pyeval.Function); ok && fn.Def != nil {
		if s := p.function(fn, p.constants(fn, e)); s != "" {
			if strings.Contains(s, " or ") || strings.Contains(s, "; ") {
				s = "(" + s + ")"
			}
			return s
		}
	}
	if name.ID == "bool" && len(e.Args) == 1 {
		return p.words(e.Args[0])
	}
	return p.source(e)
}

// converts are functions that leave the meaning of a value as it is.
var converts = map[string]bool{"bool": true, "int": true, "str": true, "float": true}

// read returns the name of the parameter or variable that an expression reads.
func (p *phrase) read(e pysource.Expr) (string, bool) {
	switch e := e.(type) {
	case *pysource.Name:
		if value, ok := p.values[e.ID]; ok {
			return p.read(value)
		}
	case *pysource.BoolOp: // x or default
		if e.Op == "or" && len(e.Values) == 2 {
			if _, ok := e.Values[1].(*pysource.Constant); ok {
				return p.read(e.Values[0])
			}
		}
	case *pysource.Attribute:
		if base, ok := e.Value.(*pysource.Name); ok && base.ID == "ctx" {
			return "the " + strings.ReplaceAll(e.Attr, "_", " "), true
		}
	case *pysource.Call:
		return p.readCall(e)
	}
	return "", false
}

func (p *phrase) readCall(e *pysource.Call) (string, bool) {
	name, ok := e.Func.(*pysource.Name)
	if !ok {
		path := p.path(e.Func)
		switch {
		case len(e.Args) > 0 && (path == "os.environ.get" || path == "os.getenv"):
			return "$" + p.name(e.Args[0]), true
		case path == "importlib.util.find_spec" && len(e.Args) > 0:
			return "the package " + p.name(e.Args[0]), true
		}
		return "", false
	}
	switch {
	case converts[name.ID] && len(e.Args) == 1:
		return p.read(e.Args[0])
	case name.ID == "get_param" && len(e.Args) > 1:
		return p.name(e.Args[1]), true
	case (name.ID == "getattr" || name.ID == "hasattr") && len(e.Args) > 1:
		if base := p.path(e.Args[0]); base != "" {
			return base + "." + p.name(e.Args[1]), true
		}
		if path, ok := p.parameters(e.Args[0]); ok {
			return strings.TrimPrefix(path+"."+p.name(e.Args[1]), "."), true
		}
	}
	return "", false
}
