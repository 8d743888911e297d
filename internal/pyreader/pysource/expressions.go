package pysource

// starExpressions reads expressions between commas, with stars; more than one is a tuple.
func (p *parser) starExpressions() Expr { return p.commaList(p.starExpression) }

// expressionList is starExpressions without stars.
func (p *parser) expressionList() Expr { return p.commaList(p.expression) }

func (p *parser) commaList(item func() Expr) Expr {
	start := p.peek().Start
	first := item()
	if !p.op(",") {
		return first
	}
	list := []Expr{first}
	for p.acceptOp(",") && p.startsExpression() {
		list = append(list, item())
	}
	return &Tuple{exprNode{p.from(start)}, list}
}

// startsExpression reports whether an expression may begin with the next token.
func (p *parser) startsExpression() bool {
	t := p.peek()
	switch t.Kind {
	case NameToken:
		switch t.Text {
		case "None", "True", "False", "not", "lambda", "await":
			return true
		}
		return !isKeyword(t.Text)
	case NumberToken, StringToken:
		return true
	case OpToken:
		switch t.Text {
		case "(", "[", "{", "-", "+", "~", "...", "*":
			return true
		}
	}
	return false
}

func (p *parser) starExpression() Expr {
	if start := p.peek().Start; p.acceptOp("*") {
		s := &Starred{Value: p.bitOr()}
		s.Span = p.from(start)
		return s
	}
	return p.expression()
}

// starNamedExpression reads an element of a list, a set or a tuple in parentheses.
func (p *parser) starNamedExpression() Expr {
	if p.op("*") {
		return p.starExpression()
	}
	return p.namedExpression()
}

// namedExpression reads an expression that may be an assignment with := .
func (p *parser) namedExpression() Expr {
	if p.at(NameToken) && !isKeyword(p.peek().Text) && p.follows(1, OpToken, ":=") {
		start := p.peek().Start
		n := &NamedExpr{Target: p.nameExpr()}
		p.pos++
		n.Value = p.expression()
		n.Span = p.from(start)
		return n
	}
	return p.expression()
}

func (p *parser) yield() Expr {
	start := p.next().Start
	if p.acceptWord("from") {
		y := &YieldFrom{Value: p.expression()}
		y.Span = p.from(start)
		return y
	}
	y := &Yield{}
	if p.startsExpression() {
		y.Value = p.starExpressions()
	}
	y.Span = p.from(start)
	return y
}

// expression reads a lambda, a conditional expression or one that binds more closely.
func (p *parser) expression() Expr {
	p.enter()
	defer p.leave()
	start := p.peek().Start
	if p.acceptWord("lambda") {
		l := &Lambda{Args: p.parameters(":", false)}
		p.wantOp(":")
		l.Body = p.expression()
		l.Span = p.from(start)
		return l
	}
	body := p.disjunction()
	if !p.acceptWord("if") {
		return body
	}
	e := &IfExp{Body: body, Test: p.disjunction()}
	p.wantWord("else")
	e.Orelse = p.expression()
	e.Span = p.from(start)
	return e
}

func (p *parser) disjunction() Expr { return p.logical("or", p.conjunction) }

func (p *parser) conjunction() Expr { return p.logical("and", p.inversion) }

func (p *parser) logical(op string, operand func() Expr) Expr {
	start := p.peek().Start
	first := operand()
	if !p.word(op) {
		return first
	}
	b := &BoolOp{Op: op, Values: []Expr{first}}
	for p.acceptWord(op) {
		b.Values = append(b.Values, operand())
	}
	b.Span = p.from(start)
	return b
}

func (p *parser) inversion() Expr {
	if !p.word("not") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	start := p.next().Start
	u := &UnaryOp{Op: "not", Operand: p.inversion()}
	u.Span = p.from(start)
	return u
}

func (p *parser) comparison() Expr {
	start := p.peek().Start
	left := p.bitOr()
	op := p.comparisonOp()
	if op == "" {
		return left
	}
	c := &Compare{Left: left}
	for ; op != ""; op = p.comparisonOp() {
		c.Ops = append(c.Ops, op)
		c.Comparators = append(c.Comparators, p.bitOr())
	}
	c.Span = p.from(start)
	return c
}

// comparisonOp reads an operator that compares, or returns an empty text.
func (p *parser) comparisonOp() string {
	switch {
	case p.op("==", "!=", "<", "<=", ">", ">="):
		return p.next().Text
	case p.acceptWord("in"):
		return "in"
	case p.word("not") && p.follows(1, NameToken, "in"):
		p.pos += 2
		return "not in"
	case p.acceptWord("is"):
		if p.acceptWord("not") {
			return "is not"
		}
		return "is"
	}
	return ""
}

// binary lists the binary operators, those that bind least first.
var binary = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"}}

func (p *parser) bitOr() Expr { return p.binary(0) }

