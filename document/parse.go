package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSyntax reports text that is not a supported literal.
var ErrSyntax = errors.New("not a literal")

// ErrUnhashable reports a list, set or dict used as a dict key or as an element of a set.
var ErrUnhashable = errors.New("a list, set or dict cannot be a key or an element of a set")

// maxLiteralDepth bounds nesting, so that hostile input cannot exhaust the stack.
const maxLiteralDepth = 100

// List is a list or set; a set keeps the order in which its elements were written.
type List []any

// Tuple is a tuple, the only collection that can be a key.
type Tuple []any

// Dict is a dict in source order; a key that occurs again replaces the value but keeps its place.
type Dict []Pair

// Pair is one entry of a [Dict].
type Pair struct{ Key, Value any }

// parseLiteral reads one literal that makes up the whole text. Literals with commas between them
// are a tuple.
func parseLiteral(text string) (any, error) {
	p := &parser{text: text}
	value, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if p.accept(',') {
		if value, err = p.bareTuple(value); err != nil {
			return nil, err
		}
	}
	p.space()
	if p.pos != len(p.text) {
		return nil, p.fail("unexpected %q", p.text[p.pos:])
	}
	if p.unhashable {
		return nil, ErrUnhashable
	}
	return value, nil
}

type parser struct {
	text       string
	pos        int
	open       int
	unhashable bool
}

func (p *parser) fail(format string, args ...any) error {
	return fmt.Errorf("%w: position %d: %s", ErrSyntax, p.pos+1, fmt.Sprintf(format, args...))
}

// space skips spaces; inside brackets also line ends and comments.
func (p *parser) space() {
	for p.pos < len(p.text) {
		rest := p.text[p.pos:]
		switch {
		case strings.IndexByte(" \t\f", rest[0]) >= 0, p.open > 0 && (rest[0] == '\n' || rest[0] == '\r'):
			p.pos++
		case strings.HasPrefix(rest, "\\\n"):
			p.pos += 2
		case p.open > 0 && rest[0] == '#':
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.pos += end
		default:
			return
		}
	}
}

// accept consumes c if it is the next significant byte.
func (p *parser) accept(c byte) bool {
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxLiteralDepth {
		return nil, p.fail("nested deeper than %d", maxLiteralDepth)
	}
	p.space()
	if p.pos >= len(p.text) {
		return nil, p.fail("unexpected end")
	}
	switch c := p.text[p.pos]; {
	case c == '[':
		return p.bracketed(']', depth)
	case c == '(':
		return p.bracketed(')', depth)
	case c == '{':
		return p.braced(depth)
	case c == '+' || c == '-':
		p.pos++
		return p.signed(c == '-', depth)
	case c == '.' || '0' <= c && c <= '9':
		return p.number()
	default:
		return p.wordOrString()
	}
}

// bracketed reads a list or a tuple; a single element in round brackets without a comma is just
// that element.
func (p *parser) bracketed(closing byte, depth int) (any, error) {
	p.pos++
	p.open++
	items, commas := List{}, 0
	for !p.accept(closing) {
		if len(items) > commas {
			return nil, p.fail("want a comma or %q", string(closing))
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if p.accept(',') {
			commas++
		}
	}
	p.open--
	switch {
	case closing == ']':
		return items, nil
	case len(items) == 1 && commas == 0:
		return items[0], nil
	default:
		return Tuple(items), nil
	}
}

// bareTuple reads the elements of a tuple without brackets that follow the first one and its comma.
func (p *parser) bareTuple(first any) (Tuple, error) {
	items := Tuple{first}
	for p.space(); p.pos < len(p.text); p.space() {
		item, err := p.value(1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if !p.accept(',') {
			break
		}
	}
	return items, nil
}

func (p *parser) braced(depth int) (any, error) {
	p.pos++
	p.open++
	var (
		pairs  = Dict{}
		places = map[any]int{}
		isSet  bool
	)
	for count, commas := 0, 0; !p.accept('}'); count++ {
		if count > commas {
			return nil, p.fail("want a comma or %q", "}")
		}
		pair, hasValue, err := p.entry(depth)
		if err != nil {
			return nil, err
		}
		if count > 0 && isSet == hasValue {
			return nil, p.fail("a set element and a dict entry cannot be mixed")
		}
		isSet = !hasValue
		pairs = p.insert(pairs, places, pair)
		if p.accept(',') {
			commas++
		}
	}
	p.open--
	if !isSet {
		return pairs, nil
	}
	items := make(List, len(pairs))
	for i, pair := range pairs {
		items[i] = pair.Key
	}
	return items, nil
}

func (p *parser) entry(depth int) (pair Pair, hasValue bool, err error) {
	if pair.Key, err = p.value(depth + 1); err != nil {
		return Pair{}, false, err
	}
	if !p.accept(':') {
		return pair, false, nil
	}
	pair.Value, err = p.value(depth + 1)
	return pair, true, err
}

func (p *parser) insert(pairs Dict, places map[any]int, pair Pair) Dict {
	if !hashable(pair.Key) {
		p.unhashable = true
		return append(pairs, pair)
	}
	identity := hashKey(pair.Key)
	if at, seen := places[identity]; seen {
		pairs[at].Value = pair.Value
		return pairs
	}
	places[identity] = len(pairs)
	return append(pairs, pair)
}

func hashable(key any) bool {
	switch k := key.(type) {
	case List, Dict:
		return false
	case Tuple:
		return !slices.ContainsFunc(k, func(item any) bool { return !hashable(item) })
	default:
		return true
	}
}

// hashKey maps a key to a comparable value; all others are compared by their content.
func hashKey(key any) any {
	switch k := key.(type) {
	case nil, bool, int64, float64, string:
		return k
	default:
		return fmt.Sprintf("%T:%v", k, k)
	}
}

// signed reads the operand of a unary plus or minus, which must be a number and must not be signed
// again.
func (p *parser) signed(negative bool, depth int) (any, error) {
	p.space()
	if p.pos < len(p.text) && strings.IndexByte("+-", p.text[p.pos]) >= 0 {
		return nil, p.fail("a number has one sign")
	}
	value, err := p.value(depth + 1)
	if err != nil {
		return nil, err
	}
	if result, ok := negate(value, negative); ok {
		return result, nil
	}
	return nil, p.fail("a sign needs a number")
}
