package pysource

// matchStatement reads a match, or returns nil where match is a plain name.
func (p *parser) matchStatement(start int) Stmt {
	s := &Match{}
	if !p.attempt(func() bool {
		p.pos++
		s.Subject = p.matchSubject()
		if !p.acceptOp(":") || !p.at(Newline) {
			return false
		}
		p.pos++
		if !p.at(Indent) {
			return false
		}
		p.pos++
		return p.word("case")
	}) {
		return nil
	}
	for p.word("case") {
		s.Cases = append(s.Cases, p.matchCase())
	}
	p.want(Dedent)
	s.Span = p.blockSpan(start)
	return s
}

func (p *parser) matchSubject() Expr {
	start := p.peek().Start
	first := p.starNamedExpression()
	if !p.op(",") {
		if _, starred := first.(*Starred); starred {
			p.unexpected("','")
		}
		return first
	}
	list := []Expr{first}
	for p.acceptOp(",") && p.startsExpression() {
		list = append(list, p.starNamedExpression())
	}
	return &Tuple{exprNode{p.from(start)}, list}
}

func (p *parser) matchCase() *MatchCase {
	p.pos++
	c := &MatchCase{Pattern: p.openPattern()}
	if p.acceptWord("if") {
		c.Guard = p.namedExpression()
	}
	c.Body = p.block()
	return c
}

// openPattern reads the pattern of a case, which may be a sequence without brackets.
func (p *parser) openPattern() Pattern {
	start := p.peek().Start
	first := p.maybeStarPattern()
	_, star := first.(*MatchStar)
	if !p.op(",") && !star {
		return first
	}
	list := []Pattern{first}
	for p.acceptOp(",") && !p.op(":") && !p.word("if") {
		list = append(list, p.maybeStarPattern())
	}
	return &MatchSequence{patternNode{p.from(start)}, list}
}

// capture returns the name that a pattern binds, empty for the wildcard.
func (p *parser) capture() string {
	if name := p.name(); name != "_" {
		return name
	}
	return ""
}

func (p *parser) maybeStarPattern() Pattern {
	if start := p.peek().Start; p.acceptOp("*") {
		name := p.capture()
		return &MatchStar{patternNode{p.from(start)}, name}
	}
	return p.asPattern()
}

func (p *parser) asPattern() Pattern {
	p.enter()
	defer p.leave()
	start := p.peek().Start
	first := p.closedPattern()
	if p.op("|") {
		list := []Pattern{first}
		for p.acceptOp("|") {
			list = append(list, p.closedPattern())
		}
		first = &MatchOr{patternNode{p.from(start)}, list}
	}
	if p.acceptWord("as") {
		name := p.name()
		return &MatchAs{patternNode{p.from(start)}, first, name}
	}
	return first
}

func (p *parser) closedPattern() Pattern {
	t := p.peek()
	start := t.Start
	switch {
	case t.Kind == NumberToken, p.op("-"), t.Kind == StringToken:
		value := p.literalValue()
		return &MatchValue{patternNode{p.from(start)}, value}
	case p.word("None"), p.word("True"), p.word("False"):
		c, _ := p.atom().(*Constant)
		return &MatchSingleton{patternNode{p.from(start)}, c.Value}
	case t.Kind == NameToken:
		return p.namePattern(start)
	case p.op("("), p.op("["):
		return p.sequencePattern(start)
	case p.op("{"):
		return p.mappingPattern(start)
	}
	p.unexpected("a pattern")
	return nil
}

// literalValue reads a number, a sum of a real and an imaginary number, or a string.
func (p *parser) literalValue() Expr {
	if p.at(StringToken) {
		return p.strings()
	}
	start := p.peek().Start
	signed := func() Expr {
		at := p.peek().Start
		if !p.acceptOp("-") {
			t := p.want(NumberToken)
			return &Constant{exprNode{t.Span}, p.numberValue(t)}
		}
		t := p.want(NumberToken)
		return &UnaryOp{exprNode{p.from(at)}, "-", &Constant{exprNode{t.Span}, p.numberValue(t)}}
	}
	left := signed()
	if !p.op("+", "-") {
		return left
	}
	op := p.next().Text
	right := signed()
	return &BinOp{exprNode{p.from(start)}, left, op, right}
}

// dotted reads a name with attributes.
func (p *parser) dotted(start int) Expr {
	e := p.nameExpr()
	for p.acceptOp(".") {
		name := p.name()
		e = &Attribute{exprNode{p.from(start)}, e, name}
	}
	return e
}

// namePattern reads a name to bind, a value with a dotted name, or a class.
func (p *parser) namePattern(start int) Pattern {
	e := p.dotted(start)
	if p.acceptOp("(") {
		return p.classPattern(start, e)
	}
	if n, plain := e.(*Name); plain {
		m := &MatchAs{patternNode: patternNode{p.from(start)}, Name: n.ID}
		if n.ID == "_" {
			m.Name = ""
		}
		return m
	}
	return &MatchValue{patternNode{p.from(start)}, e}
}

func (p *parser) classPattern(start int, class Expr) Pattern {
	m := &MatchClass{Cls: class}
	for !p.op(")") {
		if p.at(NameToken) && p.follows(1, OpToken, "=") {
			m.KwdAttrs = append(m.KwdAttrs, p.name())
			p.pos++
			m.KwdPatterns = append(m.KwdPatterns, p.asPattern())
		} else if len(m.KwdAttrs) > 0 {
			p.fail(p.peek().Start, "positional patterns follow keyword patterns")
		} else {
			m.Patterns = append(m.Patterns, p.asPattern())
		}
		if !p.acceptOp(",") {
			break
		}
	}
	p.wantOp(")")
	m.Span = p.from(start)
	return m
}

func (p *parser) sequencePattern(start int) Pattern {
	open := p.next().Text
	stop := string(closing(open[0]))
	var list []Pattern
	comma := open == "["
	for !p.op(stop) {
		list = append(list, p.maybeStarPattern())
		if !p.acceptOp(",") {
			break
		}
		comma = true
	}
	p.wantOp(stop)
	if !comma && len(list) == 1 {
		if _, star := list[0].(*MatchStar); !star {
			return list[0]
		}
	}
	return &MatchSequence{patternNode{p.from(start)}, list}
}

func (p *parser) mappingPattern(start int) Pattern {
	p.pos++
	m := &MatchMapping{}
	for !p.op("}") {
		if p.acceptOp("**") {
			m.Rest = p.name()
			p.acceptOp(",")
			break
		}
		m.Keys = append(m.Keys, p.mappingKey())
		p.wantOp(":")
		m.Patterns = append(m.Patterns, p.asPattern())
		if !p.acceptOp(",") {
			break
		}
	}
	p.wantOp("}")
	m.Span = p.from(start)
	return m
}

func (p *parser) mappingKey() Expr {
	t := p.peek()
	switch {
	case p.word("None"), p.word("True"), p.word("False"):
		return p.atom()
	case t.Kind == NameToken:
		return p.dotted(t.Start)
	}
	return p.literalValue()
}