func (p *parser) binary(level int) Expr {
	if level == len(binary) {
		return p.factor()
	}
	start := p.peek().Start
	left := p.binary(level + 1)
	for p.op(binary[level]...) {
		op := p.next().Text
		right := p.binary(level + 1)
		left = &BinOp{exprNode{p.from(start)}, left, op, right}
	}
	return left
}

func (p *parser) factor() Expr {
	if !p.op("+", "-", "~") {
		return p.power()
	}
	p.enter()
	defer p.leave()
	t := p.next()
	u := &UnaryOp{Op: t.Text, Operand: p.factor()}
	u.Span = p.from(t.Start)
	return u
}

func (p *parser) power() Expr {
	start := p.peek().Start
	base := p.await()
	if !p.acceptOp("**") {
		return base
	}
	p.enter()
	defer p.leave()
	exponent := p.factor()
	return &BinOp{exprNode{p.from(start)}, base, "**", exponent}
}

func (p *parser) await() Expr {
	start := p.peek().Start
	if !p.acceptWord("await") {
		return p.primary()
	}
	a := &Await{Value: p.primary()}
	a.Span = p.from(start)
	return a
}

// primary reads an atom with the attributes, calls and subscripts that follow it.
func (p *parser) primary() Expr {
	start := p.peek().Start
	e := p.atom()
	for {
		switch {
		case p.acceptOp("."):
			name := p.name()
			e = &Attribute{exprNode{p.from(start)}, e, name}
		case p.acceptOp("("):
			c := &Call{Func: e}
			c.Args, c.Keywords = p.arguments()
			p.wantOp(")")
			c.Span = p.from(start)
			e = c
		case p.acceptOp("["):
			s := &Subscript{Value: e, Slice: p.slices()}
			p.wantOp("]")
			s.Span = p.from(start)
			e = s
		default:
			return e
		}
	}
}

// slices reads the content of the brackets of a subscript.
func (p *parser) slices() Expr {
	start := p.peek().Start
	first := p.slice()
	if _, starred := first.(*Starred); !starred && !p.op(",") {
		return first
	}
	list := []Expr{first}
	for p.acceptOp(",") && !p.op("]") {
		list = append(list, p.slice())
	}
	return &Tuple{exprNode{p.from(start)}, list}
}

func (p *parser) slice() Expr {
	start := p.peek().Start
	var lower Expr
	if !p.op(":") {
		lower = p.starNamedExpression()
		if !p.op(":") {
			return lower
		}
	}
	s := &Slice{Lower: lower}
	p.wantOp(":")
	if !p.op(":", "]", ",") {
		s.Upper = p.expression()
	}
	if p.acceptOp(":") && !p.op("]", ",") {
		s.Step = p.expression()
	}
	s.Span = p.from(start)
	return s
}

// arguments reads the arguments of a call up to its closing parenthesis.
func (p *parser) arguments() (args []Expr, keywords []*Keyword) {
	for !p.op(")") {
		start, before := p.peek().Start, p.pos-1
		switch {
		case p.acceptOp("**"):
			k := &Keyword{Value: p.expression()}
			k.Span = p.from(start)
			keywords = append(keywords, k)
		case p.acceptOp("*"):
			s := &Starred{Value: p.expression()}
			s.Span = p.from(start)
			args = append(args, s)
		case p.at(NameToken) && p.follows(1, OpToken, "="):
			k := &Keyword{Name: p.name()}
			p.pos++
			k.Value = p.expression()
			k.Span = p.from(start)
			keywords = append(keywords, k)
		default:
			e := p.namedExpression()
			if p.word("for") || p.word("async") {
				e = p.soleGenerator(before, e, len(args)+len(keywords) == 0)
			} else if len(keywords) > 0 {
				p.fail(start, "positional argument follows keyword argument")
			}
			args = append(args, e)
		}
		if !p.acceptOp(",") {
			break
		}
	}
	return args, keywords
}

// soleGenerator reads a generator that is the only argument of a call, whose parentheses it shares.
func (p *parser) soleGenerator(open int, elt Expr, first bool) Expr {
	c := &Comprehension{Kind: "GeneratorExp", Elt: elt, Generators: p.generators()}
	if !first || !p.op(")") {
		p.fail(elt.Range().Start, "generator expression must be parenthesized")
	}
	c.Span = Span{p.tokens[open].Start, p.peek().End}
	return c
}

func (p *parser) generators() []*Generator {
	var list []*Generator
	for p.word("for") || p.word("async") {
		g := &Generator{Async: p.acceptWord("async")}
		p.wantWord("for")
		g.Target = p.targets()
		p.wantWord("in")
		g.Iter = p.disjunction()
		for p.acceptWord("if") {
			g.Ifs = append(g.Ifs, p.conditionInGenerator())
		}
		list = append(list, g)
	}
	return list
}

func (p *parser) conditionInGenerator() Expr {
	if p.at(NameToken) && p.follows(1, OpToken, ":=") {
		return p.namedExpression()
	}
	return p.disjunction()
}
