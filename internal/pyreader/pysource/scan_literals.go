package pysource

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var numberPattern = regexp.MustCompile(`^(?:` +
	`0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|` +
	`(?:[0-9](?:_?[0-9])*\.(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][-+]?[0-9](?:_?[0-9])*)?[jJ]?|` +
	`[0-9](?:_?[0-9])*[eE][-+]?[0-9](?:_?[0-9])*[jJ]?|` +
	`[0-9](?:_?[0-9])*[jJ]?)`)

var leadingZeros = regexp.MustCompile(`^0[0-9_]*[1-9][0-9_]*$`)

// number reads a number. A keyword may follow without a space, as in Python.
func (s *scanner) number() error {
	text := numberPattern.FindString(s.text[s.pos:s.end])
	if leadingZeros.MatchString(text) {
		return s.file.fault(s.pos, "leading zeros in decimal integer literals are not permitted")
	}
	after := s.text[s.pos+len(text) : s.end]
	if after != "" && (isNameStart(after[0]) || isDigit(after[0])) && !keywordFollows(after) {
		return s.file.fault(s.pos, "invalid number %q", text+after[:1])
	}
	s.emit(NumberToken, s.pos, s.pos+len(text))
	s.pos += len(text)
	return nil
}

func keywordFollows(text string) bool {
	for _, word := range []string{"and", "else", "for", "if", "in", "is", "or", "not"} {
		if strings.HasPrefix(text, word) {
			return true
		}
	}
	return false
}

func isStringPrefix(text string) bool {
	switch strings.ToLower(text) {
	case "r", "u", "b", "f", "br", "rb", "fr", "rf":
		return true
	}
	return false
}

// stringToken reads a string whose quotes are at the position of the scanner and whose prefix
// begins at start.
func (s *scanner) stringToken(start int) error {
	end, err := s.stringEnd(start, s.pos)
	if err != nil {
		return err
	}
	s.pos = end
	s.emit(StringToken, start, end)
	return nil
}

// quotesAt returns the quotes that open a string.
func quotesAt(text string) string {
	if strings.HasPrefix(text, `"""`) || strings.HasPrefix(text, `'''`) {
		return text[:3]
	}
	return text[:1]
}

// stringEnd returns where a string ends.
func (s *scanner) stringEnd(start, quotesStart int) (int, error) {
	quotes := quotesAt(s.text[quotesStart:s.end])
	if strings.ContainsAny(s.text[start:quotesStart], "fF") {
		return s.formatEnd(start, quotesStart+len(quotes), quotes, 0)
	}
	for i := quotesStart + len(quotes); i < s.end; i++ {
		switch c := s.text[i]; {
		case c == '\\':
			i++
		case c == '\n' && len(quotes) == 1:
			return 0, s.file.fault(start, "unterminated string")
		case c == quotes[0] && strings.HasPrefix(s.text[i:s.end], quotes):
			return i + len(quotes), nil
		}
	}
	return 0, s.file.fault(start, "unterminated string")
}

// formatEnd returns where an f-string ends whose text goes on at i.
func (s *scanner) formatEnd(start, i int, quotes string, depth int) (int, error) {
	raw := strings.ContainsAny(s.text[start:start+2], "rR")
	for i < s.end {
		switch c := s.text[i]; {
		case c == '\\' && i+1 < s.end:
			i = afterBackslash(s.text, i, raw)
		case c == '\n' && len(quotes) == 1:
			return 0, s.file.fault(start, "unterminated f-string")
		case c == quotes[0] && strings.HasPrefix(s.text[i:s.end], quotes):
			return i + len(quotes), nil
		case c == '{' && i+1 < s.end && s.text[i+1] == '{':
			i += 2
		case c == '{':
			end, err := s.fieldEnd(i+1, quotes, depth+1)
			if err != nil {
				return 0, err
			}
			i = end
		default:
			i++
		}
	}
	return 0, s.file.fault(start, "unterminated f-string")
}

