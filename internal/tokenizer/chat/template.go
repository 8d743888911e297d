package chat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/meter"
)

// Template is a parsed chat template.
type Template struct {
	source string
	nodes  []node
	marks  bool // it has generation blocks
}

// maxSource bounds the length of a template.
const maxSource = 1 << 20

// Parse reads a template. Newlines of other systems count as \n, and one newline at the end is
// dropped.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > maxSource {
		return nil, fmt.Errorf("chat: the template has %d bytes, want at most %d", len(source), maxSource)
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{source: source, tokens: tokens}
	t = &Template{source: source, nodes: p.body()}
	t.marks = p.marks
	return t, nil
}

// Vars are the variables that a template sees besides its functions: nil, bool, int64, float64,
// string, *Map, or values of ParseJSON.
type Vars map[string]any

// Render renders the template. now is what strftime_now returns. The spans are those of generation
// blocks. An error of the budget is a *meter.Error.
func (t *Template) Render(ctx context.Context, vars Vars, now time.Time) (text string, spans []Span, err error) {
	defer catch(&err)
	e := &evaluator{source: t.source, out: &strings.Builder{}, now: now, meter: meter.New(ctx, "the chat template", "a simpler template is needed", meter.Budget{Steps: maxSteps, Time: maxTime}), filters: filters, tests: tests}
	root := &scope{variables: maps.Clone(functions)}
	s := root.inner()
	for name, v := range vars {
		s.variables[name] = v
	}
	e.run(t.nodes, s)
	return e.out.String(), e.spans, nil
}

// functions are the functions that templates can call.
var functions = map[string]any{
	"range": &function{"range", func(c *call) any {
		first, second, step := c.integer(0, "", 0), c.argument(1, "", nil), c.integer(2, "", 1)
		c.done()
		from, to := int64(0), first
		if second != nil {
			end, ok := integer(second)
			if !ok {
				c.fail("given %s, want an integer", typeName(second))
			}
			from, to = first, end
		}
		if step == 0 {
			c.fail("the step is 0")
		}
		l := &list{}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if len(l.items) == maxRange {
				c.fail("it has more than %d numbers", maxRange)
			}
			l.items = append(l.items, i)
			if step > 0 && i > to-step || step < 0 && i < to-step {
				break
			}
		}
		c.e.spend(c.at, len(l.items))
		return l
	}},
	"namespace": &function{"namespace", func(c *call) any {
		ns := &namespace{map[string]any{}}
		if m, ok := c.argument(0, "", nil).(*Map); ok {
			for i, key := range m.keys {
				ns.attributes[show(c.walk(), key)] = m.values[i]
			}
		}
		maps.Copy(ns.attributes, c.named)
		c.named = nil
		c.done()
		return ns
	}},
	"dict": &function{"dict", func(c *call) any {
		m := NewMap()
		for _, name := range names(c.named) {
			m.set(name, c.named[name])
		}
		c.named = nil
		c.done()
		return m
	}},
	"raise_exception": &function{"raise_exception", func(c *call) any {
		text := show(c.walk(), c.argument(0, "message", ""))
		c.done()
		line, column := position(c.e.source, c.at)
		panic(&Error{Line: line, Column: column, Text: text, Raised: true})
	}},
	"strftime_now": &function{"strftime_now", func(c *call) any {
		format := c.text(0, "format")
		c.done()
		text, err := strftime(format, c.e.now)
		if err != nil {
			c.fail("%v", err)
		}
		return text
	}},
}

// dates are the codes of strftime as layouts of Go.
var dates = map[string]string{
	"a": "Mon", "A": "Monday", "b": "Jan", "B": "January", "d": "02", "-d": "2", "e": "_2", "F": "2006-01-02", "H": "15", "I": "03", "-I": "3", "j": "002",
	"m": "01", "-m": "1", "M": "04", "p": "PM", "S": "05", "T": "15:04:05", "y": "06", "Y": "2006", "Z": "MST", "z": "-0700",
}

func strftime(format string, now time.Time) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(format, "%")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		n := 1
		if strings.HasPrefix(after, "-") {
			n = 2
		}
		if len(after) < n {
			return "", errors.New("the format ends after %")
		}
		code := after[:n]
		layout, ok := dates[code]
		switch {
		case code == "%":
			b.WriteByte('%')
		case !ok:
			return "", fmt.Errorf("the code %%%s is not supported", code)
		default:
			b.WriteString(now.Format(layout))
		}
		format = after[n:]
	}
}
