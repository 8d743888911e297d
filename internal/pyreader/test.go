package pyreader

import (
	"slices"
	"strings"
)

// test is a part of a condition.
type test struct {
	op      string // and, or, if, leaf, always, never
	of      []*test
	yes, no string // a leaf in words, and its negation in words
}

var always, never = &test{op: "always"}, &test{op: "never"}

func leaf(yes, no string) *test { return &test{op: "leaf", yes: yes, no: no} }

// join combines tests by and or or. It leaves out those without effect and stops at one that
// decides.
func join(op string, of ...*test) *test {
	neutral, decides := always, never
	if op == "or" {
		neutral, decides = never, always
	}
	t := &test{op: op}
	for _, each := range of {
		parts := []*test{each}
		switch each.op {
		case neutral.op:
			continue
		case decides.op:
			return decides
		case op:
			parts = each.of
		}
		for _, part := range parts {
			if !slices.ContainsFunc(t.of, func(other *test) bool { return other.words(false) == part.words(false) }) {
				t.of = append(t.of, part)
			}
		}
	}
	switch len(t.of) {
	case 0:
		return neutral
	case 1:
		return t.of[0]
	}
	return t
}

// choose returns the test yes if a condition holds, otherwise the test no.
func choose(condition, yes, no *test) *test {
	switch {
	case condition.op == "always":
		return yes
	case condition.op == "never":
		return no
	case yes.op == "never":
		return join("and", condition.not(), no)
	case yes.op == "always":
		return join("or", condition, no)
	case no.op == "never":
		return join("and", condition, yes)
	case no.op == "always":
		return join("or", condition.not(), yes)
	case yes.words(false) == no.words(false):
		return yes
	}
	return &test{op: "if", of: []*test{condition, yes, no}}
}

// not returns the negation.
func (t *test) not() *test {
	var of []*test
	for _, each := range t.of {
		of = append(of, each.not())
	}
	switch t.op {
	case "always":
		return never
	case "never":
		return always
	case "leaf":
		return leaf(t.no, t.yes)
	case "and":
		return join("or", of...)
	case "or":
		return join("and", of...)
	}
	return &test{op: "if", of: []*test{t.of[0], of[1], of[2]}}
}

// words returns a test in words, in parentheses if it is part of another one.
func (t *test) words(inside bool) string {
	var parts []string
	for _, each := range t.of {
		parts = append(parts, each.words(true))
	}
	s := strings.Join(parts, " "+t.op+" ")
	switch t.op {
	case "leaf":
		return t.yes
	case "always", "never":
		return t.op
	case "if":
		s = "if " + parts[0] + ": " + parts[1] + ", otherwise " + parts[2]
	}
	if inside {
		return "(" + s + ")"
	}
	return s
}
