package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a fault of a template, or of what it does with a conversation.
type Error struct {
	Line, Column int // from 1, in bytes
	Text         string
	Raised       bool  // by raise_exception of the template; Text is its message
	Err          error // of the budget of the template; nil for others
}

// Unwrap returns the error of the budget.
func (e *Error) Unwrap() error { return e.Err }

// Error returns the fault with its position.
func (e *Error) Error() string {
	if e.Raised {
		return fmt.Sprintf("chat: the template refuses the conversation: %s (line %d, column %d)", e.Text, e.Line, e.Column)
	}
	return fmt.Sprintf("chat: template, line %d, column %d: %s", e.Line, e.Column, e.Text)
}

// catch turns a panic with an *Error into that error.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Error:
		*err = p
	default:
		panic(p)
	}
}

// position returns the line and the column of an offset.
func position(source string, at int) (line, column int) {
	before := source[:min(at, len(source))]
	return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndexByte(before, '\n')
}

// kind is the kind of a token.
type kind uint8

const (
	endToken   kind = iota
	textToken       // text outside of tags
	openBlock       // {%
	closeBlock      // %}
	openPrint       // {{
	closePrint      // }}
	nameToken
	stringToken
	intToken
	floatToken
	operatorToken
)

// token is a part of a template. The text of a string is that after escapes.
type token struct {
	kind kind
	text string
	at   int // offset in the template
}

func (t token) describe() string {
	switch t.kind {
	case endToken:
		return "the end of the template"
	case textToken:
		return "text"
	case stringToken:
		return "the string " + strconv.Quote(t.text)
	}
	return strconv.Quote(t.text)
}

// lexer cuts a template into tokens. Its methods panic with an *Error.
type lexer struct {
	source     string
	at         int
	tokens     []token
	startsLine bool // the text that begins at the offset is at the start of a line
}

const whiteSpace = " \t\n\r\v\f"

// lex returns the tokens of a template, whose newlines are \n.
func lex(source string) (tokens []token, err error) {
	defer catch(&err)
	l := &lexer{source: source, startsLine: true}
	for l.at < len(source) {
		l.next()
	}
	l.add(endToken, "", len(source))
	return l.tokens, nil
}

