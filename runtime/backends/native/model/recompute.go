package model

import (
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

// layerPools hands out the memory of layers.
type layerPools struct {
	cfg    Config
	train  bool
	own    *pool   // of layers that keep their activations, or of all layers in a forward-only pass
	shared []*pool // by the place of a layer in its chunk
}

func newLayerPools(cfg Config, memory *arena, train bool) *layerPools {
	return &layerPools{cfg: cfg, train: train, own: &pool{arena: memory, shared: !train}}
}

// of returns the pool of a layer and whether its input is part of what is computed again.
func (p *layerPools) of(layer int) (keep *pool, inside bool) {
	first, end := p.cfg.Chunk(layer, p.cfg.NumLayers)
	if !p.train || end == 0 {
		return p.own, false
	}
	at := layer - first
	if at == len(p.shared) {
		p.shared = append(p.shared, &pool{arena: p.own.arena, shared: true})
	}
	return p.shared[at], at > 0
}

// during makes a block take the memory of a module from what all layers share, if the module is
// computed again. The result restores the memory of the layer.
func (b *builder) during(module string) (restore func()) {
	keep := b.keep
	if b.again != nil && b.cfg.Again(module) {
		b.keep = b.again
	}
	return func() { b.keep = keep }
}

// computedAgain says what backward computes again in each layer.
type computedAgain struct{ attention, norms, mlp bool }

func (b *builder) computedAgain() computedAgain {
	if b.again == nil {
		return computedAgain{}
	}
	mlp := recompute.MLP
	if b.cfg.mixture() {
		mlp = recompute.Experts
	}
	return computedAgain{attention: b.cfg.Again(recompute.Attention), norms: b.cfg.Again(recompute.Norm), mlp: b.cfg.Again(mlp)}
}

// restore computes the activations of a layer and of those before it in its chunk again, unless
// they are those of the last forward.
func (p *Pass) restore(r *run, layer int) {
	first, end := p.m.cfg.Chunk(layer, p.m.cfg.NumLayers)
	if end != layer+1 || p.held == first {
		return
	}
	p.held = first
	for i := first; i < end; i++ {
		var next *tensor.Tensor
		if i+1 < end {
			next = p.layers[i+1].in
		}
		p.layers[i].forward(r, i, p.proj, next)
	}
}
