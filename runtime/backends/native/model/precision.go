package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/runtime/backends/native/fp8"
	"github.com/primus-fl/primus/tensor"
)

// Precision are the parameters of the types of numbers, with Megatron's names. With BF16 or FP16,
// activations, their gradients and the copies of matrices that products read have 16 bits. Weights,
// gradients of weights, and sums and statistics inside of ops are f32 always.
type Precision struct {
	BF16 bool `param:"bf16"`
	FP16 bool `param:"fp16"`
	fp8.Params
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
			p.eight = p.matrices != nil && m.cfg.Params.At(p.Depth-1, m.cfg.NumLayers)
		}
	}
}

// eights round the operands of a linear layer to fp8; nil leaves them as they are.
type eights struct {
	in, grad       *fp8.Rounder
	inOut, gradOut *tensor.Tensor // what is rounded, in memory that layers share
}

func (b *builder) eights(w *Param, in, out int) *eights {
	if b.cfg.Compute() == tensor.F32 || !w.eight {
		return nil
	}
	shared := b.keep
	if b.again != nil {
		shared = b.again
	}
	e := &eights{in: fp8.NewRounder(b.fwd, tensor.F8E4M3, shared.new, b.tokens(), in), inOut: shared.new(b.cfg.Compute(), b.tokens(), in)}
	if b.again != nil {
		e.grad = fp8.NewRounder(b.bwd, b.cfg.Params.GradType(), shared.new, b.tokens(), out)
		e.gradOut = shared.new(b.cfg.Compute(), b.tokens(), out)
	}
	return e
}

// input returns the input of the layer as it enters products.
func (e *eights) input(r *run, x *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return x
	}
	return rounded(r, e.in, x, e.inOut)
}

// gradient returns the gradient of the output of the layer as it enters products.
func (e *eights) gradient(r *run, dy *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return dy
	}
	return rounded(r, e.grad, dy, e.gradOut)
}

// rounded writes x, rounded to fp8, to y and returns it.
func rounded(r *run, by *fp8.Rounder, x, y *tensor.Tensor) *tensor.Tensor {
	quantize, dequantize := by.Args(x, y)
	call(r, by.Quantize, quantize)
	call(r, by.Dequantize, dequantize)
	return y
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

// roundWeights makes what rounds the weights to fp8.
func (p *Pass) roundWeights(mgr *opmanager.Manager) {
	p.eight = map[*Param]*fp8.Rounder{}
	data := map[int]*tensor.Tensor{} // by size, which weights share
	for _, w := range p.m.all() {
		if !w.eight {
			continue
		}
		p.eight[w] = fp8.NewRounder(mgr.Phase(oppolicy.PhaseForward), tensor.F8E4M3, func(d tensor.DType, shape ...int) *tensor.Tensor {
			n := tensor.Shape(shape).NumElements()
			if d == tensor.F32 { // a scale
				return p.memory.new(d, n)
			}
			if data[n] == nil {
				data[n] = p.memory.new(d, n)
			}
			if data[n] == nil {
				return nil
			}
			return must(data[n].Reshape(shape...))
		}, w.Shape[0], w.Shape[1])
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
	for _, w := range p.m.all() {
		if w.Depth == depth && w.eight {
			rounded(r, p.eight[w], w.Value, w.rounded)
		}
	}
	p.m.rounded[depth] = r.err == nil
}
