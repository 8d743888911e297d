package chat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/internal/suggest"
)

// maxDepth bounds how deep expressions and blocks are nested.
const maxDepth = 200

// parser reads the statements of a template. Its methods panic with an *Error.
type parser struct {
	source string
	tokens []token
	next   int
	depth  int
	loops  int // around the current statement
	marks  bool
}

func (p *parser) fail(at int, format string, args ...any) {
	line, column := position(p.source, at)
	panic(&Error{Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.kind != endToken {
		p.next++
	}
	return t
}

// is reports whether the next token is an operator or a name.
func (p *parser) is(k kind, text string) bool {
	t := p.peek()
	return t.kind == k && t.text == text
}

func (p *parser) skip(k kind, text string) bool {
	if p.is(k, text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(k kind, text string) token {
	if t := p.peek(); t.kind != k || text != "" && t.text != text {
		want := strconv.Quote(text)
		if text == "" {
			want = map[kind]string{closeBlock: "%}", closePrint: "}}", nameToken: "a name"}[k]
		}
		p.fail(t.at, "given %s, want %s", t.describe(), want)
	}
	return p.take()
}

// enter counts a level of nesting until the function that it returns is called.
func (p *parser) enter() func() {
	p.depth++
	if p.depth > maxDepth {
		p.fail(p.peek().at, "it is nested deeper than %d levels", maxDepth)
	}
	return func() { p.depth-- }
}

// body reads statements until a block that begins with one of some names, which is left to the
// caller. Without names it reads to the end.
func (p *parser) body(ends ...string) []node {
	defer p.enter()()
	var all []node
	for {
		t := p.take()
		switch t.kind {
		case endToken:
			if len(ends) > 0 {
				p.fail(t.at, "the template ends within a block; want {%% %s %%}", ends[len(ends)-1])
			}
			return all
		case textToken:
			all = append(all, textNode{at(t.at), t.text})
		case openPrint:
			value := p.tuple(true)
			p.expect(closePrint, "")
			all = append(all, printNode{at(t.at), value})
		case openBlock:
			if name := p.peek(); name.kind == nameToken && slices.Contains(ends, name.text) {
				return all
			}
			all = append(all, p.statement(t.at))
		}
	}
}

// end reads the name and the end of a block that ends a body.
func (p *parser) end(name string) {
	p.expect(nameToken, name)
	p.expect(closeBlock, "")
}

// statementNames are the blocks that begin a statement.
var statementNames = []string{"for", "if", "set", "macro", "filter", "generation", "break", "continue", "raw"}

func (p *parser) statement(open int) node {
	name := p.expect(nameToken, "")
	switch name.text {
	case "for":
		return p.forStatement(open)
	case "if":
		return p.ifStatement(open)
	case "set":
		return p.setStatement(open)
	case "macro":
		return p.macroStatement(open)
	case "filter":
		n := filterNode{at: at(open), filter: []filterCall{p.filterCall()}}
		for p.skip(operatorToken, "|") {
			n.filter = append(n.filter, p.filterCall())
		}
		p.expect(closeBlock, "")
		n.body = p.body("endfilter")
		p.end("endfilter")
		return n
	case "generation":
		p.expect(closeBlock, "")
		p.marks = true
		n := generationNode{at: at(open), body: p.body("endgeneration")}
		p.end("endgeneration")
		return n
	case "break", "continue":
		if p.loops == 0 {
			p.fail(name.at, "%s is outside of a loop", name.text)
		}
		p.expect(closeBlock, "")
		return jumpNode{at(open), name.text == "continue"}
	}
	p.fail(name.at, "the block %q is not supported%s; supported are %s", name.text, suggest.Hint(name.text, statementNames), strings.Join(statementNames, ", "))
	return nil
}

func (p *parser) forStatement(open int) node {
	n := forNode{at: at(open), target: p.target(false)}
	p.expect(nameToken, "in")
	n.over = p.tuple(false)
	if p.skip(nameToken, "if") {
		n.condition = p.condition()
	}
	if t := p.peek(); p.is(nameToken, "recursive") {
		p.fail(t.at, "a recursive loop is not supported")
	}
	p.expect(closeBlock, "")
	p.loops++
	n.body = p.body("else", "endfor")
	p.loops--
	if p.skip(nameToken, "else") {
		p.expect(closeBlock, "")
		n.otherwise = p.body("endfor")
	}
	p.end("endfor")
	return n
}

func (p *parser) ifStatement(open int) node {
	defer p.enter()()
	n := ifNode{at: at(open), condition: p.tuple(true)}
	p.expect(closeBlock, "")
	n.body = p.body("elif", "else", "endif")
	switch t := p.peek(); {
	case p.skip(nameToken, "elif"):
		n.otherwise = []node{p.ifStatement(t.at)}
		return n
	case p.skip(nameToken, "else"):
		p.expect(closeBlock, "")
		n.otherwise = p.body("endif")
	}
	p.end("endif")
	return n
}

func (p *parser) setStatement(open int) node {
	n := setNode{at: at(open), target: p.target(true)}
	if p.skip(operatorToken, "=") {
		n.value = p.tuple(true)
		p.expect(closeBlock, "")
		return n
	}
	for p.skip(operatorToken, "|") {
		n.filter = append(n.filter, p.filterCall())
	}
	p.expect(closeBlock, "")
	n.body = p.body("endset")
	p.end("endset")
	return n
}

// target reads the names before in or an equals sign.
func (p *parser) target(attributes bool) target {
	parens := p.skip(operatorToken, "(")
	t := target{names: []string{p.targetName()}}
	if attributes && p.skip(operatorToken, ".") {
		t.attribute = p.expect(nameToken, "").text
		return t
	}
	for p.skip(operatorToken, ",") {
		t.unpack = true
		if !p.is(nameToken, "in") && p.peek().kind == nameToken {
			t.names = append(t.names, p.targetName())
		}
	}
	if parens {
		p.expect(operatorToken, ")")
	}
	return t
}

func (p *parser) targetName() string {
	t := p.expect(nameToken, "")
	if _, constant := constants[t.text]; constant || slices.Contains(reserved, t.text) {
		p.fail(t.at, "%q cannot be assigned to", t.text)
	}
	return t.text
}

func (p *parser) macroStatement(open int) node {
	n := macroNode{at: at(open), name: p.targetName()}
	p.expect(operatorToken, "(")
	for !p.skip(operatorToken, ")") {
		if len(n.parameters) > 0 {
			p.expect(operatorToken, ",")
		}
		t := p.peek()
		n.parameters = append(n.parameters, p.targetName())
		if p.skip(operatorToken, "=") {
			n.defaults = append(n.defaults, p.expression())
		} else if len(n.defaults) > 0 {
			p.fail(t.at, "the parameter %s without a default follows one with a default", t.text)
		}
	}
	p.expect(closeBlock, "")
	loops := p.loops
	p.loops = 0
	n.body = p.body("endmacro")
	p.loops = loops
	p.end("endmacro")
	return n
}

// constants are the names of values.
var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

// reserved are the words of the language, which name no variable.
var reserved = []string{"and", "or", "not", "in", "is", "if", "else", "elif", "for", "loop"}

// tuple reads expressions with commas between them, of which several are a tuple.
func (p *parser) tuple(conditions bool) expr {
	begin := p.peek().at
	one := func() expr {
		if conditions {
			return p.expression()
		}
		return p.condition()
	}
	first := one()
	if !p.is(operatorToken, ",") {
		return first
	}
	items := []expr{first}
	for p.skip(operatorToken, ",") {
		if t := p.peek(); t.kind == closeBlock || t.kind == closePrint || p.is(operatorToken, ")") {
			break
		}
		items = append(items, one())
	}
	return listExpr{at(begin), items, true}
}

// expression reads an expression with conditions of the form a if b else c.
func (p *parser) expression() expr {
	defer p.enter()()
	value := p.condition()
	for {
		t := p.peek()
		if !p.skip(nameToken, "if") {
			return value
		}
		e := ifExpr{at: at(t.at), condition: p.condition(), value: value}
		if p.skip(nameToken, "else") {
			e.otherwise = p.expression()
		}
		value = e
	}
}

// condition reads an expression of or, and, not and what binds tighter.
func (p *parser) condition() expr { return p.leftAssociative(0) }

// levels are the operators that take two values, the loosest first.
var levels = []struct {
	kind kind
	ops  []string
}{
	{nameToken, []string{"or"}},
	{nameToken, []string{"and"}},
	{}, // not and comparisons
	{operatorToken, []string{"+", "-"}},
	{operatorToken, []string{"~"}},
	{operatorToken, []string{"*", "/", "//", "%"}},
	{operatorToken, []string{"**"}},
}

func (p *parser) leftAssociative(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	l := levels[level]
	if l.ops == nil {
		return p.negation(level)
	}
	left := p.leftAssociative(level + 1)
	for {
		t := p.peek()
		if t.kind != l.kind || !slices.Contains(l.ops, t.text) {
			return left
		}
		p.next++
		left = binaryExpr{at(t.at), t.text, left, p.leftAssociative(level + 1)}
	}
}

func (p *parser) negation(level int) expr {
	defer p.enter()()
	if t := p.peek(); p.skip(nameToken, "not") {
		return unaryExpr{at(t.at), "not", p.negation(level)}
	}
	e := compareExpr{at: at(p.peek().at), first: p.leftAssociative(level + 1)}
	for {
		t := p.peek()
		op := ""
		switch {
		case t.kind == operatorToken && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text), p.is(nameToken, "in"):
			op = t.text
			p.next++
		case p.is(nameToken, "not") && p.tokens[p.next+1].kind == nameToken && p.tokens[p.next+1].text == "in":
			op = "not in"
			p.next += 2
		}
		if op == "" {
			break
		}
		e.ops = append(e.ops, op)
		e.rest = append(e.rest, p.leftAssociative(level+1))
	}
	if len(e.ops) == 0 {
		return e.first
	}
	return e
}

// unary reads a value with signs before it, what is applied to it, and its filters and tests.
func (p *parser) unary(filters bool) expr {
	defer p.enter()()
	t := p.peek()
	var value expr
	if p.skip(operatorToken, "-") || p.skip(operatorToken, "+") {
		value = unaryExpr{at(t.at), t.text, p.unary(false)}
	} else {
		value = p.primary()
	}
	value = p.postfix(value)
	if filters {
		value = p.filters(value)
	}
	return value
}

func (p *parser) primary() expr {
	t := p.take()
	switch t.kind {
	case nameToken:
		if v, ok := constants[t.text]; ok {
			return constExpr{at(t.at), v}
		}
		if t.text != "loop" && slices.Contains(reserved, t.text) {
			p.fail(t.at, "given %q, want a value", t.text)
		}
		return nameExpr{at(t.at), t.text}
	case stringToken:
		text := t.text
		for p.peek().kind == stringToken {
			text += p.take().text
		}
		return constExpr{at(t.at), text}
	case intToken:
		v, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			p.fail(t.at, "the number %s is out of range", t.text)
		}
		return constExpr{at(t.at), v}
	case floatToken:
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.fail(t.at, "the number %s is out of range", t.text)
		}
		return constExpr{at(t.at), v}
	case operatorToken:
		switch t.text {
		case "(":
			if p.skip(operatorToken, ")") {
				return listExpr{at: at(t.at), tuple: true}
			}
			value := p.tuple(true)
			p.expect(operatorToken, ")")
			return value
		case "[":
			return listExpr{at(t.at), p.items("]"), false}
		case "{":
			return p.dict(t.at)
		}
	}
	p.fail(t.at, "given %s, want a value", t.describe())
	return nil
}

// items reads expressions up to a bracket.
func (p *parser) items(end string) []expr {
	var all []expr
	for !p.skip(operatorToken, end) {
		if len(all) > 0 {
			p.expect(operatorToken, ",")
			if p.skip(operatorToken, end) {
				break
			}
		}
		all = append(all, p.expression())
	}
	return all
}

func (p *parser) dict(begin int) expr {
	d := dictExpr{at: at(begin)}
	for !p.skip(operatorToken, "}") {
		if len(d.keys) > 0 {
			p.expect(operatorToken, ",")
			if p.skip(operatorToken, "}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expect(operatorToken, ":")
		d.values = append(d.values, p.expression())
	}
	return d
}

func (p *parser) postfix(value expr) expr {
	for {
		t := p.peek()
		switch {
		case p.skip(operatorToken, "."):
			name := p.take()
			switch name.kind {
			case nameToken:
				value = attributeExpr{at(t.at), value, name.text}
			case intToken:
				i, _ := strconv.ParseInt(name.text, 10, 64) // an index out of range is undefined
				value = indexExpr{at(t.at), value, constExpr{at(name.at), i}}
			default:
				p.fail(name.at, "given %s, want the name of an attribute", name.describe())
			}
		case p.skip(operatorToken, "["):
			value = p.subscript(t.at, value)
		case p.skip(operatorToken, "("):
			value = callExpr{at(t.at), value, p.arguments()}
		default:
			return value
		}
	}
}

func (p *parser) subscript(begin int, of expr) expr {
	var parts [3]expr
	colons := 0
	for !p.skip(operatorToken, "]") {
		switch t := p.peek(); {
		case p.skip(operatorToken, ":"):
			colons++
			if colons > 2 {
				p.fail(t.at, "a slice has at most two colons")
			}
		case parts[colons] != nil:
			p.fail(t.at, "given %s, want \"]\"", t.describe())
		default:
			parts[colons] = p.expression()
		}
	}
	if colons > 0 {
		return sliceExpr{at(begin), of, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		p.fail(begin, "the subscript is empty")
	}
	return indexExpr{at(begin), of, parts[0]}
}

// arguments reads the arguments of a call, whose parenthesis is read.
func (p *parser) arguments() arguments {
	var a arguments
	for first := true; !p.skip(operatorToken, ")"); first = false {
		if !first {
			p.expect(operatorToken, ",")
			if p.skip(operatorToken, ")") {
				break
			}
		}
		t := p.peek()
		switch following := p.tokens[min(p.next+1, len(p.tokens)-1)]; {
		case p.is(operatorToken, "*") || p.is(operatorToken, "**"):
			p.fail(t.at, "arguments of the form %sname are not supported", t.text)
		case t.kind == nameToken && following.kind == operatorToken && following.text == "=":
			p.next += 2
			a.names = append(a.names, t.text)
			a.named = append(a.named, p.expression())
		case len(a.names) > 0:
			p.fail(t.at, "an argument without a name follows one with a name")
		default:
			a.positional = append(a.positional, p.expression())
		}
	}
	return a
}

// filters reads the filters, tests and calls after a value.
func (p *parser) filters(value expr) expr {
	for {
		t := p.peek()
		switch {
		case p.skip(operatorToken, "|"):
			value = filterExpr{at(t.at), value, p.filterCall()}
		case p.skip(nameToken, "is"):
			value = p.test(t.at, value)
		case p.skip(operatorToken, "("):
			value = callExpr{at(t.at), value, p.arguments()}
		default:
			return value
		}
	}
}

func (p *parser) filterCall() filterCall {
	t := p.expect(nameToken, "")
	if _, ok := filters[t.text]; !ok {
		p.fail(t.at, "the filter %q is not supported%s", t.text, suggest.Hint(t.text, names(filters)))
	}
	c := filterCall{at: t.at, name: t.text}
	if p.skip(operatorToken, "(") {
		c.arguments = p.arguments()
	}
	return c
}

// test reads the test after is.
func (p *parser) test(begin int, value expr) expr {
	e := testExpr{at: at(begin), value: value, not: p.skip(nameToken, "not")}
	t := p.expect(nameToken, "")
	e.name = t.text
	if _, ok := tests[t.text]; !ok {
		p.fail(t.at, "the test %q is not supported%s", t.text, suggest.Hint(t.text, names(tests)))
	}
	following := p.peek()
	switch {
	case p.skip(operatorToken, "("):
		e.arguments = p.arguments()
	case following.kind == nameToken && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not"}, following.text),
		following.kind == stringToken, following.kind == intToken, following.kind == floatToken,
		following.kind == operatorToken && (following.text == "[" || following.text == "{"):
		e.positional = []expr{p.postfix(p.primary())}
	}
	return e
}

// names returns the names of a table, sorted.
func names[V any](table map[string]V) []string {
	all := make([]string, 0, len(table))
	for name := range table {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
