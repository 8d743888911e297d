//go:build !invariants

package memory

import (
	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// guards detects writes outside of operands in builds with the tag invariants.
type guards struct{}

func (guards) allocate(b device.Backend, d tensor.DType, shape ...int) (*tensor.Tensor, error) {
	return tensor.New(b, d, shape...)
}

func (guards) check() {}
