package backend

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
)

// Args are the arguments of a backend. An adapter makes them from the parameters of a module,
// patches change them, and a trainer reads them. The top level has no order. Args are not safe for
// concurrent use.
type Args struct {
	values map[string]document.Value
	log    []argChange
}

// argChange is a change that Rewind can undo.
type argChange struct {
	key    string
	before document.Value
	had    bool
	by     string
}

// NewArgs returns arguments with the values of a mapping, without those of some keys.
func NewArgs(params *document.Map, without ...string) *Args {
	a := &Args{values: maps.Collect(params.All())}
	for _, key := range without {
		delete(a.values, key)
	}
	return a
}

// Lookup returns the argument at a dotted path.
func (a *Args) Lookup(path string) (document.Value, bool) {
	if v, ok := a.values[path]; ok {
		return v, true
	}
	key, rest, _ := strings.Cut(path, ".")
	m, _ := a.values[key].Map()
	return m.Get(rest)
}

// Has reports whether there is a top-level argument of this name.
func (a *Args) Has(key string) bool {
	_, ok := a.values[key]
	return ok
}

// Keys returns the names of the top-level arguments, sorted.
func (a *Args) Keys() []string { return slices.Sorted(maps.Keys(a.values)) }

// Map returns the arguments as they are now, sorted by name.
func (a *Args) Map() *document.Map {
	v, err := document.FromGo(a.values)
	if err != nil {
		panic("BUG: " + err.Error()) // every value is one already
	}
	m, _ := v.Map()
	return m
}

// Set sets the argument at a dotted path and records who set it. It makes missing mappings along
// the path; another value there is an error, and so is a value that a configuration cannot hold.
// Setting an argument to its present value changes nothing.
func (a *Args) Set(path string, value any, by string) error {
	v, err := document.FromGo(value)
	if err != nil {
		return fmt.Errorf("argument %s: %w", path, err)
	}
	key, rest, nested := strings.Cut(path, ".")
	old, had := a.values[key]
	if nested {
		if v, err = put(old, rest, v); err != nil {
			return fmt.Errorf("argument %s: %s is %w", path, key, err)
		}
	}
	if !had || !old.Equal(v) {
		a.log = append(a.log, argChange{key, old, had, by})
		a.values[key] = v
	}
	return nil
}

// put returns a copy of a mapping with a value at a dotted path.
func put(into document.Value, path string, v document.Value) (document.Value, error) {
	m, isMap := into.Map()
	if !isMap && !into.IsNull() {
		return into, fmt.Errorf("%s %s, want a mapping", into.Kind(), into.Text())
	}
	fields := map[string]any{}
	for key, value := range m.All() {
		fields[key] = value
	}
	key, rest, nested := strings.Cut(path, ".")
	if nested {
		child, _ := m.Lookup(key)
		var err error
		if v, err = put(child, rest, v); err != nil {
			return into, err
		}
	}
	fields[key] = v
	return document.FromGo(fields)
}

// Delete removes a top-level argument and records who removed it.
func (a *Args) Delete(key, by string) {
	if old, had := a.values[key]; had {
		a.log = append(a.log, argChange{key, old, true, by})
		delete(a.values, key)
	}
}

// SetBy returns who last changed a top-level argument, "" if nobody did.
func (a *Args) SetBy(key string) string {
	for _, c := range slices.Backward(a.log) {
		if c.key == key {
			return c.by
		}
	}
	return ""
}

// ArgsMark is a state of Args.
type ArgsMark struct{ n int }

// Changes returns the number of changes up to the mark.
func (m ArgsMark) Changes() int { return m.n }

// Mark returns the present state.
func (a *Args) Mark() ArgsMark { return ArgsMark{len(a.log)} }

// Rewind returns to a state.
func (a *Args) Rewind(to ArgsMark) {
	for _, c := range slices.Backward(a.log[to.n:]) {
		if c.had {
			a.values[c.key] = c.before
		} else {
			delete(a.values, c.key)
		}
	}
	a.log = a.log[:to.n]
}

// Conflict is a parameter whose value differs from the argument of the same name, which is kept.
type Conflict struct {
	Key           string
	Kept, Dropped document.Value
	By            string // who set the argument
}

// String says what is kept, who set it, and what is dropped.
func (c Conflict) String() string {
	where := ""
	if o := c.Dropped.Origin(); !o.IsZero() {
		where = " (" + o.String() + ")"
	}
	return fmt.Sprintf("argument %s: %s keeps %s, the parameter's value %s%s is dropped", c.Key, c.By, Show(c.Kept), Show(c.Dropped), where)
}

// Show writes a value on one line.
func Show(v document.Value) string {
	switch v.Kind() {
	case document.KindList, document.KindMap:
		if text, err := json.Marshal(v.Any()); err == nil {
			return string(text)
		}
		return v.Kind().String()
	case document.KindString:
		return fmt.Sprintf("%q", v.Text())
	}
	return v.Text()
}

// Merge adds the parameters that are not arguments yet. It returns their sorted names, and the
// conflicts of the others. adapter is named as the author of arguments that nobody else has set.
func (a *Args) Merge(params *document.Map, adapter string) (added []string, conflicts []Conflict) {
	for key, value := range params.All() {
		kept, ok := a.values[key]
		switch {
		case !ok && a.SetBy(key) == "":
			a.values[key] = value
			added = append(added, key)
		case ok && !kept.Equal(value):
			by := a.SetBy(key)
			if by == "" {
				by = adapter
			}
			conflicts = append(conflicts, Conflict{key, kept, value, by})
		}
	}
	slices.Sort(added)
	return added, conflicts
}
