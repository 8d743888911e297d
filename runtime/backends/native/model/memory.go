package model

import (
	"fmt"
	"unsafe"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/opmanager"
)

// WeightBytes returns the memory of the weights of a model and of their gradients, without what is
// between and after them. It is a float64, because the result may exceed what any machine can
// address.
func (c Config) WeightBytes() float64 { return 2 * 4 * c.parameters() }

// ActivationBytes returns the memory of the passes of a run: the one that trains on batches of
// batch sequences, and the one that generates text, with the rounded copies of weights that both
// multiply with. It builds them as NewPass does, without memory,
// for two and for three layers, since every further layer takes as much as the third.
func (c Config) ActivationBytes(mgr *opmanager.Manager, batch int) (float64, error) {
	layers, inputs := c.keptLayers()
	training, err := c.count(layers, func(m *Model, taken *counter) error { return m.countPass(mgr, taken, batch, true) })
	if err != nil {
		return 0, err
	}
	rest, err := c.count(c.NumLayers, func(m *Model, taken *counter) error {
		for _, p := range m.params {
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
		if part.Granularity == FullRecompute {
			part.Recompute = Recompute{}
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
