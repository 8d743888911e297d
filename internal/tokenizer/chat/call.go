package chat

import (
	"fmt"
	"strings"
)

// builtin is a filter, a test or a method.
type builtin struct{ call func(c *call) any }

// call is a call of a function. Positional arguments are read with argument in their order; done
// checks that none is left.
type call struct {
	e          *evaluator
	at         int
	name       string
	positional []any
	named      map[string]any
	read       int
}

func (c *call) walk() walk { return c.e.walk(c.at) }

func (c *call) fail(format string, args ...any) {
	c.e.fail(c.at, "%s: %s", c.name, fmt.Sprintf(format, args...))
}

// argument returns the argument that is at a position, from 0, or has a name.
func (c *call) argument(i int, name string, otherwise any) any {
	c.read = max(c.read, i+1)
	v, ok := c.named[name]
	if ok {
		delete(c.named, name)
		if i < len(c.positional) {
			c.fail("given the argument %s twice", name)
		}
		return v
	}
	if i < len(c.positional) {
		return c.positional[i]
	}
	return otherwise
}

// done fails for arguments that were not read.
func (c *call) done() {
	if len(c.positional) > c.read {
		c.fail("given %d arguments, want at most %d", len(c.positional), c.read)
	}
	for _, name := range names(c.named) {
		c.fail("given an argument %s, which it does not have", name)
	}
}

// text returns an argument that must be a string.
func (c *call) text(i int, name string) string {
	v := c.argument(i, name, undefined{"the argument " + name})
	s, ok := v.(string)
	if !ok {
		c.fail("given %s, want a string", typeName(v))
	}
	return s
}

// integer returns an argument that must be an integer.
func (c *call) integer(i int, name string, otherwise int64) int64 {
	v := c.argument(i, name, otherwise)
	n, ok := integer(v)
	if !ok {
		c.fail("given %s, want an integer", typeName(v))
	}
	return n
}

// optionalText returns an argument that is a string, or none, which is "".
func (c *call) optionalText(i int, name string) (text string, ok bool) {
	v := c.argument(i, name, nil)
	if v == nil {
		return "", false
	}
	text, ok = v.(string)
	if !ok {
		c.fail("given %s, want a string", typeName(v))
	}
	return text, true
}

// self returns the value that a filter is applied to. A filter goes through a text at least once,
// which counts.
func (c *call) self() any {
	v := c.argument(0, "", undefined{"the value"})
	if s, ok := v.(string); ok {
		c.e.spend(c.at, len(s)/64)
	}
	return v
}

// selfText returns the text of the value that a filter is applied to.
func (c *call) selfText() string { return show(c.walk(), c.self()) }

// items returns the items of the value that a filter is applied to.
func (c *call) items() []any { return c.e.items(c.at, c.self()) }

// attributeOf returns what a dotted name leads to from a value.
func (c *call) attributeOf(v any, name any) any {
	if i, ok := integer(name); ok {
		return c.e.index(c.at, v, i)
	}
	for part := range strings.SplitSeq(show(c.walk(), name), ".") {
		v = c.e.index(c.at, v, part)
	}
	return v
}

// apply calls a filter or a test by its name, with the arguments from position first on.
func (c *call) apply(table map[string]builtin, what, name string, v any, first int) any {
	b, ok := table[name]
	if !ok {
		c.fail("the %s %q is not supported", what, name)
	}
	var rest []any
	if first < len(c.positional) {
		rest = c.positional[first:]
	}
	c.read = len(c.positional)
	return b.call(&call{e: c.e, at: c.at, name: what + " " + name, positional: append([]any{v}, rest...)})
}
