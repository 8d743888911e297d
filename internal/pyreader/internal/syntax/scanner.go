package syntax

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on nesting: those of CPython, and that of replacement fields in replacement fields.
const (
	maxBrackets = 200
	maxIndents  = 100
	maxFields   = 100
)

type tokenKind uint8

const (
	endMarker tokenKind = iota + 1
	nameToken
	numberToken
	stringToken // with its prefix and quotes, an f-string as a whole
	opToken
	newline // the end of a logical line
	indentToken
	dedentToken
)

var tokenWords = [...]string{endMarker: "end of file", newline: "end of line", indentToken: "indent", dedentToken: "dedent"}

type token struct {
	Span
	kind   tokenKind
	text   string
	pieces []piece // of an f-string
}

// piece is a part of an f-string: text, or a replacement field.
type piece struct {
	text       Span    // also that of a field with =, which shows its source
	field      []token // of the expression, nil for text
	conversion byte
	format     []piece // the specification
	formatted  bool    // there is a specification
}

// indent is a depth of indentation: columns with tabs to multiples of eight, and with tabs of one
// column.
type indent struct{ columns, alternative int }

// scanner splits a file into tokens. Its errors are panics of File.fail.
type scanner struct {
	*File
	pos       int
	tokens    []token
	brackets  []byte
	indents   []indent
	lineStart bool
	fields    int // replacement fields around the position, in which lines always join
}

func (s *scanner) emit(kind tokenKind, start, end int) {
	s.tokens = append(s.tokens, token{kind: kind, text: s.Text[start:end], Span: Span{start, end}})
}

// rest returns the text that is not read yet.
func (s *scanner) rest() string { return s.Text[s.pos:] }

func (s *scanner) ended() bool { return s.pos >= len(s.Text) }

func (s *scanner) run() []token {
	for {
		if s.lineStart && len(s.brackets) == 0 && s.indentation() {
			continue
		}
		s.lineStart = false
		if s.skipSpace(); s.ended() {
			break
		}
		s.token()
		s.pace()
	}
	end := len(s.Text)
	if n := len(s.brackets); n > 0 {
		s.fail(end, "'%c' was never closed", s.brackets[n-1])
	}
	if s.inLine() {
		s.emit(newline, end, end)
	}
	for range s.indents[1:] {
		s.emit(dedentToken, end, end)
	}
	s.emit(endMarker, end, end)
	return s.tokens
}

// inLine reports whether a logical line has begun.
func (s *scanner) inLine() bool {
	n := len(s.tokens)
	return n > 0 && s.tokens[n-1].kind != newline && s.tokens[n-1].kind != indentToken && s.tokens[n-1].kind != dedentToken
}

// indentation reads the start of a line, and reports whether the line is blank, which is then read
// whole.
func (s *scanner) indentation() (blank bool) {
	var now indent
	start := s.pos
count:
	for ; !s.ended(); s.pos++ {
		switch s.Text[s.pos] {
		case ' ':
			now.columns++
			now.alternative++
		case '\t':
			now.columns = (now.columns/8 + 1) * 8
			now.alternative++
		case '\f':
			now = indent{}
		default:
			break count
		}
	}
	if s.ended() {
		return false
	}
	if s.Text[s.pos] == '#' {
		if s.comment(); s.ended() {
			return false
		}
	}
	if s.Text[s.pos] == '\n' {
		s.pos++
		return true
	}
	s.reindent(start, now)
	return false
}

// reindent compares the indentation of a line with that of the open blocks.
func (s *scanner) reindent(start int, now indent) {
	top := s.indents[len(s.indents)-1]
	check := func(other indent) {
		if (now.columns > other.columns) != (now.alternative > other.alternative) || (now.columns == other.columns) != (now.alternative == other.alternative) {
			s.fail(start, "inconsistent use of tabs and spaces in indentation")
		}
	}
	check(top)
	if now.columns > top.columns {
		if len(s.indents) >= maxIndents {
			s.fail(s.pos, "too many levels of indentation")
		}
		s.indents = append(s.indents, now)
		s.emit(indentToken, start, s.pos)
		return
	}
	for ; now.columns < top.columns; top = s.indents[len(s.indents)-1] {
		s.indents = s.indents[:len(s.indents)-1]
		s.emit(dedentToken, s.pos, s.pos)
	}
	if now.columns != top.columns {
		s.fail(s.pos, "unindent does not match any outer indentation level")
	}
	check(top)
}

func (s *scanner) comment() {
	start := s.pos
	for !s.ended() && s.Text[s.pos] != '\n' {
		s.pos++
	}
	if s.fields == 0 {
		s.Comments = append(s.Comments, Comment{Span{start, s.pos}, s.Text[start:s.pos]})
	}
}

