package syntax

import "strings"

// statement reads a compound statement, or the simple statements of a line.
func (p *parser) statement() []*Node {
	p.enter()
	defer p.leave()
	if s := p.compound(); s != nil {
		return []*Node{s}
	}
	return p.simpleLine()
}

// simpleLine reads statements between semicolons, up to the end of the line.
func (p *parser) simpleLine() []*Node {
	list := []*Node{p.simple()}
	for p.accept(";") && !p.at(newline) {
		list = append(list, p.simple())
	}
	p.wantKind(newline)
	return list
}

func (p *parser) lineEnds() bool { return p.at(newline) || p.at(endMarker) || p.op(";") }

// simple reads a simple statement.
func (p *parser) simple() *Node {
	start := p.peek().Start
	if p.word("type") {
		if s := p.typeAlias(start); s != nil {
			return s
		}
	}
	if !p.word("pass", "break", "continue", "return", "raise", "global", "nonlocal", "del", "assert", "import", "from") {
		return p.expressionStatement(start)
	}
	word := p.peek().text
	p.pos++
	n := Node{}
	switch word {
	case "pass":
		n.Kind = Pass
	case "break":
		n.Kind = Break
	case "continue":
		n.Kind = Continue
	case "return":
		n.Kind = Return
		if !p.lineEnds() {
			n.Value = p.starExpressions()
		}
	case "raise":
		n.Kind = Raise
		if !p.lineEnds() {
			n.Value = p.expression()
			if p.accept("from") {
				n.Right = p.expression()
			}
		}
	case "global", "nonlocal":
		n.Kind, n.Parts = Global, &Parts{Words: []string{p.name()}}
		if word == "nonlocal" {
			n.Kind = Nonlocal
		}
		for p.accept(",") {
			n.Words = append(n.Words, p.name())
		}
	case "del":
		n.Kind, n.Parts = Delete, &Parts{Targets: []*Node{p.bitOr()}}
		for p.accept(",") && !p.lineEnds() {
			n.Targets = append(n.Targets, p.bitOr())
		}
		for _, target := range n.Targets {
			p.checkTarget(target, "delete")
		}
	case "assert":
		n.Kind, n.Value = Assert, p.expression()
		if p.accept(",") {
			n.Right = p.expression()
		}
	case "import":
		n.Kind, n.List = Import, []*Node{p.alias(p.dottedName)}
		for p.accept(",") {
			n.List = append(n.List, p.alias(p.dottedName))
		}
	case "from":
		p.importFrom(&n)
	}
	return p.node(start, n)
}

// alias reads an imported name that may get another one.
func (p *parser) alias(name func() string) *Node {
	start := p.peek().Start
	a := Node{Kind: Alias, Name: name(), Parts: noParts}
	if p.accept("as") {
		a.Parts = &Parts{As: p.name()}
	}
	return p.node(start, a)
}

func (p *parser) importFrom(n *Node) {
	n.Kind, n.Parts = ImportFrom, &Parts{}
	for p.op(".", "...") {
		n.Level += len(p.peek().text)
		p.pos++
	}
	if n.Level == 0 || !p.word("import") {
		n.Name = p.dottedName()
	}
	p.want("import")
	start := p.peek().Start
	if p.accept("*") {
		n.List = []*Node{p.node(start, Node{Kind: Alias, Name: "*", Parts: noParts})}
		return
	}
	parenthesized := p.accept("(")
	n.List = []*Node{p.alias(p.name)}
	for p.accept(",") && !(parenthesized && p.op(")")) {
		n.List = append(n.List, p.alias(p.name))
	}
	if parenthesized {
		p.want(")")
	}
}

// typeAlias reads `type X = …`, or returns nil where type is a plain name.
func (p *parser) typeAlias(start int) *Node {
	if p.pos+2 >= len(p.tokens) || p.tokens[p.pos+1].kind != nameToken || keywords[p.tokens[p.pos+1].text] || !p.follows(2, "=") && !p.follows(2, "[") {
		return nil
	}
	p.pos++
	target := p.nameNode()
	p.skipTypeParams()
	p.want("=")
	return p.node(start, Node{Kind: TypeAlias, Target: target, Value: p.expression()})
}

// skipTypeParams reads type parameters in brackets, if there are any. They are not in the tree.
func (p *parser) skipTypeParams() {
	if !p.op("[") {
		return
	}
	for open := 0; ; p.pos++ {
		switch {
		case p.op("[", "(", "{"):
			open++
		case p.op("]", ")", "}"):
			open--
		}
		if open == 0 {
			p.pos++
			return
		}
	}
}

