package model

import (
	"fmt"
	"slices"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/tensor"
)

// Stretch is what a stage of a pipeline computes at a time: layers that follow each other, with the
// embeddings if they are the first, and with the norm and the output layer if they are the last. It
// may have no layers.
type Stretch struct {
	Layers Range
	First  bool // the embeddings come before the layers
	Last   bool // the final norm and the output layer come after them
}

// has reports whether a weight of some depth belongs to the stretch, in a model of so many layers.
func (s Stretch) has(depth, layers int) bool {
	switch depth {
	case 0:
		return s.First
	case layers + 1:
		return s.Last
	}
	return depth > s.Layers.Lo && depth <= s.Layers.Hi
}

// stretch returns a stretch of this rank, which without stages is the whole model.
func (m *Model) stretch(i int) Stretch {
	if m.part.Stretches == nil {
		return Stretch{Layers: Range{0, m.cfg.NumLayers}, First: true, Last: true}
	}
	return m.part.Stretches[i]
}

// choose keeps those of all weights that this rank has.
func (m *Model) choose(params, adapters []*Param) {
	m.params, m.drawn = params, params
	m.adapters, m.drawnAdapters = adapters, adapters
	if m.part.Stretches == nil {
		return
	}
	others := func(p *Param) bool {
		return !slices.ContainsFunc(m.part.Stretches, func(s Stretch) bool { return s.has(p.Depth, m.cfg.NumLayers) })
	}
	m.params = slices.DeleteFunc(slices.Clone(params), others)
	m.adapters = slices.DeleteFunc(slices.Clone(adapters), others)
	if !m.cfg.Untie && others(m.embedding) && slices.ContainsFunc(m.part.Stretches, func(s Stretch) bool { return s.Last }) {
		twin := *m.embedding
		twin.Depth, twin.Twin = m.cfg.NumLayers+1, true
		m.head, m.params = &twin, append(m.params, &twin)
		m.drawn = append([]*Param{&twin}, params[1:]...)
	}
}

// Shared returns the gradient of the embedding that this rank has in common with the rank at the
// other end of the pipeline, nil without one.
func (m *Model) Shared() *tensor.Tensor {
	switch {
	case m.cfg.Untie || m.part.Stretches == nil:
		return nil
	case m.head.Twin:
		return m.head.Grad
	case slices.ContainsFunc(m.part.Stretches, func(s Stretch) bool { return s.Last }): // both ends are here
		return nil
	}
	return m.embedding.Grad // nil on other stages, and beside adapters
}

// NewStagePass is NewPass, which trains, for one of the stretches of a stage.
// With apart it can compute the gradients of weights after those of inputs.
func (m *Model) NewStagePass(mgr *opmanager.Manager, stretch, batch, seq int, apart bool) (*Pass, error) {
	if stretch < 0 || stretch >= len(m.part.Stretches) {
		return nil, fmt.Errorf("pass of stretch %d: want one of the %d of the stage", stretch, len(m.part.Stretches))
	}
	return m.newPass(mgr, stretch, batch, seq, true, apart)
}

// Heads reports whether the pass ends with the output layer, and so knows the loss.
func (p *Pass) Heads() bool { return p.stretch.Last }

// BackwardInput is Backward that adds to the gradients, without those of the weights of
// projections, which BackwardWeights adds. The pass was made for that.
func (p *Pass) BackwardInput(scale float32) error {
	p.later = p.later[:0]
	return p.backward(scale, true, &p.later)
}

// BackwardWeights adds the gradients of weights that the last BackwardInput has left out.
func (p *Pass) BackwardWeights() error {
	r := p.run()
	r.Accumulate = true
	r.Leave("gradients of weights")
	for _, one := range p.later {
		one.of.weights(r, one.x, one.dy)
	}
	p.later = p.later[:0]
	p.memory.Check()
	return r.Err
}

// postponed is a gradient of the weight of a projection that is computed later.
type postponed struct {
	of    *Linear
	x, dy *tensor.Tensor
}

// postpone lets a projection compute the gradient of its weight later, for which kept has memory
// for that of its output, or is nil if that is kept anyway.
func (b *Builder) postpone(l *Linear, kept *tensor.Tensor) {
	if b.Apart {
		l.apart, l.kept = true, kept
	}
}

// kept returns memory for a gradient that a projection needs later, nil if it needs none.
func (b *Builder) kept(shape ...int) *tensor.Tensor {
	if !b.Apart {
		return nil
	}
	return b.Act(shape...)
}

// Input returns the memory of the residual stream before the layers, which another stage computes.
// Where the embeddings are computed here, nobody else writes it.
func (p *Pass) Input() *tensor.Tensor { return p.in }

// Output returns the memory of the residual stream after the layers.
func (p *Pass) Output() *tensor.Tensor { return p.out }

// Gradient returns the memory of the gradient of the residual stream: that of Output before
// Backward, and that of Input after it.
func (p *Pass) Gradient() *tensor.Tensor { return p.grad.Res }

// skip passes over the random numbers of the embeddings and of layers that other ranks compute.
func (b *Builder) skip(s Stretch) {
	if !s.First {
		b.skipDropout()
	}
	for range s.Layers.Lo {
		if b.Config.AttentionDropout > 0 {
			heads := b.Config.NumAttentionHeads
			if t := b.Part.Tensor; t != nil {
				heads *= t.Ranks
			}
			b.random(b.Batch * heads * b.Seq * b.Seq)
			b.randomPacked(heads)
		}
		b.skipDropout()
		b.skipDropout()
	}
}

// skipDropout passes over the random numbers of a dropout of hidden states.
func (b *Builder) skipDropout() {
	if b.Config.HiddenDropout > 0 {
		b.random(b.tokens() * b.contextRanks() * b.Config.HiddenSize)
	}
}
