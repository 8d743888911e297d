package check

import (
	"fmt"
	"strconv"

	"github.com/primus-fl/primus/tensor"
)

// Named is an operand with the name that errors use for it.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Itoa writes a number of an error.
func Itoa(n int) string { return strconv.Itoa(n) }

// Indexed returns the name of an element of a list.
func Indexed(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// CeilDiv returns a/b, rounded up.
func CeilDiv(a, b int) int { return (a + b - 1) / b }