// afterBackslash returns where the text of an f-string goes on after a backslash. \N{…} is no
// replacement field; \{ is a backslash before one.
func afterBackslash(text string, i int, raw bool) int {
	switch next := text[i+1]; {
	case next == '{' || next == '}':
		return i + 1
	case next == 'N' && !raw && i+2 < len(text) && text[i+2] == '{':
		if end := strings.IndexByte(text[i:], '}'); end > 0 {
			return i + end + 1
		}
		return i + 2
	}
	_, size := utf8.DecodeRuneInString(text[i+1:])
	return i + 1 + size
}

// maxFormatDepth bounds how deep replacement fields nest.
const maxFormatDepth = 100

// fieldEnd returns where the replacement field of an f-string ends, after its closing brace.
func (s *scanner) fieldEnd(i int, quotes string, depth int) (int, error) {
	colon, err := s.expressionEnd(i, depth)
	if err != nil {
		return 0, err
	}
	if s.text[colon] == '}' {
		return colon + 1, nil
	}
	return s.specEnd(colon+1, quotes, depth)
}

// specEnd returns where a replacement field ends whose format specification begins at i.
func (s *scanner) specEnd(i int, quotes string, depth int) (int, error) {
	start := i
	for i < s.end {
		switch c := s.text[i]; {
		case c == '{':
			end, err := s.fieldEnd(i+1, quotes, depth+1)
			if err != nil {
				return 0, err
			}
			i = end
		case c == '}':
			return i + 1, nil
		case c == '\n' && len(quotes) == 1, c == quotes[0] && strings.HasPrefix(s.text[i:s.end], quotes):
			return 0, s.file.fault(start, "f-string: expecting '}'")
		case c == '\\' && i+1 < s.end && s.text[i+1] != '{' && s.text[i+1] != '}':
			_, size := utf8.DecodeRuneInString(s.text[i+1:])
			i += 1 + size
		default:
			i++
		}
	}
	return 0, s.file.fault(start, "f-string: expecting '}'")
}

// expressionEnd returns where the expression of a replacement field ends, with its = and its
// conversion: at a colon or at the closing brace.
func (s *scanner) expressionEnd(i, depth int) (int, error) {
	if depth > maxFormatDepth {
		return 0, s.file.fault(i, "f-string: expressions nested too deeply")
	}
	start := i
	var open []byte
	for i < s.end {
		c := s.text[i]
		switch {
		case c == '\'' || c == '"':
			end, err := s.nestedStringEnd(start, i, depth)
			if err != nil {
				return 0, err
			}
			i = end
			continue
		case c == '#':
			for i < s.end && s.text[i] != '\n' {
				i++
			}
			continue
		case c == '(' || c == '[' || c == '{':
			if len(open) >= maxBrackets {
				return 0, s.file.fault(i, "too many nested parentheses")
			}
			open = append(open, c)
		case len(open) == 0 && (c == '}' || c == ':'):
			return i, nil
		case c == ')' || c == ']' || c == '}':
			if len(open) == 0 || closing(open[len(open)-1]) != c {
				return 0, s.file.fault(i, "f-string: unmatched '%c'", c)
			}
			open = open[:len(open)-1]
		}
		i++
	}
	return 0, s.file.fault(start, "f-string: expecting '}'")
}

// nestedStringEnd returns where a string within a replacement field ends, whose quotes are at i.
func (s *scanner) nestedStringEnd(fieldStart, i, depth int) (int, error) {
	start := i
	for start > fieldStart && i-start < 2 && isNameStart(s.text[start-1]) {
		start--
	}
	if !isStringPrefix(s.text[start:i]) {
		start = i
	}
	quotes := quotesAt(s.text[i:s.end])
	if strings.ContainsAny(s.text[start:i], "fF") {
		if depth > maxFormatDepth {
			return 0, s.file.fault(i, "f-string: expressions nested too deeply")
		}
		return s.formatEnd(start, i+len(quotes), quotes, depth)
	}
	return s.stringEnd(start, i)
}
