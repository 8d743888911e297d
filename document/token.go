package document

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var (
	floatForm = regexp.MustCompile(`^(?:[0-9](?:_?[0-9])*\.(?:[0-9](?:_?[0-9])*)?|\.[0-9](?:_?[0-9])*)(?:[eE][+-]?[0-9](?:_?[0-9])*)?` +
		`|^[0-9](?:_?[0-9])*[eE][+-]?[0-9](?:_?[0-9])*`)
	intForm  = regexp.MustCompile(`^(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+|0(?:_?0)*|[1-9](?:_?[0-9])*)`)
	wordForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*`)
)

// maxDigits is CPython's own limit for integer literals.
const maxDigits = 4300

func (p *parser) number() (any, error) {
	rest := p.text[p.pos:]
	if text := floatForm.FindString(rest); text != "" {
		p.pos += len(text)
		f, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		return f, p.endOfNumber()
	}
	text := intForm.FindString(rest)
	if text == "" || len(text) > maxDigits {
		return nil, p.fail("invalid number")
	}
	p.pos += len(text)
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		return nil, p.fail("invalid number")
	}
	if err := p.endOfNumber(); err != nil {
		return nil, err
	}
	return shrink(n), nil
}

// endOfNumber refuses a letter, digit or dot glued to a number: 007, 1j, 1.2.3.
func (p *parser) endOfNumber() error {
	if p.pos >= len(p.text) {
		return nil
	}
	if c := p.text[p.pos]; c == '.' || c == '_' || c >= 0x80 || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' {
		return p.fail("invalid number")
	}
	return nil
}

func shrink(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return n
}

func negate(value any, negative bool) (any, bool) {
	switch v := value.(type) {
	case int64:
		if negative {
			return shrink(new(big.Int).Neg(big.NewInt(v))), true
		}
		return v, true
	case *big.Int:
		if negative {
			return shrink(new(big.Int).Neg(v)), true
		}
		return v, true
	case float64:
		if negative {
			return -v, true
		}
		return v, true
	default:
		return nil, false
	}
}

func (p *parser) wordOrString() (any, error) {
	rest := p.text[p.pos:]
	word := wordForm.FindString(rest)
	if next := rest[len(word):]; next != "" && (next[0] == '\'' || next[0] == '"') {
		return p.strings()
	}
	p.pos += len(word)
	switch word {
	case "None":
		return nil, nil
	case "True":
		return true, nil
	case "False":
		return false, nil
	case "set":
		if p.accept('(') && p.accept(')') {
			return List{}, nil
		}
	}
	return nil, p.fail("unexpected %q", rest)
}