// skipSpace reads spaces and lines that are joined by a backslash.
func (s *scanner) skipSpace() {
	for !s.ended() {
		switch s.Text[s.pos] {
		case ' ', '\t', '\f':
			s.pos++
		case '\\':
			if !strings.HasPrefix(s.rest(), "\\\n") {
				s.fail(s.pos+1, "unexpected character after line continuation character")
			}
			if s.pos += 2; s.ended() {
				s.fail(s.pos, "unexpected end of file after line continuation character")
			}
		default:
			return
		}
	}
}

// token reads one token other than indentation.
func (s *scanner) token() {
	start, c := s.pos, s.Text[s.pos]
	switch {
	case c == '\n':
		if len(s.brackets) == 0 && s.fields == 0 && s.inLine() {
			s.emit(newline, s.pos, s.pos+1)
		}
		s.pos++
		s.lineStart = s.fields == 0
	case c == '#':
		s.comment()
	case isDigit(c), c == '.' && len(s.rest()) > 1 && isDigit(s.rest()[1]):
		s.number()
	case c == '"' || c == '\'':
		s.str(start)
	case isNameStart(c):
		for !s.ended() {
			r, size := utf8.DecodeRuneInString(s.rest())
			if !isNameRune(r, s.pos == start) {
				if r >= utf8.RuneSelf && (s.pos == start || unicode.IsGraphic(r)) {
					s.fail(s.pos, "invalid character %q", r)
				}
				break
			}
			s.pos += size
		}
		if quote := s.rest(); quote != "" && (quote[0] == '"' || quote[0] == '\'') && stringPrefixes[strings.ToLower(s.Text[start:s.pos])] {
			s.str(start)
		} else {
			s.emit(nameToken, start, s.pos)
		}
	default:
		s.operator()
	}
}

var stringPrefixes = words("r u b f br rb fr rf")

var operators = words("**= //= >>= <<= ... != -> := == <= >= ** // >> << += -= *= /= %= &= |= ^= @= + - * / % @ & | ^ ~ < > ( ) [ ] { } , : . ; =")

// words returns a set of words.
func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

func (s *scanner) operator() {
	rest := s.rest()
	n := min(3, len(rest))
	for n > 0 && !operators[rest[:n]] {
		n--
	}
	if n == 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		s.fail(s.pos, "invalid character %q", r)
	}
	switch c, open := rest[0], len(s.brackets); c {
	case '(', '[', '{':
		if open >= maxBrackets {
			s.fail(s.pos, "too many nested parentheses")
		}
		s.brackets = append(s.brackets, c)
	case ')', ']', '}':
		if open == 0 {
			s.fail(s.pos, "unmatched '%c'", c)
		}
		if last := s.brackets[open-1]; c != closing[last] {
			s.fail(s.pos, "closing parenthesis '%c' does not match opening parenthesis '%c'", c, last)
		}
		s.brackets = s.brackets[:open-1]
	}
	s.emit(opToken, s.pos, s.pos+n)
	s.pos += n
}

var closing = map[byte]byte{'(': ')', '[': ']', '{': '}'}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// isNameRune reports whether a rune may be in an identifier, or begin one.
func isNameRune(r rune, first bool) bool {
	switch {
	case r < utf8.RuneSelf:
		return isNameStart(byte(r)) || !first && isDigit(byte(r))
	case r == utf8.RuneError:
		return false
	case unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r):
		return true
	}
	return !first && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

var numberPattern = regexp.MustCompile(`^(?:` +
	`0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|` +
	`(?:[0-9](?:_?[0-9])*\.(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][-+]?[0-9](?:_?[0-9])*)?[jJ]?|` +
	`[0-9](?:_?[0-9])*[eE][-+]?[0-9](?:_?[0-9])*[jJ]?|` +
	`[0-9](?:_?[0-9])*[jJ]?)`)

var leadingZeros = regexp.MustCompile(`^0[0-9_]*[1-9][0-9_]*$`)

// afterNumber are the keywords that may follow a number without a space.
var afterNumber = regexp.MustCompile(`^(?:and|else|for|if|in|is|or|not)`)

func (s *scanner) number() {
	start, text := s.pos, numberPattern.FindString(s.rest())
	if leadingZeros.MatchString(text) {
		s.fail(start, "leading zeros in decimal integer literals are not permitted")
	}
	s.pos += len(text)
	if after := s.rest(); after != "" && (isNameStart(after[0]) || isDigit(after[0])) && !afterNumber.MatchString(after) {
		s.fail(start, "invalid number %q", text+after[:1])
	}
	s.emit(numberToken, start, s.pos)
}

