package model

import (
	"fmt"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
)

// PartOf returns the part of a model that a rank has, of a job that is divided as the parameters
// ask for.
func PartOf(g world.Groups, p world.Parallel) (part Part) {
	if p.ExpertRanks() > 1 {
		part.Experts = g.Experts
	}
	if p.TensorRanks() > 1 {
		part.Tensor, part.Sequence = g.Tensor, p.SequenceParallel
	}
	if p.ContextRanks() > 1 {
		part.Context, part.Ring = g.Context, p.Rings()
	}
	if part.Context != nil || part.Sequence {
		part.Rows = g.Sequences
	}
	return part
}

// PartSizes returns the numbers of weights with adapters, and of those that are trained, of the
// part of a model that a rank has.
func PartSizes(c architecture.Config, part Part) (all, trained float64, err error) {
	sum := func(of func(*Model) []*Param) (float64, error) {
		return count(c, part, c.NumLayers, func(m *Model, taken *memory.Counter) error {
			for _, p := range of(m) {
				taken.Bytes += float64(p.Shape.NumElements())
			}
			return nil
		})
	}
	if all, err = sum((*Model).all); err == nil {
		trained, err = sum((*Model).Trained)
	}
	return all, trained, err
}

// ActivationBytes returns the memory of the passes of a run with a part of a model: the one that
// trains on batches of batch sequences, and the decoder that generates text, with the rounded
// copies of weights that both multiply with. It builds them without memory, for two and for three
// layers, since every further layer takes as much as the third.
func ActivationBytes(c architecture.Config, part Part, mgr *opmanager.Manager, batch int) (float64, error) {
	training, err := passBytes(c, part, mgr, batch)
	if err != nil {
		return 0, err
	}
	generation, err := count(c, part, c.NumLayers, func(m *Model, taken *memory.Counter) error {
		d := m.decoder(mgr, DecoderSettings{Slots: 1}.resolved(m.cfg), taken)
		d.build(d.settings.Rows) // for a prompt
		d.build(1)
		if d.memory.Err != nil {
			return fmt.Errorf("estimate the memory of generation: %w", d.memory.Err)
		}
		return nil
	})
	return training + generation, err
}

// passBytes returns the memory of the pass that trains on batches of this many sequences, with the
// weights rounded to the dtype of products.
func passBytes(c architecture.Config, part Part, mgr *opmanager.Manager, batch int) (float64, error) {
	layers, inputs := c.Kept(c.NumLayers)
	training, err := count(c, part, layers, func(m *Model, taken *memory.Counter) error { return m.countPass(mgr, taken, batch) })
	if err != nil {
		return 0, err
	}
	rounded, err := count(c, part, c.NumLayers, func(m *Model, taken *memory.Counter) error {
		m.countRounded(taken)
		return nil
	})
	input := float64(batch) * float64(part.share(c.SeqLength).Tokens()) * float64(c.HiddenSize) * float64(c.Compute().Size())
	return training + rounded + float64(inputs)*input, err
}

// StageBytes returns the memory of the passes of a stage of a pipeline, of which it has so many for
// each of its stretches, with the weights rounded to the dtype of products.
func StageBytes(c architecture.Config, part Part, passes []int, apart bool, mgr *opmanager.Manager, batch int) (float64, error) {
	m, err := NewPart(c, &memory.Counter{}, part)
	if err != nil {
		return 0, err
	}
	var all memory.Counter
	m.countRounded(&all)
	for i, n := range passes {
		var one memory.Counter
		if err := m.countStretch(mgr, &one, i, batch, apart); err != nil {
			return 0, err
		}
		all.Bytes += float64(n) * one.Bytes
	}
	return all.Bytes, nil
}

// countRounded counts the memory of rounded copies of weights.
func (m *Model) countRounded(taken *memory.Counter) {
	for _, p := range m.all() {
		rows, columns := p.Rounded()
		if rows != nil {
			taken.Bytes += float64(rows.NumElements() * rows.DType().Size())
		}
		if columns != rows {
			taken.Bytes += float64(columns.NumElements() * columns.DType().Size())
		}
	}
}

// count returns what is counted for a model of this many layers, or for a stage of one.
func count(c architecture.Config, part Part, layers int, of func(*Model, *memory.Counter) error) (float64, error) {
	if part.Stretches != nil {
		var taken memory.Counter
		m, err := NewPart(c, &memory.Counter{}, part)
		if err == nil {
			err = of(m, &taken)
		}
		return taken.Bytes, err
	}
	var sizes [2]float64
	for i := range sizes {
		few := c
		if few.Granularity == architecture.Full {
			few.Plan = architecture.Plan{}
		}
		few.NumLayers, few.WindowLayers = min(i+2, layers), nil
		m, err := NewPart(few, &memory.Counter{}, part)
		if err != nil {
			return 0, err
		}
		var taken memory.Counter
		if err := of(m, &taken); err != nil {
			return 0, err
		}
		sizes[i] = taken.Bytes
	}
	two, three := sizes[0], sizes[1]
	return three + float64(max(layers-3, 0))*(three-two), nil
}

// countPass counts the memory of a pass that trains.
func (m *Model) countPass(mgr *opmanager.Manager, taken *memory.Counter, batch int) error {
	return m.countStretch(mgr, taken, 0, batch, false)
}

// countStretch counts the memory of a pass of a stretch.
func (m *Model) countStretch(mgr *opmanager.Manager, taken *memory.Counter, stretch, batch int, apart bool) error {
	p := &Pass{m: m, stretch: m.stretch(stretch), apart: apart, memory: &memory.Arena{Backend: taken}, batch: batch, seq: m.cfg.SeqLength}
	p.build(mgr, true)
	if p.memory.Err != nil {
		return fmt.Errorf("estimate the memory of activations: %w", p.memory.Err)
	}
	return nil
}
