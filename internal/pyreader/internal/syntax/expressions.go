package syntax

// starExpressions reads expressions between commas, with stars; more than one is a tuple.
func (p *parser) starExpressions() *Node { return p.commaList(p.starExpression) }

func (p *parser) commaList(item func() *Node) *Node {
	start := p.peek().Start
	first := item()
	if !p.op(",") && !(p.pattern && first.Kind == Starred) {
		return first
	}
	list := []*Node{first}
	for p.accept(",") && p.startsExpression() {
		list = append(list, item())
	}
	return p.node(start, Node{Kind: Tuple, List: list})
}

var expressionWords = words("None True False not lambda await")

// startsExpression reports whether an expression may begin with the next token.
func (p *parser) startsExpression() bool {
	switch t := p.peek(); t.kind {
	case nameToken:
		return expressionWords[t.text] || !keywords[t.text]
	case numberToken, stringToken:
		return true
	}
	return p.op("(", "[", "{", "-", "+", "~", "...", "*")
}

func (p *parser) starExpression() *Node {
	if start := p.peek().Start; p.accept("*") {
		return p.node(start, Node{Kind: Starred, Value: p.bitOr()})
	}
	return p.expression()
}

// starNamedExpression reads an element of a list, a set or a tuple in parentheses.
func (p *parser) starNamedExpression() *Node {
	if p.op("*") {
		return p.starExpression()
	}
	return p.namedExpression()
}

// namedExpression reads an expression that may be an assignment with := .
func (p *parser) namedExpression() *Node {
	if start := p.peek().Start; p.at(nameToken) && !keywords[p.peek().text] && p.follows(1, ":=") {
		target := p.nameNode()
		p.pos++
		return p.node(start, Node{Kind: NamedExpr, Target: target, Value: p.expression()})
	}
	return p.expression()
}

func (p *parser) yield() *Node {
	start := p.peek().Start
	n := Node{Kind: Yield}
	if p.pos++; p.accept("from") {
		n.Kind, n.Value = YieldFrom, p.expression()
	} else if p.startsExpression() {
		n.Value = p.starExpressions()
	}
	return p.node(start, n)
}

// expression reads a lambda, a conditional expression or one that binds more closely.
func (p *parser) expression() *Node {
	p.enter()
	defer p.leave()
	start := p.peek().Start
	if p.pattern {
		e := p.bitOr()
		if p.accept("as") {
			e = p.node(start, Node{Kind: NamedExpr, Value: e, Target: p.nameNode()})
		}
		return e
	}
	if p.accept("lambda") {
		parts := &Parts{Params: p.parameters(":", false)}
		p.want(":")
		parts.Returns = p.expression()
		return p.node(start, Node{Kind: Lambda, Parts: parts})
	}
	body := p.disjunction()
	if !p.accept("if") {
		return body
	}
	test := p.disjunction()
	p.want("else")
	return p.node(start, Node{Kind: IfExp, Value: test, List: []*Node{body, p.expression()}})
}

func (p *parser) disjunction() *Node { return p.logical("or", p.conjunction) }

func (p *parser) conjunction() *Node { return p.logical("and", p.inversion) }

func (p *parser) logical(op string, operand func() *Node) *Node {
	start := p.peek().Start
	list := []*Node{operand()}
	for p.accept(op) {
		list = append(list, operand())
	}
	if len(list) == 1 {
		return list[0]
	}
	return p.node(start, Node{Kind: BoolOp, Name: op, List: list})
}

func (p *parser) inversion() *Node {
	start := p.peek().Start
	if p.accept("not") {
		p.enter()
		defer p.leave()
		return p.node(start, Node{Kind: UnaryOp, Name: "not", Value: p.inversion()})
	}
	n := Node{Kind: Compare, Value: p.bitOr()}
	var ops []string
	for op := p.comparisonOp(); op != ""; op = p.comparisonOp() {
		ops, n.List = append(ops, op), append(n.List, p.bitOr())
	}
	if ops == nil {
		return n.Value
	}
	n.Parts = &Parts{Words: ops}
	return p.node(start, n)
}