// expressionStatement reads an expression or an assignment.
func (p *parser) expressionStatement(start int) *Node {
	first := p.assigned()
	if !p.at(opToken) {
		return p.node(start, Node{Kind: ExprStmt, Value: first})
	}
	simple := first.Kind == Name || first.Kind == Attribute || first.Kind == Subscript
	text := p.peek().text
	operator, augments := strings.CutSuffix(text, "=")
	switch {
	case text == ":":
		if !simple {
			p.fail(start, "this cannot be annotated")
		}
		p.pos++
		n := Node{Kind: AnnAssign, Target: first, Parts: &Parts{Annotation: p.expression()}}
		if p.accept("=") {
			n.Value = p.assigned()
		}
		return p.node(start, n)
	case text == "=":
		list := []*Node{first}
		for p.accept("=") {
			list = append(list, p.assigned())
		}
		last := len(list) - 1
		for _, target := range list[:last] {
			p.checkTarget(target, "assign to")
		}
		return p.node(start, Node{Kind: Assign, Value: list[last], Parts: &Parts{Targets: list[:last]}})
	case augments && (precedence[operator] > 0 || operator == "**"):
		p.pos++
		if !simple {
			p.fail(start, "this is an illegal target for an augmented assignment")
		}
		return p.node(start, Node{Kind: AugAssign, Target: first, Name: operator, Value: p.assigned()})
	}
	return p.node(start, Node{Kind: ExprStmt, Value: first})
}

// assigned reads an expression on either side of an assignment.
func (p *parser) assigned() *Node {
	if p.word("yield") {
		return p.yield()
	}
	return p.starExpressions()
}

// checkTarget fails for an expression that cannot be assigned to.
func (p *parser) checkTarget(e *Node, verb string) {
	switch e.Kind {
	case Name, Attribute, Subscript:
	case Starred:
		p.checkTarget(e.Value, verb)
	case Tuple, List:
		for _, x := range e.List {
			p.checkTarget(x, verb)
		}
	default:
		p.fail(e.Start, "cannot %s this expression", verb)
	}
}

// compound reads a statement with blocks, or returns nil for a simple one.
func (p *parser) compound() *Node {
	start := p.peek().Start
	var decorators []*Node
	for p.accept("@") {
		decorators = append(decorators, p.namedExpression())
		p.wantKind(newline)
	}
	if decorators != nil {
		start = p.peek().Start
	}
	async := p.accept("async")
	var n *Node
	switch {
	case p.accept("def"):
		n = p.function(async)
	case p.word("class") && !async:
		n = p.class()
	case decorators != nil:
		p.unexpected("a function or a class after its decorators")
	case p.accept("for"):
		n = &Node{Kind: For, Target: p.targets()}
		p.want("in")
		n.Value = p.starExpressions()
		n.Parts = &Parts{Body: p.block(), Else: p.elseBlock()}
	case p.accept("with"):
		n = p.with()
	case async:
		p.unexpected("'def', 'for' or 'with'")
	case p.accept("if"):
		return p.ifStatement(start)
	case p.accept("while"):
		n = &Node{Kind: While, Value: p.namedExpression(), Parts: &Parts{Body: p.block(), Else: p.elseBlock()}}
	case p.accept("try"):
		n = p.try()
	case p.word("match"):
		n = p.match()
	}
	if n == nil {
		return nil
	}
	n.Async, n.Span = async, p.blockSpan(start)
	if decorators != nil {
		n.Decorators = decorators
	}
	return n
}

// blockSpan returns the span of a statement with blocks, which ends with the last token of their
// last line.
func (p *parser) blockSpan(start int) Span {
	last := p.pos - 1
	for p.tokens[last].kind == newline || p.tokens[last].kind == indentToken || p.tokens[last].kind == dedentToken {
		last--
	}
	return Span{start, p.tokens[last].End}
}

// block reads a colon and the statements that belong to it.
func (p *parser) block() []*Node {
	p.want(":")
	if !p.at(newline) {
		return p.simpleLine()
	}
	p.pos++
	p.wantKind(indentToken)
	var body []*Node
	for !p.at(dedentToken) && !p.at(endMarker) {
		body = append(body, p.statement()...)
	}
	p.wantKind(dedentToken)
	return body
}

func (p *parser) elseBlock() []*Node {
	if !p.accept("else") {
		return nil
	}
	return p.block()
}

// ifStatement reads an if, or an elif, which is an if in an else.
func (p *parser) ifStatement(start int) *Node {
	var chain []*Node
	for links := 0; ; {
		p.link(&links)
		s := &Node{Kind: If, Span: Span{Start: start}, Value: p.namedExpression(), Parts: &Parts{Body: p.block()}}
		chain = append(chain, s)
		if start = p.peek().Start; !p.accept("elif") {
			s.Else = p.elseBlock()
			break
		}
	}
	for i, s := range chain {
		s.Span = p.blockSpan(s.Start)
		if i > 0 {
			chain[i-1].Else = []*Node{s}
		}
	}
	return chain[0]
}

// targets reads the targets of a for, which end before `in`.
func (p *parser) targets() *Node {
	start := p.peek().Start
	t := p.starTarget()
	if p.op(",") {
		list := []*Node{t}
		for p.accept(",") && !p.word("in") && !p.op("=") {
			list = append(list, p.starTarget())
		}
		t = p.node(start, Node{Kind: Tuple, List: list})
	}
	p.checkTarget(t, "assign to")
	return t
}

