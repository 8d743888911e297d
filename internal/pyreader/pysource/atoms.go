package pysource

// atom reads a name, a literal, or what stands in brackets.
func (p *parser) atom() Expr {
	t := p.peek()
	switch t.Kind {
	case NameToken:
		switch t.Text {
		case "None":
			p.pos++
			return &Constant{exprNode{t.Span}, nil}
		case "True", "False":
			p.pos++
			return &Constant{exprNode{t.Span}, t.Text == "True"}
		}
		return p.nameExpr()
	case NumberToken:
		p.pos++
		return &Constant{exprNode{t.Span}, p.numberValue(t)}
	case StringToken:
		return p.strings()
	case OpToken:
		switch t.Text {
		case "(":
			return p.parenthesized()
		case "[":
			return p.listDisplay()
		case "{":
			return p.braces()
		case "...":
			p.pos++
			return &Constant{exprNode{t.Span}, Ellipsis{}}
		}
	}
	p.unexpected("an expression")
	return nil
}

// parenthesized reads a tuple, a generator, or an expression in parentheses, which keeps its own
// span.
func (p *parser) parenthesized() Expr {
	start := p.next().Start
	if p.acceptOp(")") {
		return &Tuple{exprNode: exprNode{p.from(start)}}
	}
	var first Expr
	if p.word("yield") {
		first = p.yield()
	} else {
		first = p.starNamedExpression()
	}
	switch {
	case p.word("for"), p.word("async"):
		c := &Comprehension{Kind: "GeneratorExp", Elt: first, Generators: p.generators()}
		p.wantOp(")")
		c.Span = p.from(start)
		return c
	case p.op(","):
		list := []Expr{first}
		for p.acceptOp(",") && !p.op(")") {
			list = append(list, p.starNamedExpression())
		}
		p.wantOp(")")
		return &Tuple{exprNode{p.from(start)}, list}
	}
	if _, starred := first.(*Starred); starred {
		p.fail(first.Range().Start, "cannot use starred expression here")
	}
	p.wantOp(")")
	return first
}

func (p *parser) listDisplay() Expr {
	start := p.next().Start
	l := &List{}
	for !p.op("]") {
		e := p.starNamedExpression()
		if len(l.Elts) == 0 && (p.word("for") || p.word("async")) {
			c := &Comprehension{Kind: "ListComp", Elt: e, Generators: p.generators()}
			p.wantOp("]")
			c.Span = p.from(start)
			return c
		}
		l.Elts = append(l.Elts, e)
		if !p.acceptOp(",") {
			break
		}
	}
	p.wantOp("]")
	l.Span = p.from(start)
	return l
}

// braces reads a dict or a set, or a comprehension of one.
func (p *parser) braces() Expr {
	start := p.next().Start
	if p.acceptOp("}") {
		return &Dict{exprNode: exprNode{p.from(start)}}
	}
	if p.op("**") {
		return p.dict(start, nil)
	}
	first := p.starNamedExpression()
	if p.op(":") {
		return p.dict(start, first)
	}
	if p.word("for") || p.word("async") {
		c := &Comprehension{Kind: "SetComp", Elt: first, Generators: p.generators()}
		p.wantOp("}")
		c.Span = p.from(start)
		return c
	}
	s := &Set{Elts: []Expr{first}}
	for p.acceptOp(",") && !p.op("}") {
		s.Elts = append(s.Elts, p.starNamedExpression())
	}
	p.wantOp("}")
	s.Span = p.from(start)
	return s
}

// dict reads a dict whose first key was read; nil when it begins with **.
func (p *parser) dict(start int, key Expr) Expr {
	d := &Dict{}
	for {
		if key == nil && p.acceptOp("**") {
			d.Keys = append(d.Keys, nil)
			d.Values = append(d.Values, p.bitOr())
		} else {
			if key == nil {
				key = p.expression()
			}
			p.wantOp(":")
			value := p.expression()
			if len(d.Keys) == 0 && (p.word("for") || p.word("async")) {
				c := &Comprehension{Kind: "DictComp", Elt: key, Value: value, Generators: p.generators()}
				p.wantOp("}")
				c.Span = p.from(start)
				return c
			}
			d.Keys = append(d.Keys, key)
			d.Values = append(d.Values, value)
		}
		key = nil
		if !p.acceptOp(",") || p.op("}") {
			break
		}
	}
	p.wantOp("}")
	d.Span = p.from(start)
	return d
}
