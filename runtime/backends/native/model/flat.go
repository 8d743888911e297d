package model

import (
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// Flat is the memory of weights and of their gradients: one after the other, in the order in which
// Backward finishes the gradients, so that ranges of it can be exchanged while Backward goes on.
type Flat struct {
	// Values and Grads are f32 [n]. There are zeros between weights, and FlatSlack after the last one.
	// A frozen model has no Grads.
	Values, Grads *tensor.Tensor

	Params  []*Param
	Offsets []int // the first element of each, in ascending order
	Used    int   // elements up to the end of the last weight
}

const (
	// FlatSlack is the number of elements of a Flat that belong to no weight, so that a range which
	// begins in a weight can be extended to a length that a number of ranks divides.
	FlatSlack = 1 << 16

	flatAlign = 16 // elements: weights begin on cache lines
)

// Flat returns the memory of the weights. The caller must not change the slices.
func (m *Model) Flat() Flat { return m.flat }

// Final returns how many elements of the gradients are final when those of all weights of a depth
// and above are.
func (f Flat) Final(depth int) int {
	for i, p := range f.Params {
		if p.Depth < depth {
			return f.Offsets[i]
		}
	}
	return f.Used
}

// allocate gives memory to all weights and their gradients.
func (m *Model) allocate() {
	if _, counts := m.memory.backend.(*counter); counts { // all weights together may have no addresses
		for _, p := range m.params {
			p.Value = m.memory.new(tensor.F32, p.Shape...)
			p.Grad = p.Value
		}
		return
	}
	f := Flat{Params: slices.Clone(m.params)}
	slices.Reverse(f.Params)
	for _, p := range f.Params {
		f.Offsets = append(f.Offsets, f.Used)
		f.Used += (p.Shape.NumElements() + flatAlign - 1) / flatAlign * flatAlign
	}
	f.Values = m.memory.new(tensor.F32, f.Used+FlatSlack)
	if !m.frozen {
		f.Grads = m.memory.new(tensor.F32, f.Used+FlatSlack)
	}
	if m.memory.err != nil {
		return
	}
	for i, p := range f.Params {
		at := f.Offsets[i]
		view := func(t *tensor.Tensor) *tensor.Tensor {
			return must(rows(t, at, at+p.Shape.NumElements()).Reshape(p.Shape...))
		}
		p.Value = view(f.Values)
		if !m.frozen {
			p.Grad = view(f.Grads)
		}
	}
	m.flat = f
}

// Watch follows the weights of a pass. Functions may be nil.
type Watch struct {
	// Needs is called before a forward pass reads the weights of a depth, in ascending order. Its
	// error ends the pass.
	Needs func(depth int) error

	// Final is called by Backward when the gradients of all weights of a depth and above are final, in
	// descending order.
	Final func(depth int)
}

// Watch replaces what follows the weights of the pass from now on.
func (p *Pass) Watch(w Watch) { p.watch = w }

func (w *Watch) needs(r *run, depth int) {
	if w.Needs != nil && r.err == nil {
		r.err = w.Needs(depth)
	}
}

func (w *Watch) final(r *run, depth int) {
	if w.Final != nil && r.err == nil {
		w.Final(depth)
	}
}
