package pyreader

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/pyeval"
	"github.com/primus-fl/primus/internal/pyreader/pysource"
)

// words returns a condition in words. Parameters and variables appear by name, helpers by what they
// return.
func (c *Checkout) words(fn *pyeval.Function) string {
	w := &wording{machine: c.machine}
	return w.function(fn, nil).words(false)
}

type wording struct {
	machine *pyeval.Machine
	inside  []*pyeval.Function
}

// phrase puts the expressions of a function into words.
type phrase struct {
	*wording
	*readsOf
	values map[string]pysource.Expr // variables that are set
}

func (w *wording) function(fn *pyeval.Function, given map[string]string) *test {
	for _, other := range w.inside {
		if other.Def == fn.Def && other.Body == fn.Body {
			return leaf(fn.Name+" holds", fn.Name+" does not hold")
		}
	}
	w.inside = append(w.inside, fn)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	if given == nil {
		given = map[string]string{}
	}
	p := &phrase{w, &readsOf{reads: &reads{machine: w.machine, cond: &Condition{}}, fn: fn, given: given, local: map[string]pyeval.Value{}}, map[string]pysource.Expr{}}
	if fn.Def == nil {
		return p.test(fn.Body)
	}
	var body []pysource.Node
	for _, s := range fn.Def.Body {
		body = append(body, s)
	}
	p.imports(body)
	return p.block(fn.Def.Body, never)
}

// block returns when a block returns something true, with what comes after it where it goes on.
func (p *phrase) block(body []pysource.Stmt, after *test) *test {
	for i, s := range body {
		switch s := s.(type) {
		case *pysource.Assign:
			if name, ok := s.Targets[0].(*pysource.Name); ok && p.values[name.ID] == nil {
				p.values[name.ID] = s.Value
			}
		case *pysource.Return:
			if s.Value == nil {
				return never
			}
			return p.test(s.Value)
		case *pysource.If:
			if p.returns(s.Body) || p.returns(s.Orelse) {
				rest := p.block(body[i+1:], after)
				return choose(p.test(s.Test), p.block(s.Body, rest), p.block(s.Orelse, rest))
			}
		case *pysource.Try:
			if p.returns(s.Body) {
				return p.block(slices.Concat(s.Body, s.Orelse, body[i+1:]), after)
			}
		case *pysource.With:
			return p.block(slices.Concat(s.Body, body[i+1:]), after)
		case *pysource.For:
			if !p.returns(s.Body) {
				continue
			}
			t := p.block(s.Body, never).words(false)
			each := leaf("for one of "+p.source(s.Iter)+": "+t, "for none of "+p.source(s.Iter)+": "+t)
			return either(each, p.block(body[i+1:], after))
		}
	}
	return after
}

// returns reports whether a block may return.
func (p *phrase) returns(body []pysource.Stmt) bool {
	found := false
	for _, s := range body {
		pysource.Walk(s, func(n pysource.Node) bool {
			_, ok := n.(*pysource.Return)
			found = found || ok
			_, inner := n.(*pysource.FunctionDef)
			return !found && !inner
		})
	}
	return found
}

func (p *phrase) source(n pysource.Node) string {
	return strings.Join(strings.Fields(p.fn.Module.File.Source(n)), " ")
}

// test returns when an expression is true.
func (p *phrase) test(e pysource.Expr) *test {
	switch e := e.(type) {
	case *pysource.Constant:
		switch e.Value {
		case true:
			return always
		case false, nil:
			return never
		}
	case *pysource.BoolOp:
		var of []*test
		for _, v := range e.Values {
			of = append(of, p.test(v))
		}
		if e.Op == "and" {
			return all(of...)
		}
		return either(of...)
	case *pysource.UnaryOp:
		if e.Op == "not" {
			return p.test(e.Operand).not()
		}
	case *pysource.Compare:
		return p.comparison(e)
	case *pysource.Name:
		if v, ok := p.values[e.ID]; ok {
			if _, read := p.read(e); !read {
				delete(p.values, e.ID) // a variable that is set to itself
				t := p.test(v)
				p.values[e.ID] = v
				return t
			}
		}
	case *pysource.Call:
		return p.calls(e)
	}
	if name, ok := p.read(e); ok {
		return leaf(name+" is set", name+" is not set")
	}
	return leaf(p.source(e), "not "+p.source(e))
}

