package backend

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Environ is the environment of a run. It records the changes that the run makes and can undo them.
type Environ struct {
	lookup  func(string) (string, bool)
	set     func(name, value string) error
	unset   func(name string) error
	changes []EnvChange
}

// EnvChange is a variable that a run has set.
type EnvChange struct {
	Name, Value string
	Before      string // its value, if it was set
	WasSet      bool
	Source      string // who set it
}

// ProcessEnviron returns the environment of the process.
func ProcessEnviron() *Environ {
	return &Environ{lookup: os.LookupEnv, set: os.Setenv, unset: os.Unsetenv}
}

// MapEnviron returns an environment that is a map, which it changes.
func MapEnviron(vars map[string]string) *Environ {
	return &Environ{
		lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		set:    func(name, value string) error { vars[name] = value; return nil },
		unset:  func(name string) error { delete(vars, name); return nil },
	}
}

// Overlay returns an environment with the variables of e. Changes of it do not affect e.
func (e *Environ) Overlay() *Environ {
	over := map[string]string{}
	o := MapEnviron(over)
	o.lookup = func(name string) (string, bool) {
		if v, ok := over[name]; ok {
			return v, true
		}
		return e.lookup(name)
	}
	return o
}

// Lookup returns a variable.
func (e *Environ) Lookup(name string) (string, bool) { return e.lookup(name) }

// Get returns a variable, or def when it is not set.
func (e *Environ) Get(name, def string) string {
	if v, ok := e.lookup(name); ok {
		return v
	}
	return def
}

// Set sets a variable and records who set it. Setting a variable to its present value changes
// nothing.
func (e *Environ) Set(name, value, source string) error {
	before, was := e.lookup(name)
	if was && before == value {
		return nil
	}
	if err := e.set(name, value); err != nil {
		return fmt.Errorf("set variable %q: %w", name, err)
	}
	e.changes = append(e.changes, EnvChange{name, value, before, was, source})
	return nil
}

// Changes returns the changes, in order.
func (e *Environ) Changes() []EnvChange { return slices.Clone(e.changes) }

// Rewind undoes all but the first n changes.
func (e *Environ) Rewind(n int) error {
	var faults []error
	for _, c := range slices.Backward(e.changes[n:]) {
		if c.WasSet {
			faults = append(faults, e.set(c.Name, c.Before))
		} else {
			faults = append(faults, e.unset(c.Name))
		}
	}
	e.changes = e.changes[:n]
	return errors.Join(faults...)
}

var reference = regexp.MustCompile(`\$(\w+|\{[^}]*\})`)

// Expand replaces $NAME and ${NAME} by the variables of the environment; references to variables
// that are not set stay as they are.
func (e *Environ) Expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		name := strings.TrimSuffix(strings.TrimPrefix(ref[1:], "{"), "}")
		if v, ok := e.lookup(name); ok {
			return v
		}
		return ref
	})
}