// str reads a string with its quotes at the position; its prefix begins at start.
func (s *scanner) str(start int) {
	quotes := s.rest()[:1]
	if strings.HasPrefix(s.rest(), strings.Repeat(quotes, 3)) {
		quotes = s.rest()[:3]
	}
	prefix := strings.ToLower(s.Text[start:s.pos])
	s.pos += len(quotes)
	if strings.Contains(prefix, "f") {
		pieces := s.format(start, quotes, strings.Contains(prefix, "r"), false)
		s.emit(stringToken, start, s.pos)
		s.tokens[len(s.tokens)-1].pieces = pieces
		return
	}
	for ; !s.ended(); s.pos++ {
		switch c := s.Text[s.pos]; {
		case c == '\\':
			s.pos++
		case c == '\n' && len(quotes) == 1:
			s.fail(start, "unterminated string")
		case strings.HasPrefix(s.rest(), quotes):
			s.pos += len(quotes)
			s.emit(stringToken, start, s.pos)
			return
		}
	}
	s.fail(start, "unterminated string")
}

// format reads the text of an f-string that begins at start up to its quotes, or a specification in
// it up to its brace.
func (s *scanner) format(start int, quotes string, raw, specification bool) []piece {
	var list []piece
	from := s.pos
	take := func(skip int) {
		if s.pos > from {
			list = append(list, piece{text: Span{from, s.pos}})
		}
		s.pos += skip
		from = s.pos
	}
	for !s.ended() {
		c, rest := s.Text[s.pos], s.rest()
		switch {
		case c == '\\' && len(rest) > 1:
			s.pos += afterBackslash(rest, raw || specification)
		case c == '}' && specification:
			take(1)
			return list
		case specification && (strings.HasPrefix(rest, quotes) || c == '\n' && len(quotes) == 1):
			s.fail(start, "f-string: want '}'")
		case c == '\n' && len(quotes) == 1:
			s.fail(start, "unterminated f-string")
		case strings.HasPrefix(rest, quotes):
			take(len(quotes))
			return list
		case !specification && (strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}")):
			s.pos++
			take(1)
		case c == '}':
			s.fail(s.pos, "f-string: single '}' is not allowed")
		case c == '{':
			take(1)
			list = append(list, s.field(quotes, raw))
			from = s.pos
		default:
			s.pos++
		}
	}
	s.fail(start, "unterminated f-string")
	return nil
}

// afterBackslash returns the length of what a backslash in an f-string begins. \N{…} is no
// replacement field; \{ is a backslash before one.
func afterBackslash(text string, raw bool) int {
	if text[1] == '{' || text[1] == '}' {
		return 1
	}
	if end := strings.IndexByte(text, '}'); !raw && strings.HasPrefix(text, `\N{`) {
		return max(end+1, 2)
	}
	_, size := utf8.DecodeRuneInString(text[1:])
	return 1 + size
}

// field reads a replacement field after its brace.
func (s *scanner) field(quotes string, raw bool) piece {
	start := s.pos
	if s.fields++; s.fields > maxFields {
		s.fail(start, "f-string: expressions nested too deeply")
	}
	tokens, brackets := s.tokens, s.brackets
	s.tokens, s.brackets = nil, nil
	for s.skipSpace(); len(s.brackets) > 0 || !s.fieldEnds(); s.skipSpace() {
		if s.ended() {
			s.fail(start, "f-string: want '}'")
		}
		s.token()
	}
	if len(s.tokens) == 0 {
		s.fail(start, "f-string: valid expression required before '}'")
	}
	s.emit(endMarker, s.pos, s.pos)
	f := piece{field: s.tokens}
	s.tokens, s.brackets = tokens, brackets
	if s.Text[s.pos] == '=' {
		for s.pos++; !s.ended() && strings.IndexByte(" \t\n\f", s.Text[s.pos]) >= 0; {
			s.pos++
		}
		f.text, f.conversion = Span{start, s.pos}, 'r'
	}
	converted := strings.HasPrefix(s.rest(), "!")
	if converted {
		text := s.rest()[1:]
		text = strings.TrimSpace(text[:max(strings.IndexAny(text, ":}"), 0)])
		if text != "r" && text != "s" && text != "a" {
			s.fail(s.pos, "f-string: given the conversion %q, want r, s or a", text)
		}
		f.conversion = text[0]
		s.pos += 1 + strings.IndexAny(s.rest()[1:], ":}")
	}
	switch {
	case strings.HasPrefix(s.rest(), "}"):
		s.pos++
	case strings.HasPrefix(s.rest(), ":"):
		s.pos++
		f.format, f.formatted = s.format(s.pos, quotes, raw, true), true
		if !converted {
			f.conversion = 0 // a specification replaces repr after an =
		}
	default:
		s.fail(s.pos, "f-string: want '}'")
	}
	s.fields--
	return f
}

// fieldEnds reports whether the expression of a replacement field ends here.
func (s *scanner) fieldEnds() bool {
	rest := s.rest()
	switch {
	case rest == "":
		return false
	case rest[0] == '}' || rest[0] == ':':
		return true
	}
	return (rest[0] == '!' || rest[0] == '=') && !strings.HasPrefix(rest[1:], "=")
}
