package document

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels matched by the errors of this package.
var (
	// ErrUsage marks a command line override that has no valid form or contradicts another one.
	ErrUsage = errors.New("document: invalid override")
	// ErrCycle marks what contains itself, directly or not: a YAML anchor, or files that extend each
	// other.
	ErrCycle = errors.New("document: cycle")
	// ErrUnsetVariable marks a ${NAME} without default whose variable is not set.
	ErrUnsetVariable = errors.New("document: environment variable not set")
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

// Warning is one probable mistake.
type Warning struct {
	// Origin is where the value in question was written.
	Origin Origin
	// Path is the dotted key path, empty for a whole file or token.
	Path string
	// Message says what was noticed and what happens.
	Message string
	// Hint says what to do, and may be empty.
	Hint string
}

// String renders origin, path, message and hint on one line.
func (w Warning) String() string {
	return (&Error{Origin: w.Origin, Path: w.Path, Problem: w.Message, Hint: w.Hint}).Error()
}

// WrongType returns the error for a value at a key path that is not what was expected. The hint may
// be empty.
func WrongType(v Value, path, expected, hint string) *Error {
	return &Error{Origin: v.Origin(), Path: path, Problem: fmt.Sprintf("given %s, want %s", v.Describe(), expected), Hint: hint}
}

// JoinPath appends key to the dotted path, which may be empty.
func JoinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
