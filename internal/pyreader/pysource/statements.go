package pysource

import "strings"

// statement reads a compound statement, or the simple statements of a line.
func (p *parser) statement() []Stmt {
	p.enter()
	defer p.leave()
	t := p.peek()
	if t.Kind == NameToken {
		if s := p.compound(t); s != nil {
			return []Stmt{s}
		}
	}
	if p.op("@") {
		return []Stmt{p.decorated()}
	}
	return p.simpleLine()
}

// simpleLine reads statements between semicolons, up to the end of the line.
func (p *parser) simpleLine() []Stmt {
	var list []Stmt
	for {
		list = append(list, p.simple())
		if !p.acceptOp(";") || p.at(Newline) {
			break
		}
	}
	p.want(Newline)
	return list
}

func (p *parser) simple() Stmt {
	t := p.peek()
	if t.Kind != NameToken {
		return p.expressionStatement()
	}
	start := t.Start
	switch t.Text {
	case "pass":
		p.pos++
		return &Pass{stmtNode{p.from(start)}}
	case "break":
		p.pos++
		return &Break{stmtNode{p.from(start)}}
	case "continue":
		p.pos++
		return &Continue{stmtNode{p.from(start)}}
	case "return":
		p.pos++
		s := &Return{}
		if !p.atLineEnd() {
			s.Value = p.starExpressions()
		}
		s.Span = p.from(start)
		return s
	case "raise":
		return p.raise(start)
	case "global", "nonlocal":
		p.pos++
		names := p.names()
		if t.Text == "global" {
			return &Global{stmtNode{p.from(start)}, names}
		}
		return &Nonlocal{stmtNode{p.from(start)}, names}
	case "del":
		p.pos++
		s := &Delete{Targets: p.deleteTargets()}
		s.Span = p.from(start)
		return s
	case "assert":
		p.pos++
		s := &Assert{Test: p.expression()}
		if p.acceptOp(",") {
			s.Msg = p.expression()
		}
		s.Span = p.from(start)
		return s
	case "import":
		return p.importNames(start)
	case "from":
		return p.importFrom(start)
	case "type":
		if s := p.typeAlias(start); s != nil {
			return s
		}
	}
	return p.expressionStatement()
}

func (p *parser) atLineEnd() bool { return p.at(Newline) || p.at(EndMarker) || p.op(";") }

func (p *parser) raise(start int) Stmt {
	p.pos++
	s := &Raise{}
	if !p.atLineEnd() {
		s.Exc = p.expression()
		if p.acceptWord("from") {
			s.Cause = p.expression()
		}
	}
	s.Span = p.from(start)
	return s
}

func (p *parser) names() []string {
	list := []string{p.name()}
	for p.acceptOp(",") {
		list = append(list, p.name())
	}
	return list
}

func (p *parser) deleteTargets() []Expr {
	var list []Expr
	for {
		e := p.bitOr()
		p.checkTarget(e, "delete")
		list = append(list, e)
		if !p.acceptOp(",") || p.atLineEnd() {
			return list
		}
	}
}

func (p *parser) dottedName() string {
	parts := []string{p.name()}
	for p.acceptOp(".") {
		parts = append(parts, p.name())
	}
	return strings.Join(parts, ".")
}

func (p *parser) importNames(start int) Stmt {
	p.pos++
	s := &Import{}
	for {
		first := p.peek().Start
		a := &Alias{Name: p.dottedName()}
		if p.acceptWord("as") {
			a.AsName = p.name()
		}
		a.Span = p.from(first)
		s.Names = append(s.Names, a)
		if !p.acceptOp(",") {
			break
		}
	}
	s.Span = p.from(start)
	return s
}

