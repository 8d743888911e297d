package pysource

import (
	"slices"

	"golang.org/x/text/unicode/norm"
)

// maxDepth bounds the recursion of the parser; CPython has a bound of its own.
const maxDepth = 1000

// Parse reads a module.
func Parse(name string, source []byte) (file *File, err error) {
	tokens, f, err := Tokenize(name, source)
	if err != nil {
		return nil, err
	}
	p := &parser{file: f}
	for _, t := range tokens {
		switch t.Kind {
		case Comment:
			f.Comments = append(f.Comments, t)
		case BlankNewline:
		default:
			p.tokens = append(p.tokens, t)
		}
	}
	defer p.recover(&err)
	for !p.at(EndMarker) {
		f.Body = append(f.Body, p.statement()...)
	}
	return f, nil
}

// parser is a recursive descent parser. It backtracks for words that are keywords only in some
// places.
type parser struct {
	file   *File
	tokens []Token
	pos    int
	depth  int
}

// bailout carries a *SyntaxError to Parse.
type bailout struct{ err *SyntaxError }

func (p *parser) recover(err *error) {
	switch r := recover().(type) {
	case nil:
	case bailout:
		*err = r.err
	default:
		panic(r)
	}
}

func (p *parser) fail(at int, format string, args ...any) {
	panic(bailout{p.file.fault(at, format, args...)})
}

// attempt runs f and reports whether it succeeded; otherwise it restores the position.
func (p *parser) attempt(f func() bool) (ok bool) {
	pos, depth := p.pos, p.depth
	defer func() {
		r := recover()
		if _, failed := r.(bailout); failed {
			ok = false
		} else if r != nil {
			panic(r)
		}
		if !ok {
			p.pos, p.depth = pos, depth
		}
	}()
	return f()
}

// enter counts a level of recursion; the caller defers leave.
func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().Start, "too deeply nested")
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) peek() *Token { return &p.tokens[p.pos] }

func (p *parser) next() *Token {
	t := &p.tokens[p.pos]
	if t.Kind != EndMarker {
		p.pos++
	}
	return t
}

func (p *parser) at(kind TokenKind) bool { return p.peek().Kind == kind }

// op reports whether the next token is one of some operators.
func (p *parser) op(ops ...string) bool {
	t := p.peek()
	return t.Kind == OpToken && slices.Contains(ops, t.Text)
}

// word reports whether the next token is a certain name or keyword.
func (p *parser) word(word string) bool {
	t := p.peek()
	return t.Kind == NameToken && t.Text == word
}

// follows reports whether the token n places on is a certain operator or word.
func (p *parser) follows(n int, kind TokenKind, text string) bool {
	return p.pos+n < len(p.tokens) && p.tokens[p.pos+n].Kind == kind && p.tokens[p.pos+n].Text == text
}

func (p *parser) acceptOp(op string) bool {
	if p.op(op) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) acceptWord(word string) bool {
	if p.word(word) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) wantOp(op string) *Token {
	if !p.op(op) {
		p.unexpected("'" + op + "'")
	}
	return p.next()
}

func (p *parser) wantWord(word string) {
	if !p.acceptWord(word) {
		p.unexpected("'" + word + "'")
	}
}

func (p *parser) want(kind TokenKind) *Token {
	if !p.at(kind) {
		p.unexpected(kind.String())
	}
	return p.next()
}

func (p *parser) unexpected(expected string) {
	t := p.peek()
	given := "'" + t.Text + "'"
	if t.Kind != NameToken && t.Kind != OpToken && t.Kind != NumberToken && t.Kind != StringToken {
		given = t.Kind.String()
	}
	p.fail(t.Start, "got %s, expected %s", given, expected)
}

// end returns where the last token that was read ends.
func (p *parser) end() int {
	if p.pos == 0 {
		return 0
	}
	return p.tokens[p.pos-1].End
}

// from returns the span from a start to the last token that was read.
func (p *parser) from(start int) Span { return Span{start, p.end()} }

// isKeyword reports whether a word cannot be a name.
func isKeyword(word string) bool {
	switch word {
	case "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else",
		"except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
		"return", "try", "while", "with", "yield":
		return true
	}
	return false
}

// name reads an identifier.
func (p *parser) name() string {
	t := p.peek()
	if t.Kind != NameToken || isKeyword(t.Text) {
		p.unexpected("a name")
	}
	p.pos++
	return norm.NFKC.String(t.Text)
}
