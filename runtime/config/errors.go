package config

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels matched by the errors of this package.
var (
	// ErrUsage marks a command line override that has no valid form or contradicts another one.
	ErrUsage = errors.New("config: invalid override")
	// ErrCycle marks a file that extends itself, directly or not, or a YAML anchor that contains itself.
	ErrCycle = errors.New("config: cycle")
	// ErrOutsideRoots marks a path that leaves the configuration roots.
	ErrOutsideRoots = errors.New("config: path outside the configuration roots")
	// ErrUnsetVariable marks a ${NAME} without default whose variable is not set.
	ErrUnsetVariable = errors.New("config: environment variable not set")
	// ErrNoEffect marks a value that was written and has no effect, which [Options.Strict] refuses.
	ErrNoEffect = errors.New("config: value without effect")
)

// Error is one problem in a configuration: where, what, and what to do about it.
type Error struct {
	// Origin is where the offending value was written.
	Origin Origin
	// Path is the dotted key path, empty for a whole file.
	Path string
	// Problem says what was given and what was expected.
	Problem string
	// Hint says what to do, and may be empty.
	Hint string
	// Kind is a sentinel this error matches, or nil.
	Kind error
	// Err is the cause, or nil.
	Err error
}

// Error renders origin, path, problem, cause and hint on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if !e.Origin.IsZero() {
		b.WriteString(e.Origin.String() + ": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Problem)
	if e.Err != nil {
		if e.Problem != "" {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Is reports whether target is the kind of e.
func (e *Error) Is(target error) bool { return e.Kind != nil && e.Kind == target }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// wrongType builds the error for a value of the wrong kind.
func wrongType(v Value, path, expected, hint string) *Error {
	return &Error{Origin: v.Origin(), Path: path, Problem: fmt.Sprintf("given %s, expected %s", v.describe(), expected), Hint: hint}
}

// joinPath appends key to the dotted path.
func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
