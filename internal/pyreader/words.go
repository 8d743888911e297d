package pyreader

import (
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/pyreader/internal/eval"
	"github.com/primus-fl/primus/internal/pyreader/internal/syntax"
)

// wording puts a condition into words. Parameters and variables appear by name, helpers by what
// they return.
type wording struct {
	machine *eval.Machine
	inside  []*syntax.Node // the functions that are being put into words
}

// phrase puts the expressions of a function into words.
type phrase struct {
	*wording
	*names
	values map[string]*syntax.Node // variables that are set
}

func (w *wording) function(fn *eval.Function, given map[string]string) *test {
	if slices.Contains(w.inside, fn.Def) || w.machine.Spend(1) != nil {
		return leaf(fn.Name+" holds", fn.Name+" does not hold")
	}
	w.inside = append(w.inside, fn.Def)
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()
	if given == nil {
		given = map[string]string{}
	}
	if fn.IsLambda() {
		return (&phrase{w, &names{fn, given, nil}, map[string]*syntax.Node{}}).test(fn.Def.Returns)
	}
	n, body := namesOf(w.machine, fn, given)
	return (&phrase{w, n, map[string]*syntax.Node{}}).block(body, never)
}

// block returns when a block returns something true, with what comes after it where it goes on.
func (p *phrase) block(body []*syntax.Node, after *test) *test {
	if p.machine.Spend(1+len(body)) != nil {
		return never
	}
	for i, s := range body {
		rest := body[i+1:]
		switch s.Kind {
		case syntax.Assign:
			if name := s.Targets[0].Ident(); name != "" && p.values[name] == nil {
				p.values[name] = s.Value
			}
		case syntax.Return:
			if s.Value == nil {
				return never
			}
			return p.test(s.Value)
		case syntax.If:
			if returns(s.Body) || returns(s.Else) {
				rest := p.block(rest, after)
				return choose(p.test(s.Value), p.block(s.Body, rest), p.block(s.Else, rest))
			}
		case syntax.Try:
			if returns(s.Body) {
				return p.block(slices.Concat(s.Body, s.Else, rest), after)
			}
		case syntax.With:
			return p.block(slices.Concat(s.Body, rest), after)
		case syntax.For:
			if returns(s.Body) {
				each := p.source(s.Value) + ": " + p.block(s.Body, never).words(false)
				return join("or", leaf("for one of "+each, "for none of "+each), p.block(rest, after))
			}
		}
	}
	return after
}

// returns reports whether a block may return.
func returns(body []*syntax.Node) bool {
	found := false
	for _, s := range body {
		syntax.Walk(s, func(n *syntax.Node) bool {
			found = found || n.Kind == syntax.Return
			return !found && n.Kind != syntax.FunctionDef
		})
	}
	return found
}

func (p *phrase) source(n *syntax.Node) string { return p.fn.Module.File.Words(n) }

// plain returns the test of an expression by its source.
func (p *phrase) plain(e *syntax.Node) *test { return leaf(p.source(e), "not "+p.source(e)) }

// test returns when an expression is true.
func (p *phrase) test(e *syntax.Node) *test {
	name, read := p.read(e)
	switch e.Kind {
	case syntax.Constant:
		switch e.Const {
		case true:
			return always
		case false, nil:
			return never
		}
	case syntax.BoolOp:
		var of []*test
		for _, v := range e.List {
			of = append(of, p.test(v))
		}
		return join(e.Name, of...)
	case syntax.UnaryOp:
		if e.Name == "not" {
			return p.test(e.Value).not()
		}
	case syntax.Compare:
		return p.comparison(e)
	case syntax.Name:
		if v, ok := p.values[e.Name]; ok && !read {
			delete(p.values, e.Name) // a variable that is set to itself
			t := p.test(v)
			p.values[e.Name] = v
			return t
		}
	case syntax.Call:
		if !read {
			if t := p.call(e); t != nil {
				return t
			}
		}
	}
	if read {
		return leaf(name+" is set", name+" is not set")
	}
	return p.plain(e)
}

// opposites maps the words of comparisons to those of their negations.
var opposites = map[string][2]string{
	"==": {"is", "is not"}, "!=": {"is not", "is"}, "is": {"is", "is not"}, "is not": {"is not", "is"},
	"in": {"is one of", "is none of"}, "not in": {"is none of", "is one of"},
	"<": {"<", ">="}, "<=": {"<=", ">"}, ">": {">", "<="}, ">=": {">=", "<"},
}

