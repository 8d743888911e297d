package parallel

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// errGoexit is the value of a Panic for a part that ended its goroutine.
var errGoexit = errors.New("runtime.Goexit was called")

// Panic is the value that Pool.Run panics with when a part panicked. It is an error, so that code
// that recovers it can wrap it.
type Panic struct {
	part  int
	value any
	stack []byte
}

// newPanic must be called by a deferred function of the goroutine that panics. The panic of a Run
// inside a part is already wrapped.
func newPanic(value any, part int) *Panic {
	if inner, ok := value.(*Panic); ok {
		return inner
	}
	return &Panic{part: part, value: value, stack: debug.Stack()}
}

// Error returns the part and the value in the form "parallel: part 3 panicked:
// …"; Stack is left out.
func (p *Panic) Error() string { return fmt.Sprintf("parallel: part %d panicked: %v", p.part, p.value) }

// Unwrap returns the value that the part panicked with if it is an error, such
// as a runtime.Error, else nil.
func (p *Panic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}

// Part returns the number of the part that panicked.
func (p *Panic) Part() int { return p.part }

// Value returns the value that the part panicked with.
func (p *Panic) Value() any { return p.value }

// Stack returns the stack of the worker when it panicked, as debug.Stack prints
// it. The caller must not change it.
func (p *Panic) Stack() []byte { return p.stack }
