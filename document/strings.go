package document

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// strings reads one string or bytes literal and those that follow it directly, which Python joins.
func (p *parser) strings() (any, error) {
	var (
		joined  strings.Builder
		isBytes bool
	)
	for first := true; ; first = false {
		p.space()
		rest := p.text[p.pos:]
		word := wordForm.FindString(rest)
		next := rest[len(word):]
		if next == "" || next[0] != '\'' && next[0] != '"' {
			break
		}
		prefix := strings.ToLower(word)
		bytes := strings.Contains(prefix, "b")
		switch prefix {
		case "", "r", "u", "b", "br", "rb":
		default:
			return nil, p.fail("unsupported string prefix %q", word)
		}
		if !first && bytes != isBytes {
			return nil, p.fail("strings and bytes cannot be joined")
		}
		isBytes = bytes
		p.pos += len(word)
		if err := p.quoted(&joined, strings.Contains(prefix, "r"), bytes); err != nil {
			return nil, err
		}
	}
	if isBytes {
		return []byte(joined.String()), nil
	}
	return joined.String(), nil
}

// quoted appends the content of one quoted literal that starts at the current position.
func (p *parser) quoted(out *strings.Builder, raw, bytes bool) error {
	quote := p.text[p.pos : p.pos+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(p.text[p.pos:], triple) {
		quote = triple
	}
	p.pos += len(quote)
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch {
		case strings.HasPrefix(rest, quote):
			p.pos += len(quote)
			return nil
		case rest[0] == '\\' && raw && len(rest) > 1:
			out.WriteString(rest[:2])
			p.pos += 2
		case rest[0] == '\\':
			if err := p.escape(out, bytes); err != nil {
				return err
			}
		case rest[0] == '\n' && len(quote) == 1, bytes && rest[0] >= utf8.RuneSelf:
			return p.fail("character %q is not allowed in this string", rest[0])
		default:
			out.WriteByte(rest[0])
			p.pos++
		}
	}
	return p.fail("string without closing %s", quote)
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// escape reads one backslash sequence; an unknown one stands for itself, as in Python.
func (p *parser) escape(out *strings.Builder, bytes bool) error {
	rest := p.text[p.pos+1:]
	if rest == "" {
		return p.fail("string without closing quote")
	}
	if text, ok := simpleEscapes[rest[0]]; ok {
		out.WriteString(text)
		p.pos += 2
		return nil
	}
	digits, base, skip := "", 16, 1
	switch c := rest[0]; {
	case c >= '0' && c <= '7':
		base, skip = 8, 0
		digits = rest[:min(3, len(rest))]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "01234567"))]
	case c == 'x':
		digits = fixed(rest[1:], 2)
	case c == 'u' && !bytes:
		digits = fixed(rest[1:], 4)
	case c == 'U' && !bytes:
		digits = fixed(rest[1:], 8)
	case c == 'N' && !bytes:
		return p.fail("escape by character name is not supported")
	default:
		out.WriteByte('\\')
		p.pos++
		return nil
	}
	code, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return p.fail("invalid escape")
	}
	p.pos += 1 + skip + len(digits)
	if bytes {
		out.WriteByte(byte(code))
		return nil
	}
	if !utf8.ValidRune(rune(code)) {
		return p.fail("escape outside Unicode")
	}
	out.WriteRune(rune(code))
	return nil
}

// fixed returns the first n bytes of text, or nothing where text is shorter.
func fixed(text string, n int) string {
	if len(text) < n {
		return ""
	}
	return text[:n]
}
