package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
)

// layerPools hands out the memory of layers.
type layerPools struct {
	cfg    architecture.Config
	layers int // of the pass
	train  bool
	own    *memory.Pool   // of layers that keep their activations, or of all layers in a forward-only pass
	shared []*memory.Pool // by the place of a layer in its chunk
}

func newLayerPools(cfg architecture.Config, layers int, a *memory.Arena, train bool) *layerPools {
	return &layerPools{cfg: cfg, layers: layers, train: train, own: &memory.Pool{Arena: a, Shared: !train}}
}

// of returns the pool of a layer and whether its input is part of what is computed again.
func (p *layerPools) of(layer int) (keep *memory.Pool, inside bool) {
	first, end := p.cfg.Chunk(layer, p.layers)
	if !p.train || end == 0 {
		return p.own, false
	}
	at := layer - first
	if at == len(p.shared) {
		p.shared = append(p.shared, &memory.Pool{Arena: p.own.Arena, Shared: true})
	}
	return p.shared[at], at > 0
}

// during makes a block take the memory of a module from what all layers share, if the module is
// computed again. The result restores the memory of the layer.
func (b *Builder) during(module string) (restore func()) {
	keep := b.Keep
	if b.again != nil && b.Config.Again(module) {
		b.Keep = b.again
	}
	return func() { b.Keep = keep }
}

// computedAgain says what backward computes again in each layer.
type computedAgain struct{ attention, norms, mlp bool }

func (b *Builder) computedAgain() computedAgain {
	if b.again == nil {
		return computedAgain{}
	}
	mlp := architecture.MLP
	if b.Config.Mixture() {
		mlp = architecture.RecomputeExperts
	}
	return computedAgain{attention: b.Config.Again(architecture.Attention), norms: b.Config.Again(architecture.Norm), mlp: b.Config.Again(mlp)}
}
