package check

import "github.com/primus-fl/primus/tensor"

// Named is an operand with the name that errors use for it.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}
