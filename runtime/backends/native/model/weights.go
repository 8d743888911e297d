package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/device"
	"github.com/primus-fl/primus/runtime/backends/native/layout"
	"github.com/primus-fl/primus/runtime/backends/native/world"
	"github.com/primus-fl/primus/tensor"
)

// normWeights are the weights of a norm; RMSNorm has no bias.
type normWeights struct{ gain, bias *Param }

// linearWeights are the weights of y = x·Wᵀ + b. A weight is [out in], or [in out] if the family of
// checkpoints stores it so.
type linearWeights struct {
	weight *Param
	bias   *Param // nil without
	inOut  bool

	adapters []adapterWeights

	shared *world.World // ranks that share the projection; nil where each has all
	sums   bool         // outputs are sums over these ranks, each of which has a part of the inputs
}

// expertWeights are the weights of the experts of a layer, one expert after the other.
type expertWeights struct {
	router   linearWeights
	num      int    // of this rank
	up, down *Param // [num·2f, h], [num·h, f]
}

type layerWeights struct {
	inputNorm, postNorm normWeights
	qkv, out            linearWeights
	qNorm, kNorm        normWeights   // with QK norms
	up, down            linearWeights // without experts
	experts             expertWeights
}

// Model holds the weights of a decoder and their gradients, in memory of a device backend.
type Model struct {
	cfg    Config
	part   Part
	memory *arena
	frozen bool // there are no gradients

	embedding *Param
	positions *Param // nil unless they are learned
	layers    []layerWeights
	finalNorm normWeights
	head      *Param // the embedding when tied
	params    []*Param
	adapters  []*Param // A and B of each adapter
	flats     []Flat
	rounded   []bool // by depth: whether the copies of the weights are those of their values
}

// Part is the part of a model that a rank has; the zero value is all of it.
type Part struct {
	Tensor  *world.World // ranks that share the projections of each layer; nil where each has all
	Experts *world.World // ranks that share the experts of each layer; nil where each has all
}

// New allocates a model with zero weights. Close returns its memory.
func New(cfg Config, backend device.Backend) (*Model, error) { return NewPart(cfg, backend, Part{}) }

// NewPart is New for the part of a model that a rank has.
func NewPart(cfg Config, backend device.Backend, part Part) (*Model, error) {
	return newModel(cfg, backend, part, false)
}

// NewFrozen is New without memory for gradients. A pass of such a model cannot train.
func NewFrozen(cfg Config, backend device.Backend) (*Model, error) {
	return newModel(cfg, backend, Part{}, true)
}

func newModel(cfg Config, backend device.Backend, part Part, frozen bool) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, part: part, memory: &arena{backend: backend}, frozen: frozen}
	b := weightBuilder{m: m, names: llamaNames}
	if cfg.family() == familyGPT2 {
		b.names, b.inOut = gpt2Names, true
	}
	h, normal := cfg.HiddenSize, start{std: cfg.InitMethodStd}
	m.embedding = b.param(b.names.embedding+".weight", normal, cfg.VocabSize, h)
	if cfg.learnedPositions() {
		m.positions = b.param(b.names.positions+".weight", normal, cfg.positions(), h)
	}
	for i := range cfg.NumLayers {
		b.depth = i + 1
		m.layers = append(m.layers, b.layer(b.names.layers+strconv.Itoa(i)+"."))
	}
	b.depth = cfg.NumLayers + 1
	m.finalNorm = b.norm(b.names.finalNorm, h)
	m.head = m.embedding
	if cfg.Untie {
		m.head = b.param(b.names.head+".weight", normal, cfg.VocabSize, h)
	}
	m.allocate()
	m.copies()
	m.rounded = make([]bool, cfg.NumLayers+2)
	if m.memory.err != nil {
		return nil, fmt.Errorf("allocate the weights: %w", m.memory.fail())
	}
	return m, nil
}

// Outline returns a model without memory, for the names and shapes of its weights.
func Outline(cfg Config) (*Model, error) { return New(cfg, &counter{}) }

// Config returns the parameters of the architecture.
func (m *Model) Config() Config { return m.cfg }

// Params returns every weight once, in a fixed order. The caller must not change the slice.
func (m *Model) Params() []*Param { return m.params }

// Close returns the memory of weights and gradients.
func (m *Model) Close() error { return m.memory.close() }

// weightBuilder lists the weights of a model in the order of its computation.
type weightBuilder struct {
	m     *Model
	names names
	inOut bool
	depth int
}

func (b *weightBuilder) param(name string, s start, shape ...int) *Param {
	p := &Param{Name: name, Shape: shape, Decay: len(shape) > 1, Depth: b.depth, start: s}
	b.m.params = append(b.m.params, p)
	return p
}

func (b *weightBuilder) norm(name string, size int) normWeights {
	w := normWeights{gain: b.param(name+".weight", start{value: 1}, size)}
	if b.m.cfg.layerNorm() {
		w.bias = b.param(name+".bias", start{}, size)
	}
	return w
}

