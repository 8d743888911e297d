package tensor

import "fmt"

// Error says which function refused its arguments, what it got and what it expected.
type Error struct {
	Func string
	Got  string
	Want string
}

// Error returns the text "tensor: Func: got …, want …".
func (e *Error) Error() string {
	return fmt.Sprintf("tensor: %s: given %s, want %s", e.Func, e.Got, e.Want)
}