func (l *lexer) fail(at int, format string, args ...any) {
	line, column := position(l.source, at)
	panic(&Error{Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

func (l *lexer) add(k kind, text string, at int) { l.tokens = append(l.tokens, token{k, text, at}) }

// next reads text and the tag after it.
func (l *lexer) next() {
	begin := l.at
	open := len(l.source)
	for i := begin; i+1 < len(l.source); i++ {
		if l.source[i] == '{' && strings.IndexByte("%{#", l.source[i+1]) >= 0 {
			open = i
			break
		}
	}
	text := l.source[begin:open]
	if open == len(l.source) {
		l.addText(text, begin)
		l.at = open
		return
	}
	tag, body := l.source[open+1], open+2
	switch sign := l.byteAt(body); {
	case sign == '-':
		text = strings.TrimRight(text, whiteSpace)
		body++
	case sign == '+' && tag != '{':
		body++
	case tag != '{':
		line := strings.LastIndexByte(text, '\n') + 1
		if (line > 0 || l.startsLine) && strings.Trim(text[line:], whiteSpace) == "" {
			text = text[:line]
		}
	}
	l.addText(text, begin)
	l.at = body
	switch tag {
	case '#':
		end := strings.Index(l.source[body:], "#}")
		if end < 0 {
			l.fail(open, "the comment has no end; want #}")
		}
		l.at += end
		l.close(l.source[l.at-1], 2)
	case '{':
		l.add(openPrint, "{{", open)
		l.inside(open, closePrint)
	default:
		if l.raw(open) {
			return
		}
		l.add(openBlock, "{%", open)
		l.inside(open, closeBlock)
	}
}

func (l *lexer) addText(text string, at int) {
	if text != "" {
		l.add(textToken, text, at)
	}
}

func (l *lexer) byteAt(at int) byte {
	if at >= len(l.source) {
		return 0
	}
	return l.source[at]
}

// close passes the end of a tag, which is some bytes long, and drops white space after it as the
// sign before it says: - all, + none, else one newline.
func (l *lexer) close(sign byte, length int) {
	l.at += length
	from := l.at
	switch {
	case sign == '-':
		l.at = len(l.source) - len(strings.TrimLeft(l.source[l.at:], whiteSpace))
	case sign == '+':
	case l.byteAt(l.at) == '\n':
		l.at++
	}
	l.startsLine = l.at > from && l.source[l.at-1] == '\n'
}

// rawWords are how the tags of a part begin that is copied as it is, and how they end.
func (l *lexer) rawTag(from int, name string) (end int, closing byte, ok bool) {
	rest := l.source[from:]
	trimmed := strings.TrimLeft(rest, whiteSpace)
	after, ok := strings.CutPrefix(trimmed, name)
	if !ok {
		return 0, 0, false
	}
	after = strings.TrimLeft(after, whiteSpace)
	if after != "" && (after[0] == '-' || after[0] == '+') {
		closing, after = after[0], after[1:]
	}
	if !strings.HasPrefix(after, "%}") {
		return 0, 0, false
	}
	return len(l.source) - len(after), closing, true
}

// raw copies a part between {% raw %} and {% endraw %} if the tag at an offset begins one.
func (l *lexer) raw(open int) bool {
	end, sign, ok := l.rawTag(l.at, "raw")
	if !ok {
		return false
	}
	l.at = end
	l.close(sign, 2)
	begin := l.at
	for i := begin; i+1 < len(l.source); i++ {
		if l.source[i:i+2] != "{%" {
			continue
		}
		text, body := l.source[begin:i], i+2
		switch l.byteAt(body) {
		case '-':
			text = strings.TrimRight(text, whiteSpace)
			body++
		case '+':
			body++
		default:
			line := strings.LastIndexByte(text, '\n') + 1
			if (line > 0 || l.startsLine) && strings.Trim(text[line:], whiteSpace) == "" {
				text = text[:line]
			}
		}
		if end, sign, ok := l.rawTag(body, "endraw"); ok {
			l.addText(text, begin)
			l.at = end
			l.close(sign, 2)
			return true
		}
	}
	l.fail(open, "raw has no end; want {%% endraw %%}")
	return false
}

// operators are the operators of expressions, the longest first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ","}

// inside reads the tokens of a tag that opened at an offset.
func (l *lexer) inside(open int, closing kind) {
	mark := "%}"
	if closing == closePrint {
		mark = "}}"
	}
	depth := 0
	for {
		l.at = len(l.source) - len(strings.TrimLeft(l.source[l.at:], whiteSpace))
		if l.at >= len(l.source) {
			l.fail(open, "the tag has no end; want %s", mark)
		}
		rest, at := l.source[l.at:], l.at
		if depth == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' {
				sign = rest[0]
			}
			end := rest
			if sign != 0 {
				end = rest[1:]
			}
			if strings.HasPrefix(end, mark) && (sign != '+' || closing == closeBlock) {
				l.add(closing, mark, at)
				l.at += len(rest) - len(end)
				if closing == closePrint && sign != '-' {
					sign = '+' // only blocks drop a newline
				}
				l.close(sign, 2)
				return
			}
		}
		switch c := rest[0]; {
		case c == '"' || c == '\'':
			l.text(c)
		case '0' <= c && c <= '9':
			l.number()
		case isLetter(c):
			n := 1
			for n < len(rest) && (isLetter(rest[n]) || '0' <= rest[n] && rest[n] <= '9') {
				n++
			}
			l.add(nameToken, rest[:n], at)
			l.at += n
		default:
			op := ""
			for _, known := range operators {
				if strings.HasPrefix(rest, known) {
					op = known
					break
				}
			}
			if op == "" {
				r, _ := utf8.DecodeRuneInString(rest)
				l.fail(at, "given %q, which belongs to no expression", r)
			}
			switch op {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			l.add(operatorToken, op, at)
			l.at += len(op)
		}
	}
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// number reads an int or a float. Underscores between digits are left out.
func (l *lexer) number() {
	rest, n, k := l.source[l.at:], 0, intToken
	digits := func() {
		for n < len(rest) && ('0' <= rest[n] && rest[n] <= '9' || rest[n] == '_' && n+1 < len(rest) && '0' <= rest[n+1] && rest[n+1] <= '9') {
			n++
		}
	}
	digit := func(i int) bool { return i < len(rest) && '0' <= rest[i] && rest[i] <= '9' }
	digits()
	if n < len(rest) && rest[n] == '.' && digit(n+1) {
		k = floatToken
		n++
		digits()
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		i := n + 1
		if i < len(rest) && (rest[i] == '+' || rest[i] == '-') {
			i++
		}
		if digit(i) {
			k, n = floatToken, i
			digits()
		}
	}
	l.add(k, strings.ReplaceAll(rest[:n], "_", ""), l.at)
	l.at += n
}

// escapes are the escapes of one letter.
var escapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\n': "",
}

// text reads a string in quotes.
func (l *lexer) text(quote byte) {
	begin := l.at
	var b strings.Builder
	for i := begin + 1; i < len(l.source); i++ {
		switch c := l.source[i]; {
		case c == quote:
			l.add(stringToken, b.String(), begin)
			l.at = i + 1
			return
		case c != '\\':
			b.WriteByte(c)
		default:
			i += l.escape(&b, i+1)
		}
	}
	l.fail(begin, "the string has no end; want %c", quote)
}

// escape writes what the escape after a backslash stands for and returns its length.
func (l *lexer) escape(b *strings.Builder, at int) int {
	c := l.byteAt(at)
	if text, ok := escapes[c]; ok {
		b.WriteString(text)
		return 1
	}
	length := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	switch {
	case length > 0:
		end := at + 1 + length
		if end > len(l.source) {
			l.fail(at-1, "the escape \\%c has fewer than %d digits", c, length)
		}
		code, err := strconv.ParseUint(l.source[at+1:end], 16, 32)
		if err != nil || !utf8.ValidRune(rune(code)) {
			l.fail(at-1, "the escape \\%s is no character", l.source[at:end])
		}
		b.WriteRune(rune(code))
		return 1 + length
	case '0' <= c && c <= '7':
		n := 1
		for n < 3 && '0' <= l.byteAt(at+n) && l.byteAt(at+n) <= '7' {
			n++
		}
		code, _ := strconv.ParseUint(l.source[at:at+n], 8, 32) // it is digits
		b.WriteRune(rune(code))
		return n
	}
	b.WriteByte('\\')
	return 0
}
