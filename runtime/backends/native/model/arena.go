package model

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
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

// WeightBytes returns the memory of the weights of a model and of their gradients, without what is
// between and after them. Beside adapters, only these have gradients. It is a float64, because the
// result may exceed what any machine can address.
func (c Config) WeightBytes() float64 {
	bytes := 4 * (c.parameters() + c.TrainedParameters())
	if c.Adapts() {
		bytes += 4 * c.TrainedParameters()
	}
	return bytes
}

// ActivationBytes returns the memory of the passes of a run: the one that trains on batches of
// batch sequences, and the one that generates text, with the rounded copies of weights that both
// multiply with. It builds them as NewPass does, without memory,
// for two and for three layers, since every further layer takes as much as the third.
func (c Config) ActivationBytes(mgr *opmanager.Manager, batch int) (float64, error) {
	layers, inputs := c.Kept(c.NumLayers)
	training, err := c.count(layers, func(m *Model, taken *counter) error { return m.countPass(mgr, taken, batch, true) })
	if err != nil {
		return 0, err
	}
	rest, err := c.count(c.NumLayers, func(m *Model, taken *counter) error {
		for _, p := range m.all() {
			if p.rounded != nil {
				taken.bytes += float64(p.rounded.NumElements() * p.rounded.DType().Size())
			}
		}
		return m.countPass(mgr, taken, 1, false)
	})
	input := float64(batch) * float64(c.SeqLength) * float64(c.HiddenSize) * float64(c.Compute().Size())
	return training + rest + float64(inputs)*input, err
}

// count returns what is counted for a model of this many layers.
func (c Config) count(layers int, of func(*Model, *counter) error) (float64, error) {
	var sizes [2]float64
	for i := range sizes {
		part := c
		if part.Granularity == recompute.Full {
			part.Plan = recompute.Plan{}
		}
		part.NumLayers = min(i+2, layers)
		m, err := New(part, &counter{})
		if err != nil {
			return 0, err
		}
		var taken counter
		if err := of(m, &taken); err != nil {
			return 0, err
		}
		sizes[i] = taken.bytes
	}
	two, three := sizes[0], sizes[1]
	return three + float64(max(layers-3, 0))*(three-two), nil
}

// countPass counts the memory of a pass.
func (m *Model) countPass(mgr *opmanager.Manager, taken *counter, batch int, train bool) error {
	p := &Pass{m: m, memory: &arena{backend: taken}, batch: batch, seq: m.cfg.SeqLength}
	p.build(mgr, train)
	if p.memory.err != nil {
		return fmt.Errorf("estimate the memory of activations: %w", p.memory.err)
	}
	return nil
}

// counter is a device that counts allocations and returns memory that cannot be used.
type counter struct {
	device.Backend
	bytes float64
	place [1]byte
}

// Device implements device.Backend.
func (*counter) Device() (device.Device, error) { return device.Device{Type: device.TypeCPU}, nil }

// Alloc implements device.Backend.
func (c *counter) Alloc(size uint64) (unsafe.Pointer, error) {
	c.bytes += float64(size)
	return unsafe.Pointer(&c.place), nil
}

// Free implements device.Backend.
func (*counter) Free(unsafe.Pointer) error { return nil }

var _ device.Backend = (*counter)(nil)
