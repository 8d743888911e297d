package opbench

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// Bound says what limits an op on most machines.
type Bound string

// The bounds.
const (
	Compute Bound = "compute"
	Memory  Bound = "memory"
)

// Case is a call of an op that can be measured.
type Case struct {
	Op    opregistry.Handle
	Shape string
	FLOPs float64 // 0 where memory is the bound
	Bytes float64 // of all operands, those updated in place twice
	Bound Bound

	Call opregistry.Call

	device  device.Backend // whose work a call waits for; nil for operands in the memory of the host
	forward *Case          // must run on the same impl first; nil for none
}

// Maker builds Cases with operands of one dtype in memory of a device backend.
type Maker struct {
	backend device.Backend
	dtype   tensor.DType
	rng     *rand.Rand
	owned   []*tensor.Tensor
	err     error
}

// NewMaker returns a Maker for operands of a dtype. Close returns the memory of the Cases, which
// must not be used afterwards.
func NewMaker(backend device.Backend, d tensor.DType) *Maker {
	return &Maker{backend: backend, dtype: d, rng: rand.New(rand.NewPCG(1, 2))}
}

// Close returns the memory of all Cases.
func (m *Maker) Close() error {
	var faults []error
	for _, t := range m.owned {
		faults = append(faults, t.Release())
	}
	m.owned = nil
	return errors.Join(faults...)
}

// NewCase returns the case of a call with these arguments, or the first error of the Maker.
func NewCase[A any](m *Maker, op *opregistry.Op[A], shape string, a A) (Case, error) {
	err := m.err
	m.err = nil
	if err == nil {
		err = op.Validate(a)
	}
	if err != nil {
		return Case{}, fmt.Errorf("%s of %s: %w", op.Name(), shape, err)
	}
	c := Case{Op: op, Shape: shape, Bound: Memory, Call: op.At(&a)}
	for _, o := range c.Call.Operands() {
		if o.Tensor == nil {
			continue
		}
		if o.Tensor.Device().Type != device.TypeCPU {
			c.device = m.backend
		}
		size := float64(o.Tensor.NumElements() * o.Tensor.DType().Size())
		if o.Access == opregistry.AccessUpdate {
			size *= 2
		}
		c.Bytes += size
	}
	return c, nil
}

// maxElements bounds an operand, so that a typing mistake does not use all memory.
const maxElements = 1 << 28

// Fresh returns a tensor of zeros.
func (m *Maker) Fresh(d tensor.DType, shape ...int) *tensor.Tensor {
	if m.err != nil {
		return nil
	}
	left := maxElements
	for _, n := range shape {
		left /= max(n, 1)
	}
	if left == 0 {
		m.err = fmt.Errorf("an operand of shape %v, want at most %d elements", shape, maxElements)
		return nil
	}
	t, err := tensor.New(m.backend, d, shape...)
	if err != nil {
		m.err = err
		return nil
	}
	m.owned = append(m.owned, t)
	return t
}

// Random returns a tensor of uniform numbers in [-1, 1] of the Maker's dtype.
func (m *Maker) Random(shape ...int) *tensor.Tensor {
	return m.fill(m.Fresh(m.dtype, shape...), func() float64 { return 2*m.rng.Float64() - 1 })
}

// Positive returns an f32 tensor of uniform numbers in [0.5, 1.5].
func (m *Maker) Positive(shape ...int) *tensor.Tensor {
	return m.fill(m.Fresh(tensor.F32, shape...), func() float64 { return 0.5 + m.rng.Float64() })
}

// Indexes returns an i32 tensor of numbers below n.
func (m *Maker) Indexes(n int, shape ...int) *tensor.Tensor {
	return m.fill(m.Fresh(tensor.I32, shape...), func() float64 { return float64(m.rng.IntN(n)) })
}

// Filled returns a tensor of one number.
func (m *Maker) Filled(d tensor.DType, value float64, shape ...int) *tensor.Tensor {
	return m.fill(m.Fresh(d, shape...), func() float64 { return value })
}

func (m *Maker) fill(t *tensor.Tensor, value func() float64) *tensor.Tensor {
	if m.err != nil {
		return nil
	}
	values := make([]float64, t.NumElements())
	for i := range values {
		values[i] = value()
	}
	m.err = t.SetFloat64s(values)
	return t
}
