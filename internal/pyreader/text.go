package pyreader

import (
	"fmt"
	"slices"
	"strings"
)

// Logic says what a patch changes: the symbols that it replaces, wraps or rewrites, the arguments
// and variables that it sets.
func (r *Record) Logic() string {
	verbs := []struct {
		style Style
		verb  string
	}{
		{Replace, "replaces"}, {Wrap, "wraps"}, {Rewrite, "rewrites the source of"}, {Item, "registers"}, {Modules, "installs the module"},
		{Mutate, "changes"}, {Arg, "sets the arguments"}, {Env, "sets the variables"},
	}
	var parts []string
	for _, v := range verbs {
		var targets []string
		for _, e := range r.Effects {
			if e.Style == v.style && !e.Alternative && !slices.Contains(targets, e.Target) {
				targets = append(targets, e.Target)
			}
		}
		if len(targets) > 0 {
			parts = append(parts, v.verb+" "+strings.Join(targets, ", "))
		}
	}
	if len(parts) == 0 {
		return "N/A (acts without changing anything)"
	}
	if len(r.Symbols) == 0 {
		return "N/A (" + strings.Join(parts, "; ") + ")"
	}
	return strings.Join(parts, "; ")
}

// Enabling says when a patch applies: its condition, versions and phase.
func (r *Record) Enabling() string {
	parts := []string{"always"}
	if r.Condition != nil && !r.Condition.Always {
		parts[0] = r.Condition.Words
	}
	for _, v := range []struct {
		whose    string
		versions []string
	}{{"backend", r.BackendVersions}, {"primus", r.PrimusVersions}} {
		if len(v.versions) > 0 {
			parts = append(parts, v.whose+" version "+strings.Join(v.versions, " or "))
		}
	}
	phase := r.Phase
	if phase == "" {
		phase = "any"
	}
	parts = append(parts, "phase "+phase)
	if r.Priority != defaultPriority {
		parts = append(parts, fmt.Sprintf("priority %d", r.Priority))
	}
	return strings.Join(parts, "; ")
}

// Location returns the file and line of the handler.
func (r *Record) Location() string { return fmt.Sprintf("%s:%d", r.File, r.Line) }

// Summary returns the description on one line.
func (r *Record) Summary() string {
	text, _, _ := strings.Cut(strings.TrimSpace(r.Description), "\n\n")
	return strings.Join(strings.Fields(text), " ")
}

// Selection says which records to list; empty fields select all.
type Selection struct{ Backend, Phase, Tag string }

// Select returns the records of a selection. The error names a value that no record has.
func (c *Checkout) Select(s Selection) ([]Record, error) {
	for _, field := range []struct {
		name, want string
		of         func(*Record) []string
	}{
		{"backend", s.Backend, func(r *Record) []string { return []string{r.Backend} }},
		{"phase", s.Phase, func(r *Record) []string { return []string{r.Phase} }},
		{"tag", s.Tag, func(r *Record) []string { return r.Tags }},
	} {
		if err := c.check(field.name, field.want, field.of); err != nil {
			return nil, err
		}
	}
	selected := []Record{}
	for _, r := range c.Records {
		if s.Has(&r) {
			selected = append(selected, r)
		}
	}
	return selected, nil
}

// Has reports whether a record is in a selection. Records for any backend or phase match each of
// them.
func (s Selection) Has(r *Record) bool {
	return (s.Backend == "" || r.Backend == "" || r.Backend == s.Backend) && (s.Phase == "" || r.Phase == "" || r.Phase == s.Phase) &&
		(s.Tag == "" || slices.Contains(r.Tags, s.Tag))
}

// check returns an error where no record has a value.
func (c *Checkout) check(name, want string, of func(*Record) []string) error {
	if want == "" {
		return nil
	}
	var known []string
	for i := range c.Records {
		for _, v := range of(&c.Records[i]) {
			if v == want {
				return nil
			}
			known = append(known, v)
		}
	}
	slices.Sort(known)
	return &UnknownError{What: name, Given: want, Known: slices.DeleteFunc(slices.Compact(known), func(s string) bool { return s == "" })}
}
