package pysource

import (
	"strings"
)

// joined makes the node of strings of which at least one is an f-string. Neighbouring texts become
// one constant.
func (p *parser) joined(tokens []Token, span exprNode) Expr {
	b := &joiner{p: p, span: span}
	for i := range tokens {
		l := p.literal(&tokens[i])
		if !l.has("f") {
			b.text(p.unescape(l.body, l.has("r"), false))
			continue
		}
		b.format(l, l.body.Start, l.body.End, 0)
	}
	return &JoinedStr{span, b.finish()}
}

// joiner collects the values of a JoinedStr.
type joiner struct {
	p       *parser
	span    exprNode
	values  []Expr
	pending strings.Builder
}

func (b *joiner) text(s string) { b.pending.WriteString(s) }

func (b *joiner) flush() {
	if b.pending.Len() > 0 {
		b.values = append(b.values, &Constant{b.span, b.pending.String()})
		b.pending.Reset()
	}
}

func (b *joiner) finish() []Expr {
	b.flush()
	return b.values
}

// format splits the text of an f-string, or of a format specification in one if depth is not zero.
func (b *joiner) format(l literal, i, end, depth int) {
	text := b.p.file.Text
	raw := l.has("r")
	start := i
	plain := func(to int) { b.text(b.p.unescape(Span{start, to}, raw, false)) }
	for i < end {
		switch c := text[i]; {
		case c == '\\' && i+1 < end:
			i = afterBackslash(text[:end], i, raw)
		case (c == '{' || c == '}') && i+1 < end && text[i+1] == c && depth == 0:
			plain(i + 1)
			i += 2
			start = i
		case c == '{':
			plain(i)
			i = b.field(l, i+1, end, depth+1)
			start = i
		case c == '}':
			b.p.fail(i, "f-string: single '}' is not allowed")
		default:
			i++
		}
	}
	plain(end)
}

// field reads the replacement field that begins at i, after its brace, and returns where it ends.
func (b *joiner) field(l literal, i, end, depth int) int {
	p := b.p
	s := &scanner{file: p.file, text: p.file.Text, end: end}
	stop, err := s.expressionEnd(i, depth)
	if err != nil {
		p.fail(i, "%s", err.(*SyntaxError).Message)
	}
	value, rest := p.fieldExpression(i, stop, depth)
	v := &FormattedValue{exprNode: b.span, Value: value, Conversion: -1}
	if p.file.Text[rest:stop] != "" && p.file.Text[rest] == '=' {
		rest++
		for rest < stop && strings.IndexByte(" \t\n\f", p.file.Text[rest]) >= 0 {
			rest++
		}
		b.text(p.file.Text[i:rest])
		v.Conversion = 'r'
	}
	if rest < stop && p.file.Text[rest] == '!' {
		conversion := strings.TrimSpace(p.file.Text[rest+1 : stop])
		if conversion != "r" && conversion != "s" && conversion != "a" {
			p.fail(rest, "f-string: invalid conversion character %q, expected r, s or a", conversion)
		}
		v.Conversion = int(conversion[0])
		rest = stop
	}
	if strings.TrimSpace(p.file.Text[rest:stop]) != "" {
		p.fail(rest, "f-string: expecting '}'")
	}
	b.flush()
	b.values = append(b.values, v)
	if p.file.Text[stop] == '}' {
		return stop + 1
	}
	quotes := p.quotesAround(l)
	closed, err := s.specEnd(stop+1, quotes, depth)
	if err != nil {
		p.fail(stop, "%s", err.(*SyntaxError).Message)
	}
	if v.Conversion == 'r' && p.file.Text[rest-1] != 'r' && !strings.Contains(p.file.Text[i:stop], "!") {
		v.Conversion = -1 // a specification replaces repr after an =
	}
	inner := &joiner{p: p, span: b.span}
	inner.format(l, stop+1, closed-1, depth)
	v.FormatSpec = &JoinedStr{b.span, inner.finish()}
	return closed
}

// quotesAround returns the quotes of a literal.
func (p *parser) quotesAround(l literal) string {
	for _, quotes := range []string{`"""`, `'''`} {
		if strings.HasSuffix(p.file.Text[:l.body.Start], quotes) && strings.HasPrefix(p.file.Text[l.body.End:], quotes) {
			return quotes
		}
	}
	return p.file.Text[l.body.Start-1 : l.body.Start]
}

// fieldExpression parses the expression of a replacement field and returns where it stops: before
// =, ! or the end.
func (p *parser) fieldExpression(start, stop, depth int) (Expr, int) {
	s := &scanner{file: p.file, text: p.file.Text, pos: start, end: stop, inside: true, indents: []indent{{}}}
	if err := s.run(); err != nil {
		panic(bailout{err.(*SyntaxError)})
	}
	inner := &parser{file: p.file, depth: p.depth + depth}
	for _, t := range s.tokens {
		if t.Kind != Comment && t.Kind != BlankNewline {
			inner.tokens = append(inner.tokens, t)
		}
	}
	if inner.at(EndMarker) {
		p.fail(start, "f-string: valid expression required before '}'")
	}
	var e Expr
	if inner.word("yield") {
		e = inner.yield()
	} else {
		e = inner.fieldValue()
	}
	if !inner.at(EndMarker) && !inner.op("=", "!") {
		inner.unexpected("'=', '!', ':' or '}'")
	}
	return e, inner.peek().Start
}

// fieldValue reads expressions between commas as in a return statement, where a sole one may be a
// named one in parentheses.
func (p *parser) fieldValue() Expr { return p.starExpressions() }