func (p *phrase) comparison(e *syntax.Node) *test {
	op := e.Words[0]
	if e.Value.Ident() == "args" && strings.HasPrefix(op, "is") {
		if op == "is" {
			return never
		}
		return always
	}
	left := p.operand(e.Value)
	if len(e.Words) > 1 {
		for i, op := range e.Words {
			left += " " + opposites[op][0] + " " + p.operand(e.List[i])
		}
		return leaf(left, "not "+left)
	}
	right, words := p.operand(e.List[0]), opposites[op]
	_, isText := e.Value.Str()
	_, isRead := p.read(e.Value)
	if strings.HasSuffix(op, "in") {
		switch {
		case isText && !strings.HasPrefix(right, "(") && !strings.HasPrefix(right, "["):
			words, left, right = [2]string{"contains", "does not contain"}, right, left
			if op == "not in" {
				words[0], words[1] = words[1], words[0]
			}
		case !isRead && left != p.source(e.Value):
			words, left, right = [2]string{"contains", "does not contain"}, right, left
		}
	}
	none := strings.NewReplacer(" is not None", " is given", " is None", " is not given").Replace
	return leaf(none(left+" "+words[0]+" "+right), none(left+" "+words[1]+" "+right))
}

// operand returns an expression as a value in words.
func (p *phrase) operand(e *syntax.Node) string {
	if name, ok := p.read(e); ok {
		return name
	}
	if e.Kind == syntax.Name {
		if v := p.named(e.Name); eval.IsLiteral(v) {
			return eval.Repr(v)
		}
	}
	return p.source(e)
}

// call returns what a helper tests, nil if that is not known.
func (p *phrase) call(e *syntax.Node) *test {
	fn, ok := p.named(e.Value.Ident()).(*eval.Function)
	switch name := e.Value.Ident(); {
	case ok && name != "" && !fn.IsLambda():
		return p.function(fn, constants(fn, e))
	case name == "" || len(e.List) != 1:
		return nil
	case name == "bool":
		return p.test(e.List[0])
	case name == "any" && e.List[0].Is(syntax.GeneratorExp) && len(e.List[0].List) == 1:
		generator := e.List[0].List[0]
		if target := generator.Target.Ident(); target != "" {
			var of []*test
			for _, name := range p.items(generator.Value) {
				p.given[target] = name
				of = append(of, p.test(e.List[0].Value))
			}
			delete(p.given, target)
			return join("or", of...)
		}
	}
	return nil
}

// items returns the texts of an expression that is a list of texts, or its source.
func (p *phrase) items(e *syntax.Node) []string {
	var texts []string
	if e.Kind == syntax.Tuple {
		for _, item := range e.List {
			texts = append(texts, p.name(item))
		}
	}
	var values []eval.Value
	switch v := p.named(e.Ident()).(type) {
	case *eval.Sequence:
		values = v.Items
	case *eval.Mapping:
		values = v.Keys
	}
	for _, item := range values {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	if len(texts) == 0 {
		return []string{"<" + p.source(e) + ">"}
	}
	return texts
}

// converts are functions that do not change the meaning of a value.
var converts = []string{"bool", "int", "str", "float", "strip", "lower"}

// read returns the name of the parameter or variable that an expression reads.
func (p *phrase) read(e *syntax.Node) (string, bool) {
	switch e.Kind {
	case syntax.Name:
		if value, ok := p.values[e.Name]; ok {
			delete(p.values, e.Name) // a variable that is set to itself
			defer func() { p.values[e.Name] = value }()
			return p.read(value)
		}
	case syntax.BoolOp: // x or default
		if e.Name == "or" && len(e.List) == 2 && e.List[1].Kind == syntax.Constant {
			return p.read(e.List[0])
		}
	case syntax.Attribute:
		if e.Value.Ident() == "ctx" {
			return "the " + strings.ReplaceAll(e.Name, "_", " "), true
		}
	case syntax.Call:
		return p.readCall(e.Value, e.List)
	}
	return "", false
}

func (p *phrase) readCall(fn *syntax.Node, args []*syntax.Node) (string, bool) {
	if fn.Kind == syntax.Attribute && len(args) == 0 && slices.Contains(converts, fn.Name) {
		return p.read(fn.Value)
	}
	if len(args) == 0 {
		return "", false
	}
	if fn.Kind != syntax.Name {
		switch p.path(fn) {
		case "os.environ.get", "os.getenv":
			return "$" + p.name(args[0]), true
		case "importlib.util.find_spec":
			return "the package " + p.name(args[0]), true
		}
		return "", false
	}
	switch {
	case len(args) == 1 && slices.Contains(converts, fn.Name):
		return p.read(args[0])
	case len(args) == 1:
	case fn.Name == "get_param":
		return p.name(args[1]), true
	case fn.Name == "getattr" || fn.Name == "hasattr":
		if base := p.path(args[0]); base != "" {
			return base + "." + p.name(args[1]), true
		}
		if path, ok := p.parameters(args[0]); ok {
			return strings.TrimPrefix(path+"."+p.name(args[1]), "."), true
		}
	}
	return "", false
}
