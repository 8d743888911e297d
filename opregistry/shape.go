package opregistry

import (
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/tensor"
)

// shapeRule is the shape of an operand.
type shapeRule struct {
	kind    shapeKind
	leading bool    // axesShape: .. comes first
	own     bool    // axesShape, rankShape: * comes first
	same    int     // sameShape: the operand
	sameAt  uintptr // sameShape: the offset of that
	axes    []size  // axesShape; one of countShape
	text    string  // in the notation
}

type shapeKind uint8

const (
	anyShape   shapeKind = iota
	sameShape            // that of an earlier operand with the same text
	axesShape            // these axes
	countShape           // this number of elements
	rankShape            // this number of axes, or at least that
)

// size is the length of an axis, or a number of elements: factor · symbols + more.
type size struct {
	factor  int
	symbols []int8
	more    int
	filled  bool // at least 1
	free    bool // any length
}

// symbol returns the index of a symbol, a new one if there is none with that name.
func (c *compiler) symbol(name string) int8 {
	if !argName.MatchString(name) {
		fault("given symbol %q in a shape, want letters, digits and _", name)
	}
	for i, s := range c.symbols {
		if s == name {
			return int8(i)
		}
	}
	if len(c.symbols) == maxSymbols {
		fault("shapes have more than %d symbols", maxSymbols)
	}
	c.symbols = append(c.symbols, name)
	return int8(len(c.symbols) - 1)
}

// shapeOf compiles the shape of the operand at a place of the order of checking.
func (c *compiler) shapeOf(at int) {
	i := c.order[at]
	o, text := &c.operands[i], c.specs[i].shape
	if text == "" {
		return
	}
	o.shape = shapeRule{text: text}
	inner := strings.Fields(text[1 : len(text)-1])
	if text[0] == '(' {
		if len(inner) != 1 {
			fault("operand %s: given %s, want one number of elements in parentheses", o.name, text)
		}
		o.shape.kind, o.shape.axes = countShape, []size{c.size(inner[0])}
		return
	}
	if o.form != formOne {
		fault("operand %s is a list, want no axes but a number of elements such as (1)", o.name)
	}
	fixed := !slices.Contains(inner, "*") && !slices.Contains(inner, "_")
	for _, k := range c.order[:at] {
		earlier := &c.operands[k]
		if fixed && earlier.shape.text == text && earlier.need == needAlways {
			o.shape.kind, o.shape.same, o.shape.sameAt = sameShape, k, earlier.offset
			return
		}
	}
	o.shape.kind = axesShape
	for k, word := range inner {
		if word == ".." || word == "*" {
			if k > 0 {
				fault("operand %s: shape %s has %s after another axis", o.name, text, word)
			}
			o.shape.leading, o.shape.own = word == "..", word == "*"
			c.leading = c.leading || o.shape.leading
			continue
		}
		s := c.size(word)
		if len(s.symbols) > 1 {
			fault("operand %s: shape %s has an axis with two symbols", o.name, text)
		}
		o.shape.axes = append(o.shape.axes, s)
	}
	if !o.shape.leading && !slices.ContainsFunc(o.shape.axes, func(s size) bool { return !s.free }) {
		o.shape.kind = rankShape
	}
}

// bound requires that the axes of an operand or the length of a list set each symbol of a number of
// elements.
func (c *compiler) bound() {
	set := map[int8]bool{rowsSymbol: c.leading}
	if c.lists != nil {
		set[c.lists.length] = true
	}
	for i := range c.operands {
		o := &c.operands[i]
		set[o.length] = true
		if o.shape.kind == axesShape {
			for _, axis := range o.shape.axes {
				for _, symbol := range axis.symbols {
					set[symbol] = true
				}
			}
		}
	}
	for i := range c.operands {
		if r := &c.operands[i].shape; r.kind == countShape {
			for _, symbol := range r.axes[0].symbols {
				if !set[symbol] {
					fault("operand %s: no axis and no list has the length %s of %s", c.operands[i].name, c.symbols[symbol], r.text)
				}
			}
		}
	}
}