func (p *parser) starTarget() *Node {
	if start := p.peek().Start; p.accept("*") {
		return p.node(start, Node{Kind: Starred, Value: p.bitOr()})
	}
	return p.bitOr()
}

func (p *parser) try() *Node {
	n := &Node{Kind: Try, Parts: &Parts{Body: p.block()}}
	for start := p.peek().Start; p.accept("except"); start = p.peek().Start {
		h := &Node{Kind: Handler, Parts: &Parts{}}
		p.accept("*")
		if !p.op(":") {
			first := p.peek().Start
			if h.Value = p.expression(); p.op(",") {
				p.fail(first, "multiple exception types must be parenthesized")
			}
			if p.accept("as") {
				h.As = p.name()
			}
		}
		h.Body = p.block()
		h.Span = p.blockSpan(start)
		n.Handlers = append(n.Handlers, h)
	}
	if len(n.Handlers) > 0 {
		n.Else = p.elseBlock()
	}
	if p.accept("finally") {
		n.Finally = p.block()
	} else if len(n.Handlers) == 0 {
		p.unexpected("'except' or 'finally'")
	}
	return n
}

func (p *parser) with() *Node {
	n := &Node{Kind: With}
	parenthesized := p.op("(") && p.attempt(func() bool {
		p.pos++
		n.List = p.withItems(true)
		return p.accept(")") && p.op(":")
	})
	if !parenthesized {
		n.List = p.withItems(false)
	}
	n.Parts = &Parts{Body: p.block()}
	return n
}

func (p *parser) withItems(parenthesized bool) []*Node {
	var items []*Node
	for {
		item := &Node{Kind: WithItem, Value: p.expression()}
		if p.accept("as") {
			item.Target = p.starTarget()
			p.checkTarget(item.Target, "assign to")
		}
		items = append(items, item)
		if !p.accept(",") || parenthesized && p.op(")") {
			return items
		}
	}
}

// match reads a match, or returns nil where match is a plain name.
func (p *parser) match() *Node {
	n := &Node{Kind: Match, Parts: &Parts{}}
	if !p.attempt(func() bool {
		p.pos++
		n.Value = p.commaList(p.starNamedExpression)
		p.want(":")
		p.wantKind(newline)
		p.wantKind(indentToken)
		return p.word("case")
	}) {
		return nil
	}
	for p.accept("case") {
		p.pattern = true
		c := &Node{Kind: Case, Value: p.commaList(p.starNamedExpression)}
		p.pattern = false
		if p.accept("if") {
			c.Right = p.namedExpression()
		}
		c.Parts = &Parts{Body: p.block()}
		n.List = append(n.List, c)
	}
	p.wantKind(dedentToken)
	return n
}

func (p *parser) function(async bool) *Node {
	n := &Node{Kind: FunctionDef, Name: p.name(), Parts: &Parts{}}
	p.skipTypeParams()
	p.want("(")
	n.Params = p.parameters(")", true)
	p.want(")")
	if p.accept("->") {
		n.Returns = p.commaList(p.expression)
	}
	n.Body = p.block()
	return n
}

func (p *parser) class() *Node {
	p.pos++
	n := &Node{Kind: ClassDef, Name: p.name(), Parts: &Parts{}}
	p.skipTypeParams()
	if p.accept("(") {
		n.List, n.Keywords = p.arguments()
		p.want(")")
	}
	n.Body = p.block()
	return n
}

// parameters reads the parameters of a function or a lambda, up to the operator that ends them.
func (p *parser) parameters(stop string, annotations bool) []*Node {
	var list []*Node
	defaults := false
	for next := Positional; !p.op(stop); {
		start, role := p.peek().Start, next
		switch {
		case p.accept("/"):
			if len(list) == 0 || role != Positional {
				p.fail(start, "unexpected / among the parameters")
			}
			for _, before := range list {
				before.Level = PositionalOnly
			}
			if p.op(stop) {
				return list
			}
			p.want(",")
			continue
		case p.accept("**"):
			role = VarKeywords
		case p.accept("*"):
			next = KeywordOnly
			if p.accept(",") {
				continue
			}
			role = VarArgs
		}
		n := p.parameter(role, annotations)
		if defaults = defaults || n.Value != nil; defaults && n.Value == nil && role == Positional {
			p.fail(start, "parameter without a default follows parameter with a default")
		}
		if list = append(list, n); !p.accept(",") {
			break
		}
	}
	return list
}

// parameter reads a parameter. Its span does not include the default.
func (p *parser) parameter(role int, annotations bool) *Node {
	start := p.peek().Start
	n := Node{Kind: Param, Name: p.name(), Parts: &Parts{Level: role}}
	if annotations && p.accept(":") {
		n.Annotation = p.starExpression()
	}
	param := p.node(start, n)
	if (role == Positional || role == KeywordOnly) && p.accept("=") {
		param.Value = p.expression()
	}
	return param
}
