package model

import (
	"math"
	"slices"
	"strconv"

	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/tensor"
)

// NormWeights are the weights of a norm; RMSNorm has no bias.
type NormWeights struct{ Gain, Bias *Param }

// LinearWeights are the weights of y = x·Wᵀ + b. A weight is [out in], or [in out] if the family of
// checkpoints stores it so.
type LinearWeights struct {
	Weight *Param
	Bias   *Param // nil without
	InOut  bool

	Adapters []AdapterWeights

	Shared *world.World // ranks that share the projection; nil where each has all
	Sums   bool         // outputs are sums over these ranks, each of which has a part of the inputs
}

// ExpertWeights are the weights of the experts of a layer, one expert after the other.
type ExpertWeights struct {
	Router   LinearWeights
	Num      int    // of this rank
	Up, Down *Param // [num·2f, h], [num·h, f]
}

// LayerWeights are the weights of a layer.
type LayerWeights struct {
	InputNorm, PostNorm    NormWeights // with norms of inputs
	AttentionNorm, MLPNorm NormWeights // with norms of outputs
	QKV, Out               LinearWeights
	QNorm, KNorm           NormWeights   // with QK norms
	Up, Down               LinearWeights // without experts
	Experts                ExpertWeights
}

// Part is the part of a model that a rank has; the zero value is all of it.
type Part struct {
	Tensor   *world.World // ranks that share projections and vocabulary; nil where each has all
	Sequence bool         // these ranks divide the rows between the projections, too
	Experts  *world.World // ranks that share the experts of each layer; nil where each has all
	Context  *world.World // ranks that have the other tokens of each sequence; nil where each has all
	Ring     bool         // keys and values travel from one of these to the next; without, each collects them
	Rows     *world.World // ranks that have the other rows between projections; nil where each has all

	// Stretches are what this stage of a pipeline computes, in the order of the model; nil for all of
	// it.
	Stretches []Stretch
}

// WeightBuilder lists the weights of a model in the order of its computation.
type WeightBuilder struct {
	cfg      architecture.Config
	part     Part
	Names    architecture.Names
	inOut    bool // matrices are [in out]
	Depth    int
	Params   []*Param
	Adapters []*Param // A and B of each adapter
}

// NewWeightBuilder returns a builder for the part of a model that a rank has.
func NewWeightBuilder(cfg architecture.Config, part Part) *WeightBuilder {
	b := &WeightBuilder{cfg: cfg, part: part}
	b.Names, b.inOut = cfg.Names()
	return b
}

// Param adds a weight.
func (b *WeightBuilder) Param(name string, s Start, shape ...int) *Param {
	p := &Param{Name: name, Shape: shape, Decay: len(shape) > 1, Depth: b.Depth, start: s}
	b.Params = append(b.Params, p)
	return p
}

// Table adds a matrix with a row for each token, of which each of the ranks that share layers has a
// part.
func (b *WeightBuilder) Table(name string, s Start, rows, cols int) *Param {
	p := b.Param(name, s, rows, cols)
	if t := b.part.Tensor; t != nil {
		p.Slice = Slice{Whole: p.Shape, Rows: []Range{Portion(rows, t.Rank, t.Ranks)}}
		p.Shape = p.Slice.Shape()
	}
	return p
}

// Norm adds the weights of a norm.
func (b *WeightBuilder) Norm(name string, size int) NormWeights {
	start := Start{value: 1}
	if b.cfg.ZeroCentered {
		start.value = 0
	}
	w := NormWeights{Gain: b.Param(name+".weight", start, size)}
	if b.cfg.HasLayerNorm() {
		w.Bias = b.Param(name+".bias", Start{}, size)
	}
	return w
}

// linear makes a projection of in to out columns; parts are those of its rows.
func (b *WeightBuilder) linear(name string, std float64, bias bool, out, in int, parts ...part) LinearWeights {
	w := LinearWeights{InOut: b.inOut}
	if w.InOut {
		w.Weight = b.Param(name+".weight", Start{Std: std}, in, out)
	} else {
		w.Weight = b.Param(name+".weight", Start{Std: std}, out, in)
		w.Weight.Parts = suffixed(parts, ".weight")
	}
	w.Weight.matrices, w.Weight.inOut = []int{w.Weight.Shape[0]}, w.InOut
	if bias {
		w.Bias = b.Param(name+".bias", Start{}, out)
		if !w.InOut {
			w.Bias.Parts = suffixed(parts, ".bias")
		}
	}
	if w.InOut {
		parts = nil // checkpoints store them as one
	}
	w.Adapters = b.adapt(name, out, in, parts)
	return w
}

