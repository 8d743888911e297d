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

// all returns the conjunction of tests.
func all(of ...*test) *test { return join("and", always, never, of) }

// either returns the disjunction of tests.
func either(of ...*test) *test { return join("or", never, always, of) }

// join combines tests. It leaves out those without effect and stops at one that decides.
func join(op string, nothing, decides *test, of []*test) *test {
	t := &test{op: op}
	for _, each := range of {
		switch each.op {
		case nothing.op:
			continue
		case decides.op:
			return decides
		case op:
			t.of = append(t.of, each.of...)
			continue
		}
		t.of = append(t.of, each)
	}
	t.of = distinct(t.of)
	switch len(t.of) {
	case 0:
		return nothing
	case 1:
		return t.of[0]
	}
	return t
}

func distinct(of []*test) []*test {
	var kept []*test
	for _, t := range of {
		if !slices.ContainsFunc(kept, func(other *test) bool { return other.words(false) == t.words(false) }) {
			kept = append(kept, t)
		}
	}
	return kept
}

// choose returns the test yes if a condition holds, otherwise the test no.
func choose(condition, yes, no *test) *test {
	switch {
	case condition.op == "always":
		return yes
	case condition.op == "never":
		return no
	case yes.op == "never":
		return all(condition.not(), no)
	case yes.op == "always":
		return either(condition, no)
	case no.op == "never":
		return all(condition, yes)
	case no.op == "always":
		return either(condition.not(), yes)
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
		return either(of...)
	case "or":
		return all(of...)
	}
	return &test{op: "if", of: []*test{t.of[0], of[1], of[2]}}
}

// words returns a test in words, in parentheses if it is part of another one.
func (t *test) words(inside bool) string {
	var s string
	switch t.op {
	case "leaf":
		return t.yes
	case "if":
		s = "if " + t.of[0].words(true) + ": " + t.of[1].words(true) + ", otherwise " + t.of[2].words(true)
	case "and", "or":
		var parts []string
		for _, each := range t.of {
			parts = append(parts, each.words(true))
		}
		s = strings.Join(parts, " "+t.op+" ")
	default:
		return t.op
	}
	if inside {
		return "(" + s + ")"
	}
	return s
}
