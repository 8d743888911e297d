package model

import (
	"errors"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// arena allocates tensors that live and die together. The first error is kept;
// new returns a nil tensor from then on, and the owner looks at err once.
type arena struct {
	backend device.Backend
	tensors []*tensor.Tensor
	err     error
}

func (a *arena) new(d tensor.DType, shape ...int) *tensor.Tensor {
	if a.err != nil {
		return nil
	}
	t, err := tensor.New(a.backend, d, shape...)
	if err != nil {
		a.err = err
		return nil
	}
	a.tensors = append(a.tensors, t)
	return t
}

// fail returns the memory and the error that stands for the whole allocation.
func (a *arena) fail() error { return errors.Join(a.err, a.close()) }

func (a *arena) close() error {
	var faults []error
	for _, t := range a.tensors {
		faults = append(faults, t.Release())
	}
	a.tensors = nil
	return errors.Join(faults...)
}

// The view functions below are for shapes that the package itself has computed.

func must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

func rows(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return must(t.Slice(0, lo, hi)) }

func reshape(t *tensor.Tensor, shape ...int) *tensor.Tensor { return must(t.Reshape(shape...)) }