// share leaves this rank its part of the outputs of a projection, of each group of them, or of its
// inputs without groups.
func (b *WeightBuilder) share(w *LinearWeights, groups ...int) {
	t := b.part.Tensor
	if t == nil {
		return
	}
	w.Shared, w.Sums = t, groups == nil
	slice, bias := Projection(w.Weight.Shape, w.InOut, groups, t.Rank, t.Ranks)
	params := []*Param{w.Weight, w.Bias}
	for i, s := range []Slice{slice, bias} {
		p := params[i]
		if p == nil || s.Rows == nil && s.Cols == nil {
			continue
		}
		p.Slice, p.Shape = s, s.Shape()
		if p.matrices != nil {
			p.matrices = []int{p.Shape[0]}
		}
		for k := range p.Parts {
			p.Parts[k].Whole, p.Parts[k].Rows = p.Parts[k].Rows, p.Parts[k].Rows/t.Ranks
			p.Parts[k].From = p.Parts[k].Rows * t.Rank
		}
	}
	for i := range w.Adapters {
		w.Adapters[i].share(groups, t.Rank, t.Ranks)
	}
}

func suffixed(parts []part, suffix string) []part {
	var all []part
	for _, p := range parts {
		all = append(all, part{Name: p.Name + suffix, Rows: p.Rows})
	}
	return all
}

// Layer adds the weights of a layer whose names begin with at.
func (b *WeightBuilder) Layer(at string) LayerWeights {
	c, n := b.cfg, b.Names
	h, d, heads, groups, f := c.HiddenSize, c.HeadDim(), c.NumAttentionHeads, c.Groups(), c.FFNHiddenSize
	std, bias := c.InitMethodStd, c.HasMLPBias()
	residual := std / math.Sqrt(2*float64(c.NumLayers))
	var w LayerWeights
	if c.HasPreNorms() {
		w.InputNorm = b.Norm(at+n.InputNorm, h)
	}
	attention := at + n.Attention
	w.QKV = b.linear(attention+n.QKV, std, c.HasQKVBias(), c.QKVRows(), h,
		part{Name: attention + n.Q, Rows: heads * d}, part{Name: attention + n.K, Rows: groups * d}, part{Name: attention + n.V, Rows: groups * d})
	if c.QKNorm {
		q, k := d, d
		if c.QKNormWhole {
			q, k = heads*d, groups*d
		}
		w.QNorm, w.KNorm = b.Norm(attention+n.QNorm, q), b.Norm(attention+n.KNorm, k)
	}
	w.QKV.Weight.fused = true
	w.Out = b.linear(attention+n.Out, residual, c.HasOutputBias(), h, heads*d)
	b.share(&w.QKV, heads*d, groups*d, groups*d)
	b.share(&w.Out)
	if c.HasPostNorms() {
		w.AttentionNorm, w.MLPNorm = b.Norm(at+n.AttentionNorm, h), b.Norm(at+n.MLPNorm, h)
	}
	if c.HasPreNorms() {
		w.PostNorm = b.Norm(at+n.PostNorm, h)
	}
	mlp := at + n.MLP
	switch {
	case c.Mixture():
		w.Experts = b.experts(at, std, residual)
		return w
	case c.Gated():
		w.Up = b.linear(mlp+n.GateUp, std, bias, 2*f, h, part{Name: mlp + n.Gate, Rows: f}, part{Name: mlp + n.Up, Rows: f})
		b.share(&w.Up, f, f)
	default:
		w.Up = b.linear(mlp+n.Up, std, bias, f, h)
		b.share(&w.Up, f)
	}
	w.Down = b.linear(mlp+n.Down, residual, bias, h, f)
	b.share(&w.Down)
	return w
}

func (b *WeightBuilder) experts(at string, std, residual float64) ExpertWeights {
	c, n := b.cfg, b.Names
	h, f := c.HiddenSize, c.ExpertSize()
	first, num, share := 0, c.NumExperts, b.part.Experts
	if share != nil {
		num /= share.Ranks
		first = num * share.Rank
	}
	stacked := func(name string, s Start, size, in int) *Param {
		p := b.Param(at+n.Experts+name+".weight", s, num*size, in)
		p.Apart = share != nil || b.part.Tensor != nil // rows of activations of other ranks come to it, or have copies of it
		if share != nil {
			p.Slice = Slice{Whole: tensor.Shape{c.NumExperts * size, in}, Rows: []Range{{Lo: first * size, Hi: (first + num) * size}}}
		}
		return p
	}
	w := ExpertWeights{
		Router: b.linear(at+n.Router, std, false, c.NumExperts, h), Num: num,
		Up: stacked(n.ExpertsUp, Start{Std: std}, 2*f, h), Down: stacked(n.ExpertsDown, Start{Std: residual}, h, f),
	}
	w.Router.Weight.Wide = true
	w.Up.matrices, w.Down.matrices = slices.Repeat([]int{2 * f}, num), slices.Repeat([]int{h}, num)
	for e := first; e < first+num; e++ {
		expert := at + n.Experts + strconv.Itoa(e) + "."
		w.Up.Parts = append(w.Up.Parts, part{Name: expert + n.ExpertGate + ".weight", Rows: f}, part{Name: expert + n.ExpertUp + ".weight", Rows: f})
		w.Down.Parts = append(w.Down.Parts, part{Name: expert + n.ExpertDown + ".weight", Rows: h})
	}
	return w
}
