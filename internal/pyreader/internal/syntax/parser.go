package syntax

import (
	"slices"

	"golang.org/x/text/unicode/norm"
)

// maxDepth bounds the recursion of the parser, and maxChain how often an operator, an attribute or
// an elif may follow on the one before; CPython has bounds of its own.
const (
	maxDepth = 1000
	maxChain = 5000
)

// Parse reads a module. It calls look, unless that is nil, now and then, and ends with its error.
func Parse(name string, source []byte, look func() error) (file *File, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			file, err = nil, r
		case ended:
			file, err = nil, r.err
		default:
			panic(r)
		}
	}()
	f := newFile(name, source)
	f.look = look
	f.checkEncoding()
	s := &scanner{File: f, indents: []indent{{}}, lineStart: true}
	p := &parser{file: f, tokens: s.run()}
	for !p.at(endMarker) {
		f.Body = append(f.Body, p.statement()...)
	}
	return f, nil
}

// parser is a recursive descent parser. It backtracks for words that are keywords only in some
// places.
type parser struct {
	file    *File
	tokens  []token
	pos     int
	depth   int
	pattern bool // in a pattern, which is read as an expression that may have a name after as
}

func (p *parser) fail(at int, format string, args ...any) { p.file.fail(at, format, args...) }

// attempt runs f and reports whether it succeeded; otherwise it restores the position.
func (p *parser) attempt(f func() bool) (ok bool) {
	pos, depth := p.pos, p.depth
	defer func() {
		if r := recover(); r != nil {
			if _, failed := r.(*Error); !failed {
				panic(r)
			}
			ok = false
		}
		if !ok {
			p.pos, p.depth = pos, depth
		}
	}()
	return f()
}

// enter counts a level of recursion; the caller defers leave.
func (p *parser) enter() {
	p.file.pace()
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek().Start, "too deeply nested")
	}
}

func (p *parser) leave() { p.depth-- }

// link counts one more link of a chain.
func (p *parser) link(chain *int) {
	if *chain++; *chain > maxChain {
		p.fail(p.peek().Start, "too deeply nested")
	}
}

func (p *parser) peek() *token { return &p.tokens[p.pos] }

func (p *parser) at(kind tokenKind) bool { return p.peek().kind == kind }

// op reports whether the next token is one of some operators.
func (p *parser) op(ops ...string) bool {
	return p.at(opToken) && slices.Contains(ops, p.peek().text)
}

// word reports whether the next token is one of some names or keywords.
func (p *parser) word(words ...string) bool {
	return p.at(nameToken) && slices.Contains(words, p.peek().text)
}

// follows reports whether the token n places on is a certain operator or word.
func (p *parser) follows(n int, text string) bool {
	return p.pos+n < len(p.tokens) && p.tokens[p.pos+n].text == text && p.tokens[p.pos+n].kind != stringToken
}

// accept reads an operator or a keyword if it is next.
func (p *parser) accept(text string) bool {
	if !p.op(text) && !p.word(text) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) want(text string) {
	if !p.accept(text) {
		p.unexpected("'" + text + "'")
	}
}

func (p *parser) wantKind(kind tokenKind) {
	if !p.at(kind) {
		p.unexpected(tokenWords[kind])
	}
	p.pos++
}

func (p *parser) unexpected(want string) {
	t := p.peek()
	given := tokenWords[t.kind]
	if given == "" {
		given = "'" + t.text + "'"
	}
	p.fail(t.Start, "given %s, want %s", given, want)
}

// from returns the span from a start to the last token that was read.
func (p *parser) from(start int) Span {
	if p.pos == 0 {
		return Span{start, start}
	}
	return Span{start, p.tokens[p.pos-1].End}
}

// node returns a node that ends with the last token that was read.
func (p *parser) node(start int, n Node) *Node {
	n.Span = p.from(start)
	return &n
}

var keywords = words(`False None True and as assert async await break class continue def del elif else except finally for from global
	if import in is lambda nonlocal not or pass raise return try while with yield`)

// name reads an identifier.
func (p *parser) name() string {
	t := p.peek()
	if t.kind != nameToken || keywords[t.text] {
		p.unexpected("a name")
	}
	p.pos++
	return norm.NFKC.String(t.text)
}

func (p *parser) nameNode() *Node {
	start, name := p.peek().Start, p.name()
	return p.node(start, Node{Kind: Name, Name: name})
}

func (p *parser) dottedName() string {
	name := p.name()
	for p.accept(".") {
		name += "." + p.name()
	}
	return name
}
