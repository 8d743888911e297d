package model

import (
	"slices"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/tensor"
)

// Flat is the memory of weights and of their gradients: one after the other, in the order in which
// Backward finishes the gradients, so that ranges of it can be exchanged while Backward goes on.
type Flat struct {
	// Values and Grads are f32 [n]. There are zeros between weights, and FlatSlack after the last
	// one. Beside adapters, Values also has the weights that are not
	// trained, after the slack.
	Values, Grads *tensor.Tensor

	Params  []*Param // those that are trained
	Offsets []int    // the first element of each, in ascending order
	Used    int      // elements up to the end of the last weight
}

const (
	// FlatSlack is the number of elements of a Flat that belong to no weight, so that a range which
	// begins in a weight can be extended to a length that a number of ranks divides.
	FlatSlack = 1 << 16

	flatAlign = 16 // elements: weights begin on cache lines
)

// Flats returns the memory of the weights: of those that all ranks have and, where ranks share
// experts, of those. A frozen model has none. The caller must not change the slices.
func (m *Model) Flats() []Flat { return m.flats }

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

// all returns the weights with the adapters.
func (m *Model) all() []*Param { return slices.Concat(m.params, m.adapters) }

// allocate gives memory to all weights and the gradients of those that are trained.
func (m *Model) allocate() {
	if _, counts := m.memory.Backend.(*memory.Counter); counts { // all weights together may have no addresses
		for _, p := range m.all() {
			p.Value = m.memory.New(m.stored(p), p.Shape...)
		}
		for _, p := range m.Trained() {
			p.Grad = p.Value
		}
		return
	}
	if m.frozen {
		for _, p := range m.all() {
			p.Value = m.memory.New(m.stored(p), p.Shape...)
		}
		return
	}
	var rest []*Param // that are not trained
	if m.cfg.Adapts() {
		rest = m.params
	}
	apart := func(p *Param) bool { return p.Apart }
	m.flats = append(m.flats, m.place(slices.DeleteFunc(slices.Clone(m.Trained()), apart), rest))
	if slices.ContainsFunc(m.params, apart) {
		m.flats = append(m.flats, m.place(slices.DeleteFunc(slices.Clone(m.params), func(p *Param) bool { return !p.Apart }), nil))
	}
}

// place gives memory to weights that are trained, with their gradients, and to others.
func (m *Model) place(trained, others []*Param) Flat {
	f := Flat{Params: trained}
	slices.Reverse(f.Params)
	var offsets int
	next := func(p *Param) int {
		at := offsets
		offsets += (p.Shape.NumElements() + flatAlign - 1) / flatAlign * flatAlign
		return at
	}
	for _, p := range f.Params {
		f.Offsets = append(f.Offsets, next(p))
	}
	f.Used = offsets
	offsets += FlatSlack
	grads := offsets
	var otherOffsets []int
	for _, p := range others {
		otherOffsets = append(otherOffsets, next(p))
	}
	f.Values, f.Grads = m.memory.New(tensor.F32, offsets), m.memory.New(tensor.F32, grads)
	if m.memory.Err != nil {
		return f
	}
	view := func(t *tensor.Tensor, p *Param, at int) *tensor.Tensor {
		return memory.Must(memory.Rows(t, at, at+p.Shape.NumElements()).Reshape(p.Shape...))
	}
	for i, p := range f.Params {
		p.Value, p.Grad = view(f.Values, p, f.Offsets[i]), view(f.Grads, p, f.Offsets[i])
	}
	for i, p := range others {
		p.Value = view(f.Values, p, otherOffsets[i])
	}
	return f
}

// Watch replaces what follows the weights of the pass from now on.
func (p *Pass) Watch(w Watch) { p.watch = w }
