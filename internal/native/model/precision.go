package model

import (
	"github.com/primus-fl/primus/internal/native/fp8"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/tensor"
)

// matrix returns the values of a weight as the ops of the builder take them, nil without a weight.
func (b *Builder) matrix(p *Param) *tensor.Tensor {
	m, _ := b.matrices(p)
	return m
}

// matrices returns matrix for products along the rows of the weight and along its columns.
func (b *Builder) matrices(p *Param) (alongRows, alongColumns *tensor.Tensor) {
	if p != nil && b.Config.Compute() != tensor.F32 {
		if alongRows, alongColumns = p.Rounded(); alongRows != nil {
			return alongRows, alongColumns
		}
	}
	return p.ValueOrNil(), p.ValueOrNil()
}

// eights round the operands of a linear layer to fp8; nil leaves them as they are.
type eights struct {
	in, grad       *fp8.Rounder
	inOut, gradOut *tensor.Tensor // what is rounded, in memory that layers share
}

func (b *Builder) eights(w *Param, in, out int) *eights {
	if b.Config.Compute() == tensor.F32 || !w.Eight {
		return nil
	}
	c, d := b.Config.Params, b.Config.Compute()
	scale := func(of fp8.Operand) *fp8.Scale { return b.Scales.Operand(b.scaled, of) }
	e := &eights{in: c.NewRounder(b.Fwd, fp8.Input, scale(fp8.Input), b.narrow.New, b.tokens(), in), inOut: b.narrow.New(d, b.tokens(), in)}
	if b.again != nil {
		e.grad = c.NewRounder(b.Bwd, fp8.Gradient, scale(fp8.Gradient), b.narrow.New, b.tokens(), out)
		e.gradOut = b.narrow.New(d, b.tokens(), out)
	}
	b.scaled++
	return e
}

// input returns the input of the layer as it enters products along its rows or columns.
func (e *eights) input(r *Run, x *tensor.Tensor, alongColumns bool) *tensor.Tensor {
	if e == nil {
		return x
	}
	return Rounded(r, e.in, x, e.inOut, alongColumns)
}

// gradient returns the gradient of the output of the layer as it enters products along its rows.
func (e *eights) gradient(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return dy
	}
	return Rounded(r, e.grad, dy, e.gradOut, false)
}

// turned returns gradient for products along columns, after those along rows.
func (e *eights) turned(r *Run, dy, alongRows *tensor.Tensor) *tensor.Tensor {
	if e == nil || !e.grad.Sided() {
		return alongRows
	}
	return Rounded(r, e.grad, dy, e.gradOut, true)
}

// Rounded writes x, rounded to fp8 for products along its rows or columns, to y and returns it.
func Rounded(r *Run, by *fp8.Rounder, x, y *tensor.Tensor, alongColumns bool) *tensor.Tensor {
	quantize, dequantize := by.Args(x, y, alongColumns)
	Call(r, by.Quantize, quantize)
	Call(r, by.Dequantize, dequantize)
	return y
}

// Caster converts tensors to another type, rounded to nearest.
type Caster struct {
	flag *tensor.Tensor
	op   *opmanager.Bound[optim.MultiTensorScaleArgs]
	from [1]*tensor.Tensor
	to   [1]*tensor.Tensor
}

// Caster makes a Caster.
func (b *Builder) Caster(m *opmanager.Manager) *Caster {
	return &Caster{flag: b.Keep.New(tensor.I32, 1), op: opmanager.MustBind(m, optim.MultiTensorScale)}
}

// cast converts one tensor.
func (c *Caster) cast(r *Run, from, to *tensor.Tensor) {
	c.from[0], c.to[0] = from, to
	c.All(r, c.from[:], c.to[:])
}

// All converts each tensor of from to that of to.
func (c *Caster) All(r *Run, from, to []*tensor.Tensor) {
	Call(r, c.op, optim.MultiTensorScaleArgs{NoopFlag: c.flag, TensorLists: [][]*tensor.Tensor{from, to}, Scale: 1})
}

// wide holds the f32 copy of the input of a router, which computes in f32 in every precision.
type wide struct {
	in   *tensor.Tensor // [T h]
	cast *Caster
}

// ShareWide makes the memory that the routers of all layers share, which there is unless
// activations are f32.
func (b *Builder) ShareWide(m *opmanager.Manager) {
	if b.Config.Compute() == tensor.F32 || !b.Config.Mixture() {
		return
	}
	b.wide = &wide{in: b.Keep.F32(b.mlpRows(), b.Config.HiddenSize), cast: b.Caster(m)}
}

// widen returns x in f32.
func (w *wide) widen(r *Run, x *tensor.Tensor) *tensor.Tensor {
	if w == nil {
		return x
	}
	w.cast.cast(r, x, w.in)
	return w.in
}

// narrow rounds an f32 gradient to dx; without w they are the same.
func (w *wide) narrow(r *Run, gradient, dx *tensor.Tensor) {
	if w != nil {
		w.cast.cast(r, gradient, dx)
	}
}