func (p *parser) importFrom(start int) Stmt {
	p.pos++
	s := &ImportFrom{}
	for p.op(".", "...") {
		s.Level += len(p.next().Text)
	}
	if s.Level == 0 || !p.word("import") {
		s.Module = p.dottedName()
	}
	p.wantWord("import")
	first := p.peek().Start
	if p.acceptOp("*") {
		s.Names = []*Alias{{Name: "*", Span: p.from(first)}}
		s.Span = p.from(start)
		return s
	}
	parenthesized := p.acceptOp("(")
	for {
		first := p.peek().Start
		a := &Alias{Name: p.name()}
		if p.acceptWord("as") {
			a.AsName = p.name()
		}
		a.Span = p.from(first)
		s.Names = append(s.Names, a)
		if !p.acceptOp(",") || parenthesized && p.op(")") {
			break
		}
	}
	if parenthesized {
		p.wantOp(")")
	}
	s.Span = p.from(start)
	return s
}

// typeAlias reads `type X = …`, or returns nil where type is a plain name.
func (p *parser) typeAlias(start int) Stmt {
	if p.pos+2 >= len(p.tokens) || p.tokens[p.pos+1].Kind != NameToken || isKeyword(p.tokens[p.pos+1].Text) ||
		!p.follows(2, OpToken, "=") && !p.follows(2, OpToken, "[") {
		return nil
	}
	p.pos++
	s := &TypeAlias{Name: p.nameExpr()}
	s.TypeParams = p.typeParams()
	p.wantOp("=")
	s.Value = p.expression()
	s.Span = p.from(start)
	return s
}

func (p *parser) nameExpr() Expr {
	start := p.peek().Start
	id := p.name()
	return &Name{exprNode{p.from(start)}, id}
}

// augmented maps the operators of assignments to their own.
func augmented(text string) (string, bool) {
	op, ok := strings.CutSuffix(text, "=")
	switch op {
	case "+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>", "**":
		return op, ok
	}
	return "", false
}

// expressionStatement reads an expression or an assignment.
func (p *parser) expressionStatement() Stmt {
	start := p.peek().Start
	first := p.assigned()
	if t := p.peek(); t.Kind == OpToken {
		if t.Text == ":" {
			return p.annotated(start, first)
		}
		if op, ok := augmented(t.Text); ok {
			p.pos++
			switch first.(type) {
			case *Name, *Attribute, *Subscript:
			default:
				p.fail(start, "this is an illegal target for an augmented assignment")
			}
			s := &AugAssign{Target: first, Op: op, Value: p.assigned()}
			s.Span = p.from(start)
			return s
		}
		if t.Text == "=" {
			return p.assignment(start, first)
		}
	}
	return &ExprStmt{stmtNode{p.from(start)}, first}
}

// assigned reads an expression on either side of an assignment.
func (p *parser) assigned() Expr {
	if p.word("yield") {
		return p.yield()
	}
	return p.starExpressions()
}

func (p *parser) annotated(start int, target Expr) Stmt {
	switch target.(type) {
	case *Name, *Attribute, *Subscript:
	default:
		p.fail(start, "this cannot be annotated")
	}
	p.wantOp(":")
	s := &AnnAssign{Target: target, Annotation: p.expression()}
	if p.acceptOp("=") {
		s.Value = p.assigned()
	}
	s.Span = p.from(start)
	return s
}

func (p *parser) assignment(start int, first Expr) Stmt {
	list := []Expr{first}
	for p.acceptOp("=") {
		list = append(list, p.assigned())
	}
	targets := list[:len(list)-1]
	for _, target := range targets {
		p.checkTarget(target, "assign to")
	}
	return &Assign{stmtNode{p.from(start)}, targets, list[len(list)-1]}
}

// checkTarget fails for an expression that cannot be assigned to.
func (p *parser) checkTarget(e Expr, verb string) {
	switch e := e.(type) {
	case *Name, *Attribute, *Subscript:
	case *Starred:
		p.checkTarget(e.Value, verb)
	case *Tuple:
		for _, x := range e.Elts {
			p.checkTarget(x, verb)
		}
	case *List:
		for _, x := range e.Elts {
			p.checkTarget(x, verb)
		}
	default:
		p.fail(e.Range().Start, "cannot %s this expression", verb)
	}
}
