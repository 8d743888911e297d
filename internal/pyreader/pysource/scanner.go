package pysource

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits on nesting, those of CPython.
const (
	maxBrackets = 200
	maxIndents  = 100
)

const tabWidth = 8

// Tokenize returns the tokens of a file, comments and blank line ends among them, the end marker
// last.
func Tokenize(name string, source []byte) ([]Token, *File, error) {
	f := newFile(name, source)
	if err := checkEncoding(f); err != nil {
		return nil, nil, err
	}
	s := &scanner{file: f, text: f.Text, end: len(f.Text), indents: []indent{{}}, lineStart: true}
	if err := s.run(); err != nil {
		return nil, nil, err
	}
	return s.tokens, f, nil
}

// indent is a depth of indentation: columns with tabs to multiples of eight, and with tabs of one
// column.
type indent struct{ columns, alternative int }

type scanner struct {
	file      *File
	text      string
	pos, end  int
	tokens    []Token
	brackets  []byte
	indents   []indent
	lineStart bool
	inside    bool // of a replacement field, where lines always join
}

func (s *scanner) emit(kind TokenKind, start, end int) {
	s.tokens = append(s.tokens, Token{kind, s.text[start:end], Span{start, end}})
}

func (s *scanner) run() error {
	for {
		if s.lineStart && len(s.brackets) == 0 && !s.inside {
			blank, err := s.indentation()
			if err != nil {
				return err
			}
			if blank {
				continue
			}
		}
		s.lineStart = false
		if err := s.skipSpace(); err != nil {
			return err
		}
		if s.pos >= s.end {
			return s.finish()
		}
		if err := s.token(); err != nil {
			return err
		}
	}
}

// finish ends the last line and the open blocks.
func (s *scanner) finish() error {
	if len(s.brackets) > 0 {
		return s.file.fault(s.end, "'%c' was never closed", s.brackets[len(s.brackets)-1])
	}
	if !s.inside {
		if n := len(s.tokens); n > 0 && s.unfinishedLine() {
			s.emit(Newline, s.end, s.end)
		}
		for range s.indents[1:] {
			s.emit(Dedent, s.end, s.end)
		}
	}
	s.emit(EndMarker, s.end, s.end)
	return nil
}

// unfinishedLine reports whether the last logical line has no end yet.
func (s *scanner) unfinishedLine() bool {
	for _, t := range slices.Backward(s.tokens) {
		switch t.Kind {
		case Comment, BlankNewline:
			continue
		case Newline, Indent, Dedent:
			return false
		}
		return true
	}
	return false
}

// indentation reads the start of a line. A blank line is read whole.
func (s *scanner) indentation() (blank bool, err error) {
	start := s.pos
	var now indent
	for s.pos < s.end {
		switch c := s.text[s.pos]; c {
		case ' ':
			now.columns++
			now.alternative++
		case '\t':
			now.columns = (now.columns/tabWidth + 1) * tabWidth
			now.alternative++
		case '\f':
			now = indent{}
		default:
			goto counted
		}
		s.pos++
	}
counted:
	if s.pos >= s.end {
		s.lineStart = false
		return false, nil
	}
	switch s.text[s.pos] {
	case '#':
		s.comment()
		if s.pos < s.end {
			s.emit(BlankNewline, s.pos, s.pos+1)
			s.pos++
			return true, nil
		}
		return false, nil
	case '\n':
		s.emit(BlankNewline, s.pos, s.pos+1)
		s.pos++
		return true, nil
	}
	return false, s.reindent(start, now)
}

// reindent compares the indentation of a line with that of the open blocks.
func (s *scanner) reindent(start int, now indent) error {
	top := s.indents[len(s.indents)-1]
	inconsistent := func(other indent) bool {
		return now.columns == other.columns && now.alternative != other.alternative ||
			now.columns > other.columns != (now.alternative > other.alternative)
	}
	switch {
	case now.columns == top.columns:
		if now.alternative != top.alternative {
			return s.file.fault(s.pos, "inconsistent use of tabs and spaces in indentation")
		}
	case now.columns > top.columns:
		if inconsistent(top) {
			return s.file.fault(s.pos, "inconsistent use of tabs and spaces in indentation")
		}
		if len(s.indents) >= maxIndents {
			return s.file.fault(s.pos, "too many levels of indentation")
		}
		s.indents = append(s.indents, now)
		s.emit(Indent, start, s.pos)
	default:
		for now.columns < s.indents[len(s.indents)-1].columns {
			s.indents = s.indents[:len(s.indents)-1]
			s.emit(Dedent, s.pos, s.pos)
		}
		if now != s.indents[len(s.indents)-1] {
			return s.file.fault(s.pos, "unindent does not match any outer indentation level")
		}
	}
	return nil
}

