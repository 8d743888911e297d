package chat

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of one rendering.
const (
	maxSteps  = 3_000_000
	maxOutput = 64 << 20
	maxCalls  = 100 // of macros within each other
	maxRange  = 100_000
)

// scope holds variables.
type scope struct {
	variables map[string]any
	outer     *scope
}

func (s *scope) inner() *scope { return &scope{map[string]any{}, s} }

func (s *scope) lookup(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.variables[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// evaluator renders a template once. Its methods panic with an *Error.
type evaluator struct {
	source  string
	out     *strings.Builder
	spans   []Span
	nested  int // captures of output
	calls   int
	steps   int
	now     time.Time
	filters map[string]builtin
	tests   map[string]builtin
}

// Span is a part of a text, in bytes.
type Span struct{ Begin, End int }

func (e *evaluator) fail(n int, format string, args ...any) {
	line, column := position(e.source, n)
	panic(&Error{Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// spend counts work against the limit.
func (e *evaluator) spend(at, work int) {
	e.steps += 1 + work
	if e.steps > maxSteps {
		e.fail(at, "the template takes more than %d steps", maxSteps)
	}
}

// jump is how a statement ends.
type jump uint8

const (
	goesOn jump = iota
	breaks
	continues
)

func (e *evaluator) run(nodes []node, s *scope) jump {
	for _, n := range nodes {
		if j := e.statement(n, s); j != goesOn {
			return j
		}
	}
	return goesOn
}

func (e *evaluator) statement(n node, s *scope) jump {
	e.spend(n.position(), 0)
	switch n := n.(type) {
	case textNode:
		e.print(n.position(), n.text)
	case printNode:
		e.print(n.position(), show(e.value(n.value, s)))
	case forNode:
		return e.loop(n, s)
	case ifNode:
		if truth(e.value(n.condition, s)) {
			return e.run(n.body, s)
		}
		return e.run(n.otherwise, s)
	case setNode:
		e.set(n, s)
	case macroNode:
		s.variables[n.name] = e.macro(n, s)
	case filterNode:
		v := any(e.capture(func() { e.run(n.body, s.inner()) }))
		for _, f := range n.filter {
			v = e.filter(v, f, s)
		}
		e.print(n.position(), show(v))
	case generationNode:
		if e.nested > 0 {
			e.fail(n.position(), "generation within a macro or a block whose text is a value is not supported")
		}
		begin := e.out.Len()
		j := e.run(n.body, s.inner())
		e.spans = append(e.spans, Span{begin, e.out.Len()})
		return j
	case jumpNode:
		if n.next {
			return continues
		}
		return breaks
	}
	return goesOn
}

func (e *evaluator) print(at int, text string) {
	if e.out.Len()+len(text) > maxOutput {
		e.fail(at, "the text is longer than %d bytes", maxOutput)
	}
	e.spend(at, len(text)/64)
	e.out.WriteString(text)
}

// capture returns what a function prints.
func (e *evaluator) capture(f func()) string {
	outer := e.out
	e.out = &strings.Builder{}
	e.nested++
	f()
	text := e.out.String()
	e.nested--
	e.out = outer
	return text
}

func (e *evaluator) set(n setNode, s *scope) {
	var v any
	if n.value != nil {
		v = e.value(n.value, s)
	} else {
		v = e.capture(func() { e.run(n.body, s.inner()) })
		for _, f := range n.filter {
			v = e.filter(v, f, s)
		}
	}
	if n.target.attribute == "" {
		e.assign(n.position(), n.target, v, s)
		return
	}
	of, _ := s.lookup(n.target.names[0])
	ns, ok := of.(*namespace)
	if !ok {
		e.fail(n.position(), "%s is no namespace, so that its attribute %s cannot be set", n.target.names[0], n.target.attribute)
	}
	ns.attributes[n.target.attribute] = v
}

func (e *evaluator) assign(at int, t target, v any, s *scope) {
	if !t.unpack {
		s.variables[t.names[0]] = v
		return
	}
	items := e.items(at, v)
	if len(items) != len(t.names) {
		e.fail(at, "got %d values for %d names", len(items), len(t.names))
	}
	for i, name := range t.names {
		s.variables[name] = items[i]
	}
}

// loop is the variable loop of a for.
type loop struct {
	items []any
	index int // from 0
}

func (e *evaluator) loop(n forNode, s *scope) jump {
	items := e.items(n.position(), e.value(n.over, s))
	if n.condition != nil {
		var kept []any
		for _, item := range items {
			inner := s.inner()
			inner.variables["loop"] = undefined{"loop"}
			e.assign(n.position(), n.target, item, inner)
			if truth(e.value(n.condition, inner)) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		return e.run(n.otherwise, s.inner())
	}
	for i, item := range items {
		e.spend(n.position(), 0)
		inner := s.inner()
		inner.variables["loop"] = &loop{items, i}
		e.assign(n.position(), n.target, item, inner)
		if e.run(n.body, inner) == breaks {
			break
		}
	}
	return goesOn
}

func (l *loop) attribute(name string) any {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.index + 1)
	case "index0":
		return int64(l.index)
	case "revindex":
		return int64(n - l.index)
	case "revindex0":
		return int64(n - l.index - 1)
	case "first":
		return l.index == 0
	case "last":
		return l.index == n-1
	case "length":
		return int64(n)
	case "depth":
		return int64(1)
	case "depth0":
		return int64(0)
	case "previtem":
		if l.index > 0 {
			return l.items[l.index-1]
		}
	case "nextitem":
		if l.index < n-1 {
			return l.items[l.index+1]
		}
	case "cycle":
		return &function{"loop.cycle", func(c *call) any {
			if len(c.positional) == 0 {
				c.fail("want at least one argument")
			}
			all := c.positional
			c.positional = nil
			return all[l.index%len(all)]
		}}
	}
	return undefined{"loop." + name}
}

func (e *evaluator) macro(n macroNode, defined *scope) *function {
	return &function{n.name, func(c *call) any {
		e.calls++
		if e.calls > maxCalls {
			c.fail("macros call each other more than %d levels deep", maxCalls)
		}
		s := defined.inner()
		for i, name := range n.parameters {
			v := c.argument(i, name, undefined{name})
			if _, missing := v.(undefined); missing {
				if d := i - (len(n.parameters) - len(n.defaults)); d >= 0 {
					v = e.value(n.defaults[d], s)
				}
			}
			s.variables[name] = v
		}
		c.done()
		text := e.capture(func() { e.run(n.body, s) })
		e.calls--
		return text
	}}
}

// items returns what a for goes over.
func (e *evaluator) items(at int, v any) []any {
	var all []any
	switch v := v.(type) {
	case undefined:
	case *list:
		all = v.items
	case *Map:
		all = v.keys
	case string:
		for _, r := range v {
			all = append(all, string(r))
		}
	default:
		e.fail(at, "%s has no items to go over", typeName(v))
	}
	e.spend(at, len(all)/8)
	return all
}

func (e *evaluator) values(all []expr, s *scope) []any {
	values := make([]any, len(all))
	for i, x := range all {
		values[i] = e.value(x, s)
	}
	return values
}

// value evaluates an expression.
func (e *evaluator) value(x expr, s *scope) any {
	e.spend(x.position(), 0)
	switch x := x.(type) {
	case constExpr:
		return x.value
	case nameExpr:
		if v, ok := s.lookup(x.name); ok {
			return v
		}
		return undefined{x.name}
	case listExpr:
		return &list{e.values(x.items, s), x.tuple}
	case dictExpr:
		m := NewMap()
		for i, key := range x.keys {
			k := e.value(key, s)
			if !hashable(k) {
				e.fail(key.position(), "got %s as a key, want a string or a number", typeName(k))
			}
			m.set(k, e.value(x.values[i], s))
		}
		return m
	case unaryExpr:
		return e.unary(x, s)
	case binaryExpr:
		return e.binary(x, s)
	case compareExpr:
		left := e.value(x.first, s)
		for i, op := range x.ops {
			right := e.value(x.rest[i], s)
			if !e.compare(x.position(), op, left, right) {
				return false
			}
			left = right
		}
		return true
	case ifExpr:
		switch {
		case truth(e.value(x.condition, s)):
			return e.value(x.value, s)
		case x.otherwise != nil:
			return e.value(x.otherwise, s)
		}
		return undefined{"the value of an if without else"}
	case attributeExpr:
		return e.attribute(x.position(), e.value(x.of, s), x.name)
	case indexExpr:
		return e.index(x.position(), e.value(x.of, s), e.value(x.index, s))
	case sliceExpr:
		return e.slice(x, s)
	case callExpr:
		f := e.value(x.function, s)
		callee, ok := f.(*function)
		if !ok {
			e.fail(x.position(), "%s cannot be called", typeName(f))
		}
		return e.call(x.position(), callee.name, callee.call, nil, x.arguments, s)
	case filterExpr:
		return e.filter(e.value(x.value, s), x.filterCall, s)
	case testExpr:
		v := e.value(x.value, s)
		return truth(e.call(x.position(), "test "+x.name, e.tests[x.name].call, []any{v}, x.arguments, s)) != x.not
	}
	panic(fmt.Sprintf("BUG: expression %T", x))
}

func (e *evaluator) filter(v any, f filterCall, s *scope) any {
	return e.call(f.at, "filter "+f.name, e.filters[f.name].call, []any{v}, f.arguments, s)
}

// call calls a function with values in front of its arguments.
func (e *evaluator) call(at int, name string, f func(*call) any, front []any, a arguments, s *scope) any {
	c := &call{e: e, at: at, name: name, positional: append(front, e.values(a.positional, s)...)}
	for i, key := range a.names {
		if c.named == nil {
			c.named = map[string]any{}
		}
		c.named[key] = e.value(a.named[i], s)
	}
	return f(c)
}

func (e *evaluator) unary(x unaryExpr, s *scope) any {
	v := e.value(x.value, s)
	if x.op == "not" {
		return !truth(v)
	}
	if i, ok := integer(v); ok {
		if x.op == "-" {
			return -i
		}
		return i
	}
	f, ok := v.(float64)
	if !ok {
		e.fail(x.position(), "the sign %s is before %s, want a number", x.op, typeName(v))
	}
	if x.op == "-" {
		return -f
	}
	return f
}

func (e *evaluator) binary(x binaryExpr, s *scope) any {
	left := e.value(x.left, s)
	switch x.op {
	case "and":
		if !truth(left) {
			return left
		}
		return e.value(x.right, s)
	case "or":
		if truth(left) {
			return left
		}
		return e.value(x.right, s)
	}
	right := e.value(x.right, s)
	if x.op == "~" {
		return e.join(x.position(), show(left), show(right))
	}
	if a, ok := left.(string); ok {
		if b, ok := right.(string); ok && x.op == "+" {
			return e.join(x.position(), a, b)
		}
	}
	if a, ok := left.(*list); ok {
		if b, ok := right.(*list); ok && x.op == "+" && a.tuple == b.tuple {
			e.spend(x.position(), len(a.items)+len(b.items))
			return &list{append(append([]any{}, a.items...), b.items...), a.tuple}
		}
	}
	if x.op == "*" {
		if v, ok := e.repeat(x.position(), left, right); ok {
			return v
		}
		if v, ok := e.repeat(x.position(), right, left); ok {
			return v
		}
	}
	if v, ok := e.arithmetic(x.position(), x.op, left, right); ok {
		return v
	}
	e.fail(x.position(), "%s cannot be applied to %s and %s", x.op, typeName(left), typeName(right))
	return nil
}

func (e *evaluator) join(at int, a, b string) string {
	if len(a)+len(b) > maxOutput {
		e.fail(at, "the text is longer than %d bytes", maxOutput)
	}
	e.spend(at, (len(a)+len(b))/64)
	return a + b
}

// repeat returns a string or a list several times.
func (e *evaluator) repeat(at int, v, times any) (any, bool) {
	n, ok := integer(times)
	if !ok {
		return nil, false
	}
	n = max(n, 0)
	switch v := v.(type) {
	case string:
		if n > maxOutput || int64(len(v))*n > maxOutput {
			e.fail(at, "the text is longer than %d bytes", maxOutput)
		}
		e.spend(at, len(v)*int(n)/64)
		return strings.Repeat(v, int(n)), true
	case *list:
		if n > maxSteps {
			e.fail(at, "the template takes more than %d steps", maxSteps)
		}
		e.spend(at, min(len(v.items), maxSteps)*int(n))
		repeated := &list{tuple: v.tuple}
		for range n {
			repeated.items = append(repeated.items, v.items...)
		}
		return repeated, true
	}
	return nil, false
}

func (e *evaluator) arithmetic(at int, op string, left, right any) (any, bool) {
	a, ok := number(left)
	b, both := number(right)
	if !ok || !both {
		return nil, false
	}
	i, whole := integer(left)
	k, bothWhole := integer(right)
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		e.fail(at, "division by zero")
	}
	if whole && bothWhole && op != "/" && !(op == "**" && k < 0) {
		return e.integers(at, op, i, k), true
	}
	switch op {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "/":
		return a / b, true
	case "//":
		return math.Floor(a / b), true
	case "%":
		m := math.Mod(a, b)
		if m != 0 && (m < 0) != (b < 0) {
			m += b
		}
		return m, true
	}
	return math.Pow(a, b), true
}

// integers computes with integers, whose results must fit into 64 bits.
func (e *evaluator) integers(at int, op string, a, b int64) int64 {
	var v int64
	fits := true
	switch op {
	case "+":
		v = a + b
		fits = (v > a) == (b > 0)
	case "-":
		v = a - b
		fits = (v < a) == (b > 0)
	case "*":
		v, fits = product(a, b)
	case "//":
		v = a / b
		if a%b != 0 && (a < 0) != (b < 0) {
			v--
		}
	case "%":
		v = a % b
		if v != 0 && (v < 0) != (b < 0) {
			v += b
		}
	case "**":
		v = 1
		for range min(b, 64) {
			if v, fits = product(v, a); !fits {
				break
			}
		}
		if b > 64 && a != 0 && a != 1 {
			fits = a == -1
			if a == -1 && b%2 != 0 {
				v = -1
			}
		}
		if b > 64 && a == 0 {
			v = 0
		}
	}
	if !fits {
		e.fail(at, "the result of %d %s %d is out of range", a, op, b)
	}
	return v
}

func product(a, b int64) (int64, bool) {
	v := a * b
	return v, a == 0 || v/a == b && !(a == -1 && b == math.MinInt64)
}

func (e *evaluator) compare(at int, op string, left, right any) bool {
	switch op {
	case "==":
		return equal(left, right)
	case "!=":
		return !equal(left, right)
	case "in":
		return e.contains(at, right, left)
	case "not in":
		return !e.contains(at, right, left)
	}
	c, ok := order(left, right)
	if !ok {
		e.fail(at, "%s cannot be applied to %s and %s", op, typeName(left), typeName(right))
	}
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains reports whether a value is in another.
func (e *evaluator) contains(at int, all, one any) bool {
	switch all := all.(type) {
	case string:
		part, ok := one.(string)
		if !ok {
			e.fail(at, "in: got %s, want a string to look for in a string", typeName(one))
		}
		e.spend(at, len(all)/64)
		return strings.Contains(all, part)
	case *Map:
		if !hashable(one) {
			return false
		}
		_, ok := all.get(one)
		return ok
	default:
		for _, item := range e.items(at, all) {
			if equal(item, one) {
				return true
			}
		}
	}
	return false
}

// attribute returns an attribute of a value: a method, else an item.
func (e *evaluator) attribute(at int, of any, name string) any {
	switch of := of.(type) {
	case undefined:
		e.fail(at, "%s is undefined, so that it has no attribute %s", of.name, name)
	case *Map:
		if m, ok := mapMethods[name]; ok {
			return method(name, m, of)
		}
		if v, ok := of.get(name); ok {
			return v
		}
	case string:
		if m, ok := stringMethods[name]; ok {
			return method(name, m, of)
		}
	case *list:
		if m, ok := listMethods[name]; ok {
			return method(name, m, of)
		}
	case *namespace:
		if v, ok := of.attributes[name]; ok {
			return v
		}
	case *loop:
		if name == "changed" {
			e.fail(at, "loop.changed is not supported")
		}
		return of.attribute(name)
	}
	if slices.Contains(otherMethods, name) {
		e.fail(at, "the method %s of %s is not supported", name, typeName(of))
	}
	return undefined{"the attribute " + name + " of " + typeName(of)}
}

func (e *evaluator) index(at int, of, index any) any {
	switch of := of.(type) {
	case undefined:
		e.fail(at, "%s is undefined, so that it has no items", of.name)
	case *Map:
		if hashable(index) {
			if v, ok := of.get(index); ok {
				return v
			}
		}
	case *list:
		if i, ok := integer(index); ok {
			if i < 0 {
				i += int64(len(of.items))
			}
			if 0 <= i && i < int64(len(of.items)) {
				return of.items[i]
			}
		}
	case string:
		if i, ok := integer(index); ok {
			e.spend(at, len(of)/64)
			if i < 0 {
				i += int64(utf8.RuneCountInString(of))
			}
			for _, r := range of {
				if i == 0 {
					return string(r)
				}
				i--
			}
		}
	}
	if name, ok := index.(string); ok {
		return e.attribute(at, of, name)
	}
	return undefined{"the item " + show(index) + " of " + typeName(of)}
}

// slice returns a part of a list or a string.
func (e *evaluator) slice(x sliceExpr, s *scope) any {
	of := e.value(x.of, s)
	bound := func(part expr) *int64 {
		if part == nil {
			return nil
		}
		v := e.value(part, s)
		if v == nil {
			return nil
		}
		i, ok := integer(v)
		if !ok {
			e.fail(part.position(), "got %s in a slice, want an integer", typeName(v))
		}
		return &i
	}
	from, to, step := bound(x.from), bound(x.to), bound(x.step)
	by := int64(1)
	if step != nil {
		by = *step
	}
	if by == 0 {
		e.fail(x.position(), "the step of a slice is 0")
	}
	switch of := of.(type) {
	case string:
		runes := []rune(of)
		e.spend(x.position(), len(runes)/8)
		var b strings.Builder
		for _, i := range indexes(len(runes), from, to, by) {
			b.WriteRune(runes[i])
		}
		return b.String()
	case *list:
		part := &list{tuple: of.tuple}
		for _, i := range indexes(len(of.items), from, to, by) {
			part.items = append(part.items, of.items[i])
		}
		e.spend(x.position(), len(part.items))
		return part
	}
	if u, ok := of.(undefined); ok {
		e.fail(x.position(), "%s is undefined, so that it has no items", u.name)
	}
	e.fail(x.position(), "%s has no slices", typeName(of))
	return nil
}

// indexes returns the indexes of a slice of n items.
func indexes(n int, from, to *int64, step int64) []int {
	length := int64(n)
	low, high := int64(0), length
	if step < 0 {
		low, high = -1, length-1
	}
	clamp := func(v *int64, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i := *v
		if i < 0 {
			i += length
		}
		return min(max(i, low), high)
	}
	begin, end := clamp(from, low), clamp(to, high)
	if step < 0 {
		begin, end = clamp(from, high), clamp(to, low)
	}
	var all []int
	for i := begin; step > 0 && i < end || step < 0 && i > end; {
		all = append(all, int(i))
		if step > length || step < -length {
			break
		}
		i += step
	}
	return all
}
