package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/primus-fl/primus/tensor"
)

// Granularity says which activations backward computes again, with Megatron's names.
type Granularity string

// The granularities; "" means that forward keeps all activations.
const (
	FullRecompute      Granularity = "full"      // those of whole layers
	SelectiveRecompute Granularity = "selective" // those of the modules of recompute_modules, in each layer
)

// Values returns the granularities.
func (Granularity) Values() []string {
	return []string{string(FullRecompute), string(SelectiveRecompute)}
}

// RecomputeMethod says which layers are computed again, with Megatron's names.
type RecomputeMethod string

// The methods.
const (
	UniformRecompute RecomputeMethod = "uniform" // all, in chunks of recompute_num_layers
	BlockRecompute   RecomputeMethod = "block"   // the first recompute_num_layers, one by one
)

// Values returns the methods.
func (RecomputeMethod) Values() []string {
	return []string{string(UniformRecompute), string(BlockRecompute)}
}

// The modules whose activations can be computed again, with Megatron's names.
const (
	moduleAttention = "core_attn" // norms of heads, rotary positions and attention, between the projections
	moduleNorm      = "layernorm" // the norms before attention and MLP
	moduleMLP       = "mlp"       // the MLP, but for its second projection
	moduleExperts   = "moe"       // router and experts
)

// Recompute are the parameters of the activations that forward does not keep and backward computes
// again, with Megatron's names. Losses and gradients are the same, bit for bit.
type Recompute struct {
	Granularity Granularity     `param:"recompute_granularity"`
	Method      RecomputeMethod `param:"recompute_method"`      // with full; "" means uniform
	Layers      int             `param:"recompute_num_layers"`  // with full; 0 means 1
	Modules     []string        `param:"recompute_modules"`     // with selective; nil means core_attn
	Activations bool            `param:"recompute_activations"` // the older name of selective
}

func (c Config) validateRecompute(f *faults) {
	modules := []string{moduleAttention, moduleNorm, moduleMLP, moduleExperts}
	f.oneOf("recompute_granularity", string(c.Granularity), c.Granularity.Values())
	f.oneOf("recompute_method", string(c.Method), c.Method.Values())
	for _, m := range c.Modules {
		f.oneOf("recompute_modules", m, modules)
	}
	full := c.Granularity == FullRecompute
	switch {
	case c.Recompute.Layers < 0 || full && c.Recompute.Layers > c.NumLayers:
		f.bad("recompute_num_layers", c.Recompute.Layers, fmt.Sprintf("a number from 1 to num_layers %d", c.NumLayers))
	case c.Activations && full:
		f.bad("recompute_activations", true, "false with recompute_granularity full")
	case !full && (c.Method != "" || c.Recompute.Layers != 0):
		f.bad("recompute_granularity", fmt.Sprintf("%q", c.Granularity), "full with recompute_method or recompute_num_layers")
	case c.Modules != nil && !c.selective():
		f.bad("recompute_granularity", fmt.Sprintf("%q", c.Granularity), "selective with recompute_modules")
	}
}

func (c Recompute) selective() bool { return c.Granularity == SelectiveRecompute || c.Activations }

// again reports whether backward computes a module again.
func (c Recompute) again(module string) bool {
	return c.selective() && (slices.Contains(c.Modules, module) || c.Modules == nil && module == moduleAttention)
}

// chunk returns the chunk of layers [first, end) of which only the input of the first layer is
// kept; end is 0 for a layer that keeps its activations.
func (c Config) chunk(layer int) (first, end int) {
	n := cmp.Or(c.Recompute.Layers, 1)
	switch {
	case c.Granularity != FullRecompute:
		return 0, 0
	case c.Method != BlockRecompute:
		first = layer / n * n
		return first, min(first+n, c.NumLayers)
	case layer < n:
		return layer, layer + 1
	default:
		return 0, 0
	}
}

// lastChunk returns the first layer of the last chunk, 0 without chunks.
func (c Config) lastChunk() int {
	last := c.NumLayers - 1
	if c.Method == BlockRecompute {
		last = cmp.Or(c.Recompute.Layers, 1) - 1
	}
	first, _ := c.chunk(last)
	return first
}

// keptLayers returns the number of layers whose activations are in memory at a time, and that of
// the inputs of layers that are kept besides.
func (c Config) keptLayers() (layers, inputs int) {
	n := cmp.Or(c.Recompute.Layers, 1)
	switch {
	case c.Granularity != FullRecompute:
		return c.NumLayers, 0
	case c.Method == BlockRecompute:
		return c.NumLayers - n + 1, n - 1
	default:
		return min(n, c.NumLayers), (c.NumLayers+n-1)/n - 1
	}
}

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
	first, end := p.cfg.chunk(layer)
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
	if b.again != nil && b.cfg.again(module) {
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
	mlp := moduleMLP
	if b.cfg.mixture() {
		mlp = moduleExperts
	}
	return computedAgain{attention: b.cfg.again(moduleAttention), norms: b.cfg.again(moduleNorm), mlp: b.cfg.again(mlp)}
}

// restore computes the activations of a layer and of those before it in its chunk again, unless
// they are those of the last forward.
func (p *Pass) restore(r *run, layer int) {
	first, end := p.m.cfg.chunk(layer)
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