// size reads a size such as 1, cols, cols>0, 2*h, b+1 or b*h*s.
func (c *compiler) size(word string) size {
	if word == "_" {
		return size{free: true}
	}
	word, filled := strings.CutSuffix(word, ">0")
	s := size{factor: 1, filled: filled}
	product, more, _ := strings.Cut(word, "+")
	if more != "" {
		n, err := strconv.Atoi(more)
		if err != nil {
			fault("given size %q, want one such as b+1", word)
		}
		s.more = n
	}
	for part := range strings.SplitSeq(product, "*") {
		if n, err := strconv.Atoi(part); err == nil {
			s.factor *= n
		} else {
			s.symbols = append(s.symbols, c.symbol(part))
		}
	}
	return s
}

// sizes are what the symbols of a call stand for; −1 for one that no operand has set.
type sizes struct {
	of      [maxSymbols]int
	leading tensor.Shape // the axes of ..
	led     bool         // leading is set
}

// of returns the value of a size, −1 when it depends on a symbol that is not set.
func (s *size) of(z *sizes) int {
	if s.free {
		return -1
	}
	n := s.factor
	for _, symbol := range s.symbols {
		v := z.of[symbol]
		if v < 0 {
			return -1
		}
		n *= v
	}
	return n + s.more
}

// fits reports whether an axis has this size. It sets a symbol that was not.
func (s *size) fits(z *sizes, n int) bool {
	if s.free {
		return true
	}
	if len(s.symbols) == 0 {
		return n == s.factor+s.more
	}
	v := &z.of[s.symbols[0]]
	if *v < 0 {
		n -= s.more
		if n < 0 || s.factor == 0 || n%s.factor != 0 || s.filled && n == 0 {
			return false
		}
		*v = n / s.factor
		return true
	}
	return *v*s.factor+s.more == n
}

// fits reports whether a tensor has the shape of a rule of axes. It sets symbols that were not.
func (r *shapeRule) fits(z *sizes, shape tensor.Shape) bool {
	leading := len(shape) - len(r.axes)
	if leading < 0 || leading > 0 && !r.leading && !r.own {
		return false
	}
	for i := range r.axes {
		if !r.axes[i].fits(z, shape[leading+i]) {
			return false
		}
	}
	if !r.leading {
		return true
	}
	if z.led {
		return z.leading.Equal(shape[:leading])
	}
	z.led, z.leading = true, shape[:leading]
	z.of[rowsSymbol] = shape[:leading].NumElements()
	return true
}

// describe writes what a rule of axes or of their number requires in a call.
func (r *shapeRule) describe(p *plan, z *sizes) string {
	if r.kind == rankShape {
		count := axes(len(r.axes))
		if r.own {
			count = "at least " + count
		}
		return count
	}
	var parts []string
	if r.leading && z.led {
		for _, n := range z.leading {
			parts = append(parts, strconv.Itoa(n))
		}
	} else if r.leading {
		parts = append(parts, "..")
	} else if r.own {
		parts = append(parts, "*")
	}
	for i := range r.axes {
		if n := r.axes[i].of(z); n >= 0 {
			parts = append(parts, strconv.Itoa(n))
		} else {
			parts = append(parts, r.axes[i].describe(p))
		}
	}
	got := "[" + strings.Join(parts, " ") + "]"
	if got == r.text {
		return "shape " + got
	}
	return "shape " + got + ", as " + r.text
}

func (s *size) describe(p *plan) string {
	if s.free {
		return "_"
	}
	var parts []string
	if s.factor != 1 || len(s.symbols) == 0 {
		parts = append(parts, strconv.Itoa(s.factor))
	}
	for _, symbol := range s.symbols {
		parts = append(parts, p.symbols[symbol])
	}
	text := strings.Join(parts, "*")
	if s.more != 0 {
		text += "+" + strconv.Itoa(s.more)
	}
	if s.filled {
		text += ">0"
	}
	return text
}
