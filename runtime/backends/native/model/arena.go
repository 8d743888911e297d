package model

import (
	"errors"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/tensor"
)

// arena allocates tensors that are freed together. After the first error, new returns nil tensors,
// so that the owner can check err once at the end.
type arena struct {
	backend device.Backend
	tensors []*tensor.Tensor
	err     error
	guards  guards
}

func (a *arena) new(d tensor.DType, shape ...int) *tensor.Tensor {
	if a.err != nil {
		return nil
	}
	t, err := a.guards.allocate(a.backend, d, shape...)
	if err != nil {
		a.err = err
		return nil
	}
	a.tensors = append(a.tensors, t)
	return t
}

// fail frees the memory and returns the first error.
func (a *arena) fail() error { return errors.Join(a.err, a.close()) }

func (a *arena) close() error {
	a.guards.check()
	var faults []error
	for _, t := range a.tensors {
		faults = append(faults, t.Release())
	}
	a.tensors = nil
	return errors.Join(faults...)
}

// pool hands out tensors to a sequence of equal blocks, which ask for them in the same order. Each
// block gets tensors of its own or, if the pool is shared, those of the block before, whose content
// is then lost. A nil pool returns nil tensors.
type pool struct {
	arena  *arena
	shared bool
	taken  []*tensor.Tensor
	next   int
}

func (m *pool) new(d tensor.DType, shape ...int) *tensor.Tensor {
	if m == nil {
		return nil
	}
	if m.next == len(m.taken) {
		m.taken = append(m.taken, m.arena.new(d, shape...))
	}
	m.next++
	return m.taken[m.next-1]
}

func (m *pool) f32(shape ...int) *tensor.Tensor { return m.new(tensor.F32, shape...) }

// rewind starts the next block.
func (m *pool) rewind() {
	if m == nil {
		return
	}
	m.next = 0
	if !m.shared {
		m.taken = nil
	}
}

// The view functions below are for shapes that the package itself has computed. For a nil tensor,
// from a nil pool or after a failed allocation, they return nil.

func must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

func rows(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return must(t.Slice(0, lo, hi))
}

// heads returns the heads lo to hi of a matrix of rows of heads of d elements, as [batch, seq,
// heads, d].
func heads(t *tensor.Tensor, batch, seq, d, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	all := must(t.Reshape(batch, seq, t.Shape().Cols()/d, d))
	return must(all.Slice(2, lo, hi))
}

// packedHeads returns the heads lo to hi of a matrix of rows of heads of d elements, as [T, heads,
// d].
func packedHeads(t *tensor.Tensor, d, lo, hi int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return must(must(t.Reshape(t.Shape()[0], t.Shape().Cols()/d, d)).Slice(1, lo, hi))
}