func (s *scanner) comment() {
	start := s.pos
	for s.pos < s.end && s.text[s.pos] != '\n' {
		s.pos++
	}
	s.emit(Comment, start, s.pos)
}

// skipSpace skips spaces and joined line ends.
func (s *scanner) skipSpace() error {
	for s.pos < s.end {
		switch s.text[s.pos] {
		case ' ', '\t', '\f':
			s.pos++
		case '\\':
			if s.pos+1 >= s.end || s.text[s.pos+1] != '\n' {
				return s.file.fault(s.pos, "unexpected character after line continuation character")
			}
			s.pos += 2
			if s.pos >= len(s.text) {
				return s.file.fault(s.pos, "unexpected end of file after line continuation character")
			}
		default:
			return nil
		}
	}
	return nil
}

// token reads one token other than indentation.
func (s *scanner) token() error {
	c := s.text[s.pos]
	switch {
	case c == '\n':
		kind := Newline
		if len(s.brackets) > 0 || s.inside || !s.unfinishedLine() {
			kind = BlankNewline
		}
		s.emit(kind, s.pos, s.pos+1)
		s.pos++
		s.lineStart = true
		return nil
	case c == '#':
		s.comment()
		return nil
	case c >= '0' && c <= '9', c == '.' && s.pos+1 < s.end && isDigit(s.text[s.pos+1]):
		return s.number()
	case c == '"' || c == '\'':
		return s.stringToken(s.pos)
	case isNameStart(c):
		return s.name()
	}
	return s.operator()
}

func (s *scanner) name() error {
	start := s.pos
	for s.pos < s.end {
		c := s.text[s.pos]
		if c < utf8.RuneSelf {
			if !isNameStart(c) && !isDigit(c) {
				break
			}
			s.pos++
			continue
		}
		r, size := utf8.DecodeRuneInString(s.text[s.pos:s.end])
		if !isNameRune(r, s.pos == start) {
			if s.pos == start || unicode.IsGraphic(r) {
				return s.file.fault(s.pos, "invalid character %q", r)
			}
			break
		}
		s.pos += size
	}
	if s.pos < s.end && (s.text[s.pos] == '"' || s.text[s.pos] == '\'') && isStringPrefix(s.text[start:s.pos]) {
		return s.stringToken(start)
	}
	s.emit(NameToken, start, s.pos)
	return nil
}

// operators are all of them, the longest first.
var operators = func() []string {
	all := strings.Fields("**= //= >>= <<= ... != -> := == <= >= ** // >> << += -= *= /= %= &= |= ^= @= + - * / % @ & | ^ ~ < > ( ) [ ] { } , : . ; = !")
	slices.SortStableFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}()

func (s *scanner) operator() error {
	rest := s.text[s.pos:s.end]
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) || op == "!" && !s.inside {
			continue
		}
		if err := s.bracket(op[0]); err != nil {
			return err
		}
		s.emit(OpToken, s.pos, s.pos+len(op))
		s.pos += len(op)
		return nil
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return s.file.fault(s.pos, "invalid character %q", r)
}

// bracket tracks open brackets.
func (s *scanner) bracket(c byte) error {
	switch c {
	case '(', '[', '{':
		if len(s.brackets) >= maxBrackets {
			return s.file.fault(s.pos, "too many nested parentheses")
		}
		s.brackets = append(s.brackets, c)
	case ')', ']', '}':
		n := len(s.brackets)
		if n == 0 {
			return s.file.fault(s.pos, "unmatched '%c'", c)
		}
		if open := s.brackets[n-1]; c != closing(open) {
			return s.file.fault(s.pos, "closing parenthesis '%c' does not match opening parenthesis '%c'", c, open)
		}
		s.brackets = s.brackets[:n-1]
	}
	return nil
}

func closing(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	}
	return '}'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// isNameRune reports whether a rune may be in an identifier, or begin one.
func isNameRune(r rune, first bool) bool {
	if r == utf8.RuneError {
		return false
	}
	if unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r) {
		return true
	}
	return !first && (unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r) || unicode.Is(unicode.Nd, r) ||
		unicode.Is(unicode.Pc, r) || unicode.Is(unicode.Other_ID_Continue, r))
}