// linear makes a projection of in to out columns; parts are those of its rows.
func (b *weightBuilder) linear(name string, std float64, bias bool, out, in int, parts ...part) linearWeights {
	w := linearWeights{inOut: b.inOut}
	if w.inOut {
		w.weight = b.param(name+".weight", start{std: std}, in, out)
	} else {
		w.weight = b.param(name+".weight", start{std: std}, out, in)
		w.weight.parts = suffixed(parts, ".weight")
	}
	w.weight.matrices, w.weight.inOut = []int{w.weight.Shape[0]}, w.inOut
	if bias {
		w.bias = b.param(name+".bias", start{}, out)
		if !w.inOut {
			w.bias.parts = suffixed(parts, ".bias")
		}
	}
	if w.inOut {
		parts = nil // checkpoints store them as one
	}
	w.adapters = b.adapters(name, out, in, parts)
	return w
}

// share leaves this rank its part of the outputs of a projection, of each group of them, or of its
// inputs without groups.
func (b *weightBuilder) share(w *linearWeights, groups ...int) {
	t := b.m.part.Tensor
	if t == nil {
		return
	}
	w.shared, w.sums = t, groups == nil
	slice, bias := layout.Projection(w.weight.Shape, w.inOut, groups, t.Rank, t.Ranks)
	params := []*Param{w.weight, w.bias}
	for i, s := range []layout.Slice{slice, bias} {
		p := params[i]
		if p == nil || s.Rows == nil && s.Cols == nil {
			continue
		}
		p.slice, p.Shape = s, s.Shape()
		for k := range p.parts {
			p.parts[k].whole, p.parts[k].rows = p.parts[k].rows, p.parts[k].rows/t.Ranks
			p.parts[k].from = p.parts[k].rows * t.Rank
		}
	}
}

// local returns the parameters of the part of a layer that this rank computes.
func (m *Model) local() Config {
	c := m.cfg
	if t := m.part.Tensor; t != nil {
		c.KVChannels, c.NumQueryGroups = c.HeadDim(), c.Groups()/t.Ranks
		c.NumAttentionHeads, c.FFNHiddenSize = c.NumAttentionHeads/t.Ranks, c.FFNHiddenSize/t.Ranks
	}
	return c
}

func suffixed(parts []part, suffix string) []part {
	var all []part
	for _, p := range parts {
		all = append(all, part{name: p.name + suffix, rows: p.rows})
	}
	return all
}

func (b *weightBuilder) layer(at string) layerWeights {
	c, n := b.m.cfg, b.names
	h, d, heads, groups, f := c.HiddenSize, c.HeadDim(), c.NumAttentionHeads, c.Groups(), c.FFNHiddenSize
	std, bias := c.InitMethodStd, c.AddBiasLinear
	residual := std / math.Sqrt(2*float64(c.NumLayers))
	var w layerWeights
	w.inputNorm = b.norm(at+n.inputNorm, h)
	attention := at + n.attention
	w.qkv = b.linear(attention+n.qkv, std, c.qkvBias(), c.qkvRows(), h,
		part{name: attention + n.q, rows: heads * d}, part{name: attention + n.k, rows: groups * d}, part{name: attention + n.v, rows: groups * d})
	if c.QKNorm {
		w.qNorm, w.kNorm = b.norm(attention+n.qNorm, d), b.norm(attention+n.kNorm, d)
	}
	w.qkv.weight.fused = true
	w.out = b.linear(attention+n.out, residual, bias, h, heads*d)
	b.share(&w.qkv, heads*d, groups*d, groups*d)
	b.share(&w.out)
	w.postNorm = b.norm(at+n.postNorm, h)
	mlp := at + n.mlp
	switch {
	case c.mixture():
		w.experts = b.experts(at, std, residual)
		return w
	case c.gated():
		w.up = b.linear(mlp+n.gateUp, std, bias, 2*f, h, part{name: mlp + n.gate, rows: f}, part{name: mlp + n.up, rows: f})
		b.share(&w.up, f, f)
	default:
		w.up = b.linear(mlp+n.up, std, bias, f, h)
		b.share(&w.up, f)
	}
	w.down = b.linear(mlp+n.down, residual, bias, h, f)
	b.share(&w.down)
	return w
}

func (b *weightBuilder) experts(at string, std, residual float64) expertWeights {
	c, n := b.m.cfg, b.names
	h, f := c.HiddenSize, c.expertSize()
	first, num, share := 0, c.NumExperts, b.m.part.Experts
	if share != nil {
		num /= share.Ranks
		first = num * share.Rank
	}
	stacked := func(name string, s start, size, in int) *Param {
		p := b.param(at+n.experts+name+".weight", s, num*size, in)
		if share != nil {
			p.apart = true
			p.slice = layout.Slice{Whole: tensor.Shape{c.NumExperts * size, in}, Rows: []layout.Range{{Lo: first * size, Hi: (first + num) * size}}}
		}
		return p
	}
	w := expertWeights{
		router: b.linear(at+n.router, std, false, c.NumExperts, h), num: num,
		up: stacked(n.expertsUp, start{std: std}, 2*f, h), down: stacked(n.expertsDown, start{std: residual}, h, f),
	}
	w.router.weight.wide = true
	w.up.matrices, w.down.matrices = slices.Repeat([]int{2 * f}, num), slices.Repeat([]int{h}, num)
	for e := first; e < first+num; e++ {
		expert := at + n.experts + strconv.Itoa(e) + "."
		w.up.parts = append(w.up.parts, part{name: expert + n.expertGate + ".weight", rows: f}, part{name: expert + n.expertUp + ".weight", rows: f})
		w.down.parts = append(w.down.parts, part{name: expert + n.expertDown + ".weight", rows: h})
	}
	return w
}
