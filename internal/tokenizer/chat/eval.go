package chat

import (
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/primus-fl/primus/internal/meter"
)

// The limits of one rendering.
const (
	maxSteps  = 3_000_000
	maxOutput = 16 << 20
	maxCalls  = 100 // of macros within each other
	maxRange  = 100_000
	maxTime   = 10 * time.Second
	maxNested = 1000
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
	meter   *meter.Meter
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
	if err := e.meter.Spend(1 + work); err != nil {
		line, column := position(e.source, at)
		panic(&Error{Line: line, Column: column, Text: err.Error(), Err: err})
	}
}

// runes goes through the characters of a text and counts that work.
func (e *evaluator) runes(at int, s string) iter.Seq[rune] {
	const lot = 4096
	return func(yield func(rune) bool) {
		paid := 0
		for i, r := range s {
			if i >= paid {
				e.spend(at, lot/64)
				paid += lot
			}
			if !yield(r) {
				return
			}
		}
	}
}

// walk goes through a value that may hold others, some of them many times.
type walk struct {
	e         *evaluator
	at, depth int
}

func (e *evaluator) walk(at int) walk { return walk{e: e, at: at} }

// into counts a value and returns a walk through what it holds.
func (w walk) into(v any) walk {
	text, _ := v.(string)
	w.e.spend(w.at, len(text)/64)
	if w.depth++; w.depth > maxNested {
		w.e.fail(w.at, "values are within each other more than %d levels deep", maxNested)
	}
	return w
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
		e.print(n.position(), show(e.walk(n.position()), e.value(n.value, s)))
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
		e.print(n.position(), show(e.walk(n.position()), v))
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
		e.fail(at, "given %d values for %d names", len(items), len(t.names))
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
		n := utf8.RuneCountInString(v)
		e.spend(at, n)
		all = make([]any, 0, n)
		for r := range e.runes(at, v) {
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
				e.fail(key.position(), "given %s as a key, want a string or a number", typeName(k))
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
	for _, v := range c.positional {
		if text, ok := v.(string); ok {
			e.spend(at, len(text)/64)
		}
	}
	return f(c)
}
