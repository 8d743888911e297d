package pysource

import (
	"math/big"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/runenames"
)

// maxDigits is the most digits of a decimal integer, that of CPython.
const maxDigits = 4300

func (p *parser) numberValue(t *Token) any {
	text := strings.ToLower(strings.ReplaceAll(t.Text, "_", ""))
	if len(text) > 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o' || text[1] == 'b') {
		n, _ := new(big.Int).SetString(text, 0)
		return n
	}
	if imaginary, ok := strings.CutSuffix(text, "j"); ok {
		f, _ := strconv.ParseFloat(imaginary, 64)
		return complex(0, f)
	}
	if strings.ContainsAny(text, ".e") {
		f, _ := strconv.ParseFloat(text, 64) // out of range is infinite
		return f
	}
	if len(text) > maxDigits {
		p.fail(t.Start, "an integer of %d digits, expected at most %d", len(text), maxDigits)
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n
}

// literal is a string token split into its parts.
type literal struct {
	prefix string // in lower case
	body   Span   // between the quotes
}

func (p *parser) literal(t *Token) literal {
	quote := strings.IndexAny(t.Text, `"'`)
	quotes := quotesAt(t.Text[quote:])
	return literal{
		prefix: strings.ToLower(t.Text[:quote]),
		body:   Span{t.Start + quote + len(quotes), t.End - len(quotes)},
	}
}

func (l literal) has(letter string) bool { return strings.Contains(l.prefix, letter) }

// strings reads one or more adjacent strings.
func (p *parser) strings() Expr {
	first := p.pos
	for p.at(StringToken) {
		p.pos++
	}
	tokens := p.tokens[first:p.pos]
	span := exprNode{Span{tokens[0].Start, tokens[len(tokens)-1].End}}
	formatted, bytes := false, 0
	for i := range tokens {
		l := p.literal(&tokens[i])
		formatted = formatted || l.has("f")
		if l.has("b") {
			bytes++
		}
	}
	if bytes > 0 && bytes < len(tokens) {
		p.fail(span.Start, "cannot mix bytes and nonbytes literals")
	}
	if formatted {
		return p.joined(tokens, span)
	}
	var b strings.Builder
	for i := range tokens {
		l := p.literal(&tokens[i])
		b.WriteString(p.unescape(l.body, l.has("r"), l.has("b")))
	}
	if bytes > 0 {
		return &Constant{span, Bytes(b.String())}
	}
	return &Constant{span, b.String()}
}

// unescape returns the value of a part of a string.
func (p *parser) unescape(span Span, raw, bytes bool) string {
	text := p.file.Text[span.Start:span.End]
	if bytes {
		for i := 0; i < len(text); i++ {
			if text[i] >= utf8.RuneSelf {
				p.fail(span.Start+i, "bytes can only contain ASCII literal characters")
			}
		}
	}
	if raw || !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		if text[i] != '\\' || i+1 >= len(text) {
			b.WriteByte(text[i])
			i++
			continue
		}
		i += p.escape(&b, text[i:], span.Start+i, bytes)
	}
	return b.String()
}

var simpleEscapes = map[byte]byte{'\\': '\\', '\'': '\'', '"': '"', 'a': 7, 'b': 8, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11}

// escape writes the value of an escape sequence and returns its length. An unknown sequence is
// copied.
func (p *parser) escape(b *strings.Builder, text string, at int, bytes bool) int {
	c := text[1]
	if value, ok := simpleEscapes[c]; ok {
		b.WriteByte(value)
		return 2
	}
	write := func(n int) {
		if bytes {
			b.WriteByte(byte(n))
			return
		}
		b.WriteString(encodeRune(n))
	}
	switch {
	case c == '\n':
		return 2
	case c >= '0' && c <= '7':
		end := 2
		for end < 4 && end < len(text) && text[end] >= '0' && text[end] <= '7' {
			end++
		}
		n, _ := strconv.ParseInt(text[1:end], 8, 32)
		write(int(n))
		return end
	case c == 'x', !bytes && c == 'u', !bytes && c == 'U':
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if len(text) >= 2+digits {
			if n, err := strconv.ParseUint(text[2:2+digits], 16, 32); err == nil && n <= utf8.MaxRune {
				write(int(n))
				return 2 + digits
			}
		}
		p.fail(at, `invalid \%c escape: expected %d hexadecimal digits of a character`, c, digits)
	case c == 'N' && !bytes:
		end := strings.IndexByte(text, '}')
		if len(text) < 3 || text[2] != '{' || end < 0 {
			p.fail(at, `malformed \N character escape`)
		}
		r, ok := runeNamed(text[3:end])
		if !ok {
			p.fail(at, "unknown Unicode character name %q", text[3:end])
		}
		b.WriteRune(r)
		return end + 1
	}
	b.WriteByte('\\')
	return 1
}

// encodeRune returns a code point in UTF-8, also a surrogate, which Python's strings may hold.
func encodeRune(n int) string {
	if n >= 0xd800 && n < 0xe000 {
		return string([]byte{0xe0 | byte(n>>12), 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
	}
	return string(rune(n))
}

var runesByName = sync.OnceValue(func() map[string]rune {
	names := map[string]rune{}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if name := runenames.Name(r); name != "" && name[0] != '<' {
			names[name] = r
		}
	}
	return names
})

func runeNamed(name string) (rune, bool) {
	r, ok := runesByName()[strings.ToUpper(name)]
	return r, ok
}
