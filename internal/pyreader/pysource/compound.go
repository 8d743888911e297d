package pysource

// compound reads a statement with blocks, or returns nil for a simple one.
func (p *parser) compound(t *Token) Stmt {
	start := t.Start
	switch t.Text {
	case "if":
		return p.ifStatement(start)
	case "while":
		p.pos++
		s := &While{Test: p.namedExpression()}
		s.Body = p.block()
		s.Orelse = p.elseBlock()
		s.Span = p.blockSpan(start)
		return s
	case "for":
		return p.forStatement(start, false)
	case "try":
		return p.tryStatement(start)
	case "with":
		return p.withStatement(start, false)
	case "def":
		return p.function(start, nil, false)
	case "class":
		return p.class(start, nil)
	case "async":
		return p.async(start, nil)
	case "match":
		return p.matchStatement(start)
	}
	return nil
}

func (p *parser) async(start int, decorators []Expr) Stmt {
	p.pos++
	switch {
	case p.word("def"):
		return p.function(start, decorators, true)
	case p.word("for") && decorators == nil:
		return p.forStatement(start, true)
	case p.word("with") && decorators == nil:
		return p.withStatement(start, true)
	}
	p.unexpected("'def', 'for' or 'with'")
	return nil
}

// blockSpan returns the span of a statement with blocks, which ends with the last token of their
// last line.
func (p *parser) blockSpan(start int) Span {
	last := p.pos - 1
	for p.tokens[last].Kind == Newline || p.tokens[last].Kind == Indent || p.tokens[last].Kind == Dedent {
		last--
	}
	return Span{start, p.tokens[last].End}
}

// block reads a colon and the statements that belong to it.
func (p *parser) block() []Stmt {
	p.wantOp(":")
	if !p.at(Newline) {
		return p.simpleLine()
	}
	p.pos++
	p.want(Indent)
	var body []Stmt
	for !p.at(Dedent) && !p.at(EndMarker) {
		body = append(body, p.statement()...)
	}
	p.want(Dedent)
	return body
}

func (p *parser) elseBlock() []Stmt {
	if !p.acceptWord("else") {
		return nil
	}
	return p.block()
}

// ifStatement reads an if, or an elif, which is an if in an else.
func (p *parser) ifStatement(start int) Stmt {
	var chain []*If
	for {
		p.pos++
		s := &If{Test: p.namedExpression(), Body: p.block()}
		s.Start = start
		chain = append(chain, s)
		if !p.word("elif") {
			s.Orelse = p.elseBlock()
			break
		}
		start = p.peek().Start
	}
	for i, s := range chain {
		s.Span = p.blockSpan(s.Start)
		if i > 0 {
			chain[i-1].Orelse = []Stmt{s}
		}
	}
	return chain[0]
}

func (p *parser) forStatement(start int, async bool) Stmt {
	p.pos++
	s := &For{Async: async, Target: p.targets()}
	p.wantWord("in")
	s.Iter = p.starExpressions()
	s.Body = p.block()
	s.Orelse = p.elseBlock()
	s.Span = p.blockSpan(start)
	return s
}

// targets reads the targets of a for, which end before `in`.
func (p *parser) targets() Expr {
	start := p.peek().Start
	first := p.starTarget()
	if !p.op(",") {
		p.checkTarget(first, "assign to")
		return first
	}
	list := []Expr{first}
	for p.acceptOp(",") && !p.word("in") && !p.op("=") {
		list = append(list, p.starTarget())
	}
	t := &Tuple{exprNode{p.from(start)}, list}
	p.checkTarget(t, "assign to")
	return t
}

func (p *parser) starTarget() Expr {
	if start := p.peek().Start; p.acceptOp("*") {
		s := &Starred{Value: p.bitOr()}
		s.Span = p.from(start)
		return s
	}
	return p.bitOr()
}

func (p *parser) tryStatement(start int) Stmt {
	p.pos++
	s := &Try{Body: p.block()}
	for p.word("except") {
		s.Handlers = append(s.Handlers, p.handler(s))
	}
	if len(s.Handlers) > 0 {
		s.Orelse = p.elseBlock()
	}
	if p.acceptWord("finally") {
		s.Finalbody = p.block()
	} else if len(s.Handlers) == 0 {
		p.unexpected("'except' or 'finally'")
	}
	s.Span = p.blockSpan(start)
	return s
}

func (p *parser) handler(s *Try) *ExceptHandler {
	h := &ExceptHandler{}
	start := p.next().Start
	star := p.acceptOp("*")
	if len(s.Handlers) > 0 && star != s.Star {
		p.unexpected("one kind of handlers, either except or except*")
	}
	s.Star = star
	if !p.op(":") {
		first := p.peek().Start
		h.Type = p.expression()
		switch {
		case p.acceptWord("as"):
			h.Name = p.name()
		case p.op(","):
			p.fail(first, "multiple exception types must be parenthesized")
		}
	}
	h.Body = p.block()
	h.Span = p.blockSpan(start)
	return h
}

