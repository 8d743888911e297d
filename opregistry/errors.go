package opregistry

import (
	"errors"
	"fmt"
)

// ErrUnsupported is wrapped by the error of an impl that declines a call before it has written
// anything: a dtype, shape or machine that it does not serve. The next candidate is tried.
// Unsupported makes such an error.
var ErrUnsupported = errors.New("unsupported")

// ErrNotNeeded is wrapped by the error of Impl.Available where this process has no use for the
// impl, such as one that connects processes in a process that is alone. The impl is listed with the
// reason and is not reported as missing.
var ErrNotNeeded = errors.New("not needed")

// ErrNotFound is wrapped when an op or impl is named that is not registered.
var ErrNotFound = errors.New("not registered")

// Unsupported returns an error that wraps ErrUnsupported and says why.
func Unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}

// ErrUntouched is wrapped by the error of an impl that failed but has written to no operand, so
// that another impl may take over even where operands are updated in place. Untouched makes such an
// error.
var ErrUntouched = errors.New("operands untouched")

// Untouched returns an error that wraps err and ErrUntouched and has the text of err.
func Untouched(err error) error { return untouched{err} }

type untouched struct{ error }

// Unwrap returns the failure and ErrUntouched.
func (e untouched) Unwrap() []error { return []error{e.error, ErrUntouched} }

// ArgError is a caller's mistake: an operand of a call does not fit the op's
// schema. No impl has run.
type ArgError struct {
	Op      string
	Operand string
	Got     string
	Want    string
}

// Error names op and operand, what was given and what was expected.
func (e *ArgError) Error() string {
	return fmt.Sprintf("op %q: argument %q: given %s, want %s", e.Op, e.Operand, e.Got, e.Want)
}

// DuplicateError says that an op already has an impl with this id.
type DuplicateError struct {
	Op, ID        string
	Existing, New string // the sources
}

// Error names op, id and both sources.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("opregistry: impl %q of op %q from source %q is registered already by source %q; choose another id or remove one", e.ID, e.Op, e.New, e.Existing)
}

// ImplError is the failure of one impl in one call. Stack is set when the impl panicked.
type ImplError struct {
	Op, ID string
	Err    error
	Stack  []byte
}

// Error returns the op, the impl and the cause.
func (e *ImplError) Error() string {
	return fmt.Sprintf("op %q: impl %q: %v", e.Op, e.ID, e.Err)
}

// Unwrap returns the cause.
func (e *ImplError) Unwrap() error { return e.Err }