// comparisonOp reads an operator that compares, or returns an empty text.
func (p *parser) comparisonOp() string {
	switch text := p.peek().text; {
	case p.op("==", "!=", "<", "<=", ">", ">="), p.word("in"):
		p.pos++
		return text
	case p.word("not") && p.follows(1, "in"):
		p.pos += 2
		return "not in"
	case p.accept("is"):
		if p.accept("not") {
			return "is not"
		}
		return "is"
	}
	return ""
}

// precedence says how closely binary operators bind.
var precedence = map[string]int{"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6, "@": 6}

func (p *parser) bitOr() *Node { return p.binary(1) }

// binary reads operators that bind at least as closely as a level.
func (p *parser) binary(level int) *Node {
	start := p.peek().Start
	left := p.factor()
	for links := 0; p.at(opToken); p.link(&links) {
		op := p.peek().text
		if precedence[op] < level {
			break
		}
		p.pos++
		left = p.node(start, Node{Kind: BinOp, Value: left, Name: op, Right: p.binary(precedence[op] + 1)})
	}
	return left
}

// factor reads a power with the signs before it.
func (p *parser) factor() *Node {
	start := p.peek().Start
	if op := p.peek().text; p.op("+", "-", "~") {
		p.enter()
		defer p.leave()
		p.pos++
		return p.node(start, Node{Kind: UnaryOp, Name: op, Value: p.factor()})
	}
	awaits := p.accept("await")
	base := p.primary()
	if awaits {
		base = p.node(start, Node{Kind: Await, Value: base})
	}
	if !p.accept("**") {
		return base
	}
	p.enter()
	defer p.leave()
	return p.node(start, Node{Kind: BinOp, Value: base, Name: "**", Right: p.factor()})
}

// primary reads an atom with the attributes, calls and subscripts that follow it.
func (p *parser) primary() *Node {
	start := p.peek().Start
	e := p.atom()
	for links := 0; ; p.link(&links) {
		switch {
		case p.accept("."):
			e = p.node(start, Node{Kind: Attribute, Value: e, Name: p.name()})
		case p.accept("("):
			args, keywords := p.arguments()
			p.want(")")
			parts := noParts
			if keywords != nil {
				parts = &Parts{Keywords: keywords}
			}
			e = p.node(start, Node{Kind: Call, Value: e, List: args, Parts: parts})
		case p.accept("["):
			index := p.slices()
			p.want("]")
			e = p.node(start, Node{Kind: Subscript, Value: e, Right: index})
		default:
			return e
		}
	}
}

// slices reads the content of the brackets of a subscript.
func (p *parser) slices() *Node {
	start := p.peek().Start
	first := p.slice()
	if first.Kind != Starred && !p.op(",") {
		return first
	}
	list := []*Node{first}
	for p.accept(",") && !p.op("]") {
		list = append(list, p.slice())
	}
	return p.node(start, Node{Kind: Tuple, List: list})
}

func (p *parser) slice() *Node {
	start := p.peek().Start
	parts := make([]*Node, 3)
	if !p.op(":") {
		if parts[0] = p.starNamedExpression(); !p.op(":") {
			return parts[0]
		}
	}
	p.want(":")
	if !p.op(":", "]", ",") {
		parts[1] = p.expression()
	}
	if p.accept(":") && !p.op("]", ",") {
		parts[2] = p.expression()
	}
	return p.node(start, Node{Kind: Slice, List: parts})
}

// arguments reads the arguments of a call up to its closing parenthesis.
func (p *parser) arguments() (args, named []*Node) {
	open := p.pos - 1
	for !p.op(")") {
		start := p.peek().Start
		switch {
		case p.accept("**"):
			k := Node{Kind: Keyword, Value: p.expression()}
			named = append(named, p.node(start, k))
		case p.accept("*"):
			s := Node{Kind: Starred, Value: p.expression()}
			args = append(args, p.node(start, s))
		case p.at(nameToken) && p.follows(1, "="):
			k := Node{Kind: Keyword, Name: p.name()}
			p.pos++
			k.Value = p.expression()
			named = append(named, p.node(start, k))
		default:
			e := p.namedExpression()
			if p.word("for", "async") { // a generator shares the parentheses of the call
				e = &Node{Kind: GeneratorExp, Value: e, List: p.generators()}
				if len(args)+len(named) > 0 || !p.op(")") {
					p.fail(start, "generator expression must be parenthesized")
				}
				e.Span = Span{p.tokens[open].Start, p.peek().End}
			} else if len(named) > 0 {
				p.fail(start, "positional argument follows keyword argument")
			}
			args = append(args, e)
		}
		if !p.accept(",") {
			break
		}
	}
	return args, named
}

func (p *parser) generators() []*Node {
	var list []*Node
	for p.word("for", "async") {
		g := &Node{Kind: Generator, Async: p.accept("async")}
		p.want("for")
		g.Target = p.targets()
		p.want("in")
		g.Value = p.disjunction()
		for p.accept("if") {
			if p.follows(1, ":=") {
				g.List = append(g.List, p.namedExpression())
			} else {
				g.List = append(g.List, p.disjunction())
			}
		}
		list = append(list, g)
	}
	return list
}

// atom reads a name, a literal, or what stands in brackets.
func (p *parser) atom() *Node {
	t := p.peek()
	n := &Node{Kind: Constant, Span: t.Span}
	switch {
	case t.kind == stringToken:
		return p.strings()
	case t.kind == numberToken:
		n.Const = p.number(t)
	case p.word("None"):
	case p.word("True", "False"):
		n.Const = t.text == "True"
	case p.op("..."):
		n.Const = Ellipsis{}
	case p.op("("):
		return p.display(")", Tuple, GeneratorExp)
	case p.op("["):
		return p.display("]", List, ListComp)
	case p.op("{"):
		return p.display("}", Set, SetComp)
	case t.kind == nameToken:
		return p.nameNode()
	default:
		p.unexpected("an expression")
	}
	p.pos++
	return n
}

// display reads what stands in brackets: elements or a comprehension. In braces it may be a dict.
// In parentheses it may be a single expression, which keeps its own span.
func (p *parser) display(stop string, kind, comprehension Kind) *Node {
	start := p.peek().Start
	p.pos++
	n := Node{Kind: kind}
	if stop == "}" && (p.op("}") || p.op("**")) {
		return p.dict(start, nil)
	}
	comma := false
	for !p.op(stop) {
		var e *Node
		if stop == ")" && len(n.List) == 0 && p.word("yield") {
			e = p.yield()
		} else {
			e = p.starNamedExpression()
		}
		if len(n.List) == 0 {
			if stop == "}" && p.op(":") {
				return p.dict(start, e)
			}
			if p.word("for", "async") {
				n = Node{Kind: comprehension, Value: e, List: p.generators()}
				comma = true
				break
			}
		}
		n.List = append(n.List, e)
		if !p.accept(",") {
			break
		}
		comma = true
	}
	p.want(stop)
	if stop == ")" && !comma && len(n.List) == 1 {
		if e := n.List[0]; e.Kind != Starred {
			return e
		}
		p.fail(n.List[0].Start, "cannot use starred expression here")
	}
	return p.node(start, n)
}

// dict reads a dict whose first key was read; nil when it begins with ** or is empty.
func (p *parser) dict(start int, key *Node) *Node {
	d := Node{Kind: Dict, Parts: &Parts{}}
	for key != nil || !p.op("}") {
		if key == nil && p.accept("**") {
			d.Keys, d.List = append(d.Keys, nil), append(d.List, p.bitOr())
		} else {
			if key == nil {
				key = p.expression()
			}
			p.want(":")
			value := p.expression()
			if len(d.Keys) == 0 && p.word("for", "async") {
				d = Node{Kind: DictComp, Value: key, Right: value, List: p.generators()}
				break
			}
			d.Keys, d.List = append(d.Keys, key), append(d.List, value)
		}
		if key = nil; !p.accept(",") {
			break
		}
	}
	p.want("}")
	return p.node(start, d)
}