func (p *parser) withStatement(start int, async bool) Stmt {
	p.pos++
	s := &With{Async: async}
	parenthesized := p.op("(") && p.attempt(func() bool {
		p.pos++
		s.Items = p.withItems(true)
		return p.acceptOp(")") && p.op(":")
	})
	if !parenthesized {
		s.Items = p.withItems(false)
	}
	s.Body = p.block()
	s.Span = p.blockSpan(start)
	return s
}

func (p *parser) withItems(parenthesized bool) []*WithItem {
	var items []*WithItem
	for {
		item := &WithItem{ContextExpr: p.expression()}
		if p.acceptWord("as") {
			item.OptionalVars = p.starTarget()
			p.checkTarget(item.OptionalVars, "assign to")
		}
		items = append(items, item)
		if !p.acceptOp(",") || parenthesized && p.op(")") {
			return items
		}
	}
}

func (p *parser) decorated() Stmt {
	var decorators []Expr
	for p.acceptOp("@") {
		decorators = append(decorators, p.namedExpression())
		p.want(Newline)
	}
	start := p.peek().Start
	switch {
	case p.word("def"):
		return p.function(start, decorators, false)
	case p.word("class"):
		return p.class(start, decorators)
	case p.word("async"):
		return p.async(start, decorators)
	}
	p.unexpected("a function or a class after its decorators")
	return nil
}

func (p *parser) function(start int, decorators []Expr, async bool) Stmt {
	p.pos++
	s := &FunctionDef{Async: async, Name: p.name(), Decorators: decorators}
	s.TypeParams = p.typeParams()
	p.wantOp("(")
	s.Args = p.parameters(")", true)
	p.wantOp(")")
	if p.acceptOp("->") {
		s.Returns = p.expressionList()
	}
	s.Body = p.block()
	s.Span = p.blockSpan(start)
	return s
}

func (p *parser) class(start int, decorators []Expr) Stmt {
	p.pos++
	s := &ClassDef{Name: p.name(), Decorators: decorators}
	s.TypeParams = p.typeParams()
	if p.acceptOp("(") {
		s.Bases, s.Keywords = p.arguments()
		p.wantOp(")")
	}
	s.Body = p.block()
	s.Span = p.blockSpan(start)
	return s
}

// typeParams reads type parameters in brackets, if there are any.
func (p *parser) typeParams() []Expr {
	if !p.acceptOp("[") {
		return nil
	}
	var list []Expr
	for !p.op("]") {
		start := p.peek().Start
		t := &TypeParam{Kind: "TypeVar"}
		switch {
		case p.acceptOp("*"):
			t.Kind = "TypeVarTuple"
		case p.acceptOp("**"):
			t.Kind = "ParamSpec"
		}
		t.Name = p.name()
		if t.Kind == "TypeVar" && p.acceptOp(":") {
			t.Bound = p.expression()
		}
		if p.acceptOp("=") {
			t.Default = p.starExpression()
		}
		t.Span = p.from(start)
		list = append(list, t)
		if !p.acceptOp(",") {
			break
		}
	}
	if len(list) == 0 {
		p.unexpected("a type parameter")
	}
	p.wantOp("]")
	return list
}

// parameters reads the parameters of a function or a lambda, up to the operator that ends them.
func (p *parser) parameters(stop string, annotations bool) *Arguments {
	a := &Arguments{}
	keywordOnly := false
	for !p.op(stop) {
		start := p.peek().Start
		switch {
		case p.acceptOp("**"):
			a.Kwarg = p.parameter(annotations, false)
			p.acceptOp(",")
			if !p.op(stop) {
				p.unexpected("'" + stop + "'")
			}
			return a
		case p.op("*"):
			p.pos++
			if keywordOnly {
				p.fail(start, "* argument may appear only once")
			}
			keywordOnly = true
			if !p.op(",") {
				a.Vararg = p.parameter(annotations, true)
			} else if p.follows(1, OpToken, stop) || p.follows(1, OpToken, "**") {
				p.fail(start, "named arguments must follow bare *")
			}
		case p.op("/"):
			p.pos++
			if len(a.Args) == 0 || a.Posonlyargs != nil || keywordOnly {
				p.fail(start, "unexpected / among the parameters")
			}
			a.Posonlyargs, a.Args = a.Args, nil
		default:
			p.plainParameter(a, keywordOnly, annotations)
		}
		if !p.acceptOp(",") {
			break
		}
	}
	return a
}

func (p *parser) plainParameter(a *Arguments, keywordOnly, annotations bool) {
	start := p.peek().Start
	arg := p.parameter(annotations, false)
	var value Expr
	if p.acceptOp("=") {
		value = p.expression()
	}
	switch {
	case keywordOnly:
		a.Kwonlyargs = append(a.Kwonlyargs, arg)
		a.KwDefaults = append(a.KwDefaults, value)
		return
	case value != nil:
		a.Defaults = append(a.Defaults, value)
	case len(a.Defaults) > 0:
		p.fail(start, "parameter without a default follows parameter with a default")
	}
	a.Args = append(a.Args, arg)
}

func (p *parser) parameter(annotations, star bool) *Arg {
	start := p.peek().Start
	a := &Arg{Name: p.name()}
	if annotations && p.acceptOp(":") {
		if star {
			a.Annotation = p.starExpression()
		} else {
			a.Annotation = p.expression()
		}
	}
	a.Span = p.from(start)
	return a
}