// opposites maps the words of comparisons to those of their negations.
var opposites = map[string][2]string{
	"==": {"is", "is not"}, "!=": {"is not", "is"}, "is": {"is", "is not"}, "is not": {"is not", "is"},
	"in": {"is one of", "is none of"}, "not in": {"is none of", "is one of"},
	"<": {"<", ">="}, "<=": {"<=", ">"}, ">": {">", "<="}, ">=": {">=", "<"},
}

func (p *phrase) comparison(e *pysource.Compare) *test {
	if name, ok := e.Left.(*pysource.Name); ok && name.ID == "args" && strings.HasPrefix(e.Ops[0], "is") {
		if e.Ops[0] == "is" {
			return never
		}
		return always
	}
	if len(e.Ops) == 1 {
		op, left, right := e.Ops[0], p.operand(e.Left), p.operand(e.Comparators[0])
		words := opposites[op]
		if _, ok := text(e.Left); ok && strings.HasSuffix(op, "in") && !strings.HasPrefix(right, "(") && !strings.HasPrefix(right, "[") {
			words = [2]string{"contains", "does not contain"}
			left, right = right, left
			if op == "not in" {
				words[0], words[1] = words[1], words[0]
			}
		} else if _, isRead := p.read(e.Left); !isRead && strings.HasSuffix(op, "in") && left != p.source(e.Left) {
			words, left, right = [2]string{"contains", "does not contain"}, right, left
		}
		none := strings.NewReplacer(" is not None", " is given", " is None", " is not given").Replace
		return leaf(none(left+" "+words[0]+" "+right), none(left+" "+words[1]+" "+right))
	}
	s := p.operand(e.Left)
	for i, op := range e.Ops {
		s += " " + opposites[op][0] + " " + p.operand(e.Comparators[i])
	}
	return leaf(s, "not "+s)
}

// operand returns an expression as a value in words.
func (p *phrase) operand(e pysource.Expr) string {
	if name, ok := p.read(e); ok {
		return name
	}
	if name, ok := e.(*pysource.Name); ok {
		switch v := p.named(name.ID).(type) {
		case pyeval.Const, *pyeval.Sequence:
			return pyeval.Repr(v)
		}
	}
	return p.source(e)
}

// calls returns what a helper tests.
func (p *phrase) calls(e *pysource.Call) *test {
	if name, ok := p.read(e); ok {
		return leaf(name+" is set", name+" is not set")
	}
	name, ok := e.Func.(*pysource.Name)
	if !ok {
		return leaf(p.source(e), "not "+p.source(e))
	}
	if fn, ok := p.named(name.ID).(*pyeval.Function); ok && fn.Def != nil {
		return p.function(fn, p.constants(fn, e))
	}
	if len(e.Args) == 1 && name.ID == "bool" {
		return p.test(e.Args[0])
	}
	if generator, ok := anyOf(e); ok {
		if target, ok := generator.Generators[0].Target.(*pysource.Name); ok {
			var of []*test
			for _, name := range p.names(generator.Generators[0].Iter) {
				p.given[target.ID] = name
				of = append(of, p.test(generator.Elt))
			}
			delete(p.given, target.ID)
			return either(of...)
		}
	}
	return leaf(p.source(e), "not "+p.source(e))
}

// anyOf returns the generator in a call of any.
func anyOf(e *pysource.Call) (*pysource.Comprehension, bool) {
	name, ok := e.Func.(*pysource.Name)
	if !ok || name.ID != "any" || len(e.Args) != 1 {
		return nil, false
	}
	generator, ok := e.Args[0].(*pysource.Comprehension)
	return generator, ok && len(generator.Generators) == 1
}

// names returns the texts of an expression that is a list of texts, or its source.
func (p *phrase) names(e pysource.Expr) []string {
	var names []string
	switch e := e.(type) {
	case *pysource.Tuple:
		for _, item := range e.Elts {
			names = append(names, p.name(item))
		}
	case *pysource.Name:
		var items []pyeval.Value
		switch v := p.named(e.ID).(type) {
		case *pyeval.Sequence:
			items = v.Items
		case *pyeval.Mapping:
			items = v.Keys
		}
		for _, item := range items {
			if s, ok := pyeval.Str(item); ok {
				names = append(names, s)
			}
		}
	}
	if len(names) == 0 {
		return []string{"<" + p.source(e) + ">"}
	}
	return names
}

// converts are functions that do not change the meaning of a value.
var converts = map[string]bool{"bool": true, "int": true, "str": true, "float": true, "strip": true, "lower": true}

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
		if attr, ok := e.Func.(*pysource.Attribute); ok && converts[attr.Attr] && len(e.Args) == 0 {
			return p.read(attr.Value)
		}
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
