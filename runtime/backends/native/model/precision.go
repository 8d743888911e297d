package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// Precision are the parameters of the types of numbers, with Megatron's names. With BF16 or FP16,
// activations, their gradients and the copies of matrices that products read have 16 bits. Weights,
// gradients of weights, and sums and statistics inside of ops are f32 always.
type Precision struct {
	BF16 bool `param:"bf16"`
	FP16 bool `param:"fp16"`
}

// Compute returns the type of activations.
func (p Precision) Compute() tensor.DType {
	switch {
	case p.BF16:
		return tensor.BF16
	case p.FP16:
		return tensor.F16
	default:
		return tensor.F32
	}
}

// Rounded returns the copy of the weight that layers multiply with; nil if they multiply with the
// weight itself.
func (p *Param) Rounded() *tensor.Tensor { return p.rounded }

// matrix returns the values of a weight as the ops of the builder take them, nil without a weight.
func (b *builder) matrix(p *Param) *tensor.Tensor {
	if p != nil && b.cfg.Compute() != tensor.F32 && p.rounded != nil {
		return p.rounded
	}
	return p.value()
}

// copies gives each matrix a copy of the type of activations.
func (m *Model) copies() {
	d := m.cfg.Compute()
	if d == tensor.F32 {
		return
	}
	for _, p := range m.all() {
		if len(p.Shape) > 1 && !p.wide {
			p.rounded = m.memory.new(d, p.Shape...)
		}
	}
}

// WeightsChanged makes following passes round the weights again. Who writes weights after the
// first pass calls it.
func (m *Model) WeightsChanged() {
	for i := range m.rounded {
		m.rounded[i] = false
	}
}

// caster converts tensors to another type, rounded to nearest.
type caster struct {
	flag *tensor.Tensor
	op   *opmanager.Bound[optim.MultiTensorScaleArgs]
	from [1]*tensor.Tensor
	to   [1]*tensor.Tensor
}

func (b *builder) caster(m *opmanager.Manager) *caster {
	return &caster{flag: b.keep.new(tensor.I32, 1), op: opmanager.MustBind(m, optim.MultiTensorScale)}
}

// cast converts one tensor.
func (c *caster) cast(r *run, from, to *tensor.Tensor) {
	c.from[0], c.to[0] = from, to
	c.all(r, c.from[:], c.to[:])
}

func (c *caster) all(r *run, from, to []*tensor.Tensor) {
	call(r, c.op, optim.MultiTensorScaleArgs{NoopFlag: c.flag, TensorLists: [][]*tensor.Tensor{from, to}, Scale: 1})
}

// wide holds the f32 copy of the input of a router, which computes in f32 in every precision.
type wide struct {
	in   *tensor.Tensor // [T h]
	cast *caster
}

// wideInput makes the memory that the routers share; nil where activations are f32.
func (b *builder) wideInput(m *opmanager.Manager) *wide {
	if b.cfg.Compute() == tensor.F32 || !b.cfg.mixture() {
		return nil
	}
	return &wide{in: b.keep.f32(b.tokens(), b.cfg.HiddenSize), cast: b.caster(m)}
}

// widen returns x in f32.
func (w *wide) widen(r *run, x *tensor.Tensor) *tensor.Tensor {
	if w == nil {
		return x
	}
	w.cast.cast(r, x, w.in)
	return w.in
}

// narrow rounds an f32 gradient to dx; without w they are the same.
func (w *wide) narrow(r *run, gradient, dx *tensor.Tensor) {
	if w != nil {
		w.cast.cast(r, gradient, dx)
	}
}

// round fills the copies of the weights of a depth, unless they are those of the present weights.
func (p *Pass) round(r *run, depth int) {
	if p.m.cfg.Compute() == tensor.F32 || p.m.rounded[depth] || r.err != nil {
		return
	}
	var from, to []*tensor.Tensor
	for _, w := range p.m.all() {
		if w.Depth == depth && w.rounded != nil {
			from, to = append(from, w.Value), append(to, w.rounded)
		}
	}
	if from != nil {
		p.rounder.all(r, from, to)
	}
	p.m.rounded[depth] = r.err == nil
}
