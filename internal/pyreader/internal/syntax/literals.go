package syntax

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

// number returns the value of a number.
func (p *parser) number(t *token) any {
	text := strings.ToLower(strings.ReplaceAll(t.text, "_", ""))
	base := 10
	if len(text) > 1 && strings.IndexByte("xob", text[1]) >= 0 {
		base = 0
	}
	if imaginary, ok := strings.CutSuffix(text, "j"); ok {
		f, _ := strconv.ParseFloat(imaginary, 64)
		return complex(0, f)
	}
	if base == 10 && strings.ContainsAny(text, ".e") {
		f, _ := strconv.ParseFloat(text, 64) // out of range is infinite
		return f
	}
	if base == 10 && len(text) > maxDigits {
		p.fail(t.Start, "given an integer of %d digits, want at most %d", len(text), maxDigits)
	}
	n, _ := new(big.Int).SetString(text, base)
	return n
}

// strings reads one or more adjacent strings.
func (p *parser) strings() *Node {
	first, start := p.pos, p.peek().Start
	j := joiner{parser: p}
	formatted, bytes := false, 0
	for ; p.at(stringToken); p.pos++ {
		p.file.pace()
		t := p.peek()
		quote := strings.IndexAny(t.text, `"'`)
		prefix := strings.ToLower(t.text[:quote])
		raw, isBytes := strings.Contains(prefix, "r"), strings.Contains(prefix, "b")
		if isBytes {
			bytes++
		}
		if strings.Contains(prefix, "f") {
			formatted = true
			j.join(t.pieces, raw)
			continue
		}
		quotes := 1
		if strings.HasPrefix(t.text[quote:], `"""`) || strings.HasPrefix(t.text[quote:], `'''`) {
			quotes = 3
		}
		j.pending.WriteString(p.unescape(Span{t.Start + quote + quotes, t.End - quotes}, raw, isBytes))
	}
	span := p.from(start)
	switch {
	case bytes > 0 && bytes < p.pos-first:
		p.fail(start, "cannot mix bytes and nonbytes literals")
	case formatted:
		return &Node{Kind: JoinedStr, Span: span, List: j.finish(span)}
	case bytes > 0:
		return &Node{Kind: Constant, Span: span, Const: Bytes(j.pending.String())}
	}
	return &Node{Kind: Constant, Span: span, Const: j.pending.String()}
}

// joiner collects the values of an f-string. Neighbouring texts become one constant.
type joiner struct {
	*parser
	values  []*Node
	pending strings.Builder
}

// join adds the pieces of an f-string, or of a format specification.
func (j *joiner) join(pieces []piece, raw bool) {
	for _, piece := range pieces {
		if piece.field == nil {
			j.pending.WriteString(j.unescape(piece.text, raw, false))
			continue
		}
		j.pending.WriteString(j.file.Text[piece.text.Start:piece.text.End])
		j.flush()
		inner := &parser{file: j.file, tokens: piece.field, depth: j.depth + 1}
		value := &Node{Kind: FormattedValue, Value: inner.assigned(), Parts: &Parts{Level: int(piece.conversion)}}
		if !inner.at(endMarker) {
			inner.unexpected("'=', '!', ':' or '}'")
		}
		if piece.formatted {
			specification := joiner{parser: j.parser}
			specification.join(piece.format, raw)
			value.Right = &Node{Kind: JoinedStr, List: specification.finish(Span{})}
		}
		j.values = append(j.values, value)
	}
}

func (j *joiner) flush() {
	if j.pending.Len() > 0 {
		j.values = append(j.values, &Node{Kind: Constant, Const: j.pending.String()})
		j.pending.Reset()
	}
}

// finish returns the values, which have the span of the whole: that of their own differs between
// versions of Python.
func (j *joiner) finish(span Span) []*Node {
	j.flush()
	for _, v := range j.values {
		if v.Span = span; v.Right != nil {
			v.Right.Span = span
			for _, inner := range v.Right.List {
				inner.Span = span
			}
		}
	}
	return j.values
}

// unescape returns the value of a part of a string.
func (p *parser) unescape(span Span, raw, bytes bool) string {
	text := p.file.Text[span.Start:span.End]
	for i := 0; bytes && i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			p.fail(span.Start+i, "bytes can only contain ASCII literal characters")
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
	write := func(n uint64) {
		switch {
		case bytes:
			b.WriteByte(byte(n))
		case n >= 0xd800 && n < 0xe000: // a surrogate, which Python's strings may have
			b.Write([]byte{0xe0 | byte(n>>12), 0x80 | byte(n>>6)&0x3f, 0x80 | byte(n)&0x3f})
		default:
			b.WriteRune(rune(n))
		}
	}
	switch {
	case c == '\n':
		return 2
	case c >= '0' && c <= '7':
		end := 2
		for end < min(4, len(text)) && text[end] >= '0' && text[end] <= '7' {
			end++
		}
		n, _ := strconv.ParseUint(text[1:end], 8, 32)
		write(n)
		return end
	case c == 'x', !bytes && (c == 'u' || c == 'U'):
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if len(text) >= 2+digits {
			if n, err := strconv.ParseUint(text[2:2+digits], 16, 32); err == nil && n <= utf8.MaxRune {
				write(n)
				return 2 + digits
			}
		}
		p.fail(at, `invalid \%c escape: want %d hexadecimal digits of a character`, c, digits)
	case c == 'N' && !bytes:
		end := strings.IndexByte(text, '}')
		if len(text) < 3 || text[2] != '{' || end < 0 {
			p.fail(at, `malformed \N character escape`)
		}
		r, ok := runesByName()[strings.ToUpper(text[3:end])]
		if !ok {
			p.fail(at, "unknown Unicode character name %q", text[3:end])
		}
		b.WriteRune(r)
		return end + 1
	}
	b.WriteByte('\\')
	return 1
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
