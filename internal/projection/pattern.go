package projection

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/document"
)

// maxLayers bounds the layers that an expression can write.
const maxLayers = 1 << 16

// moePattern returns which layers have experts, from moe_layer_freq: a number n means every nth
// layer from the first one on, a list has 1 for such a layer, and text is a Python expression of
// lists, such as ([0]*3+[1]*58).
func (r *reader) moePattern(layers int) []bool {
	const key = "moe_layer_freq"
	pattern := make([]bool, layers)
	v, ok := r.lookup(key)
	if !ok {
		v, _ = document.FromGo(1)
	}
	flags, every, err := layerFlags(v)
	switch {
	case err != nil:
		r.failAt(key, "want a number, a list of 0 and 1, or an expression of lists such as ([0]*3+[1]*58): %v", err)
	case every > 0:
		for i := range pattern {
			pattern[i] = i%every == 0
		}
	case len(flags) < layers:
		r.failAt(key, "want a flag for each of the %d layers, not %d", layers, len(flags))
	default:
		for i := range pattern {
			pattern[i] = flags[i] != 0
		}
	}
	return pattern
}

// layerFlags returns a list of flags, or the distance between layers with experts.
func layerFlags(v document.Value) (flags []int, every int, err error) {
	if n, ok := v.Int64(); ok {
		if n < 1 || n > maxLayers {
			return nil, 0, fmt.Errorf("the number is below 1 or above %d", maxLayers)
		}
		return nil, int(n), nil
	}
	if items, ok := v.List(); ok {
		for _, item := range items {
			n, ok := item.Int64()
			if !ok {
				return nil, 0, fmt.Errorf("the list holds %s", item.Describe())
			}
			flags = append(flags, int(n))
		}
		return flags, 0, nil
	}
	text, ok := v.Str()
	if !ok {
		return nil, 0, fmt.Errorf("it is neither")
	}
	p := expression{rest: strings.ReplaceAll(text, " ", "")}
	got, err := p.sum()
	switch {
	case err != nil:
		return nil, 0, err
	case p.rest != "":
		return nil, 0, fmt.Errorf("unexpected %q", p.rest)
	case got.list == nil && (got.number < 1 || got.number > maxLayers):
		return nil, 0, fmt.Errorf("the number is below 1 or above %d", maxLayers)
	case got.list == nil:
		return nil, got.number, nil
	}
	return got.list, 0, nil
}

// operand is a number, or a list where there is one.
type operand struct {
	number int
	list   []int
}

// expression parses sums and products of lists and numbers.
type expression struct {
	rest  string
	depth int
}

func (p *expression) accept(sign string) bool {
	rest, ok := strings.CutPrefix(p.rest, sign)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *expression) sum() (operand, error) {
	left, err := p.product()
	for err == nil && p.accept("+") {
		var right operand
		if right, err = p.product(); err == nil {
			if (left.list == nil) != (right.list == nil) {
				return operand{}, fmt.Errorf("a list and a number cannot be added")
			}
			left = operand{left.number + right.number, append(left.list, right.list...)}
		}
	}
	return left, err
}

func (p *expression) product() (operand, error) {
	left, err := p.atom()
	for err == nil && p.accept("*") {
		var right operand
		if right, err = p.atom(); err != nil {
			break
		}
		if left.list == nil {
			left, right = right, left
		}
		if right.list != nil || right.number < 0 || len(left.list)*right.number > maxLayers {
			return operand{}, fmt.Errorf("want a list times a number, with at most %d elements", maxLayers)
		}
		if left.list == nil {
			return operand{}, fmt.Errorf("want a list times a number")
		}
		repeated := []int{}
		for range right.number {
			repeated = append(repeated, left.list...)
		}
		left = operand{list: repeated}
	}
	return left, err
}

func (p *expression) atom() (operand, error) {
	switch {
	case p.accept("("):
		if p.depth++; p.depth > 100 {
			return operand{}, fmt.Errorf("more than 100 parentheses")
		}
		inner, err := p.sum()
		if err == nil && !p.accept(")") {
			err = fmt.Errorf("a parenthesis is not closed")
		}
		return inner, err
	case p.accept("["):
		list := []int{}
		for !p.accept("]") {
			n, err := p.number()
			if err != nil {
				return operand{}, err
			}
			list = append(list, n)
			p.accept(",")
		}
		return operand{list: list}, nil
	}
	n, err := p.number()
	return operand{number: n}, err
}

func (p *expression) number() (int, error) {
	end := 0
	for end < len(p.rest) && p.rest[end] >= '0' && p.rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(p.rest[:end])
	if err != nil || n > maxLayers {
		return 0, fmt.Errorf("want a number up to %d at %q", maxLayers, document.Shorten(p.rest))
	}
	p.rest = p.rest[end:]
	return n, nil
}
