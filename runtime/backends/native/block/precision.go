package block

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/optim"
	"github.com/primus-fl/primus/runtime/backends/native/fp8"
	"github.com/primus-fl/primus/runtime/backends/native/param"
	"github.com/primus-fl/primus/tensor"
)

// matrix returns the values of a weight as the ops of the builder take them, nil without a weight.
func (b *Builder) matrix(p *param.Param) *tensor.Tensor {
	if p != nil && b.Config.Compute() != tensor.F32 && p.Rounded() != nil {
		return p.Rounded()
	}
	return p.ValueOrNil()
}

// eights round the operands of a linear layer to fp8; nil leaves them as they are.
type eights struct {
	in, grad       *fp8.Rounder
	inOut, gradOut *tensor.Tensor // what is rounded, in memory that layers share
}

func (b *Builder) eights(w *param.Param, in, out int) *eights {
	if b.Config.Compute() == tensor.F32 || !w.Eight {
		return nil
	}
	shared := b.Keep
	if b.again != nil {
		shared = b.again
	}
	e := &eights{in: fp8.NewRounder(b.Fwd, tensor.F8E4M3, shared.New, b.tokens(), in), inOut: shared.New(b.Config.Compute(), b.tokens(), in)}
	if b.again != nil {
		e.grad = fp8.NewRounder(b.Bwd, b.Config.Params.GradType(), shared.New, b.tokens(), out)
		e.gradOut = shared.New(b.Config.Compute(), b.tokens(), out)
	}
	return e
}

// input returns the input of the layer as it enters products.
func (e *eights) input(r *Run, x *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return x
	}
	return Rounded(r, e.in, x, e.inOut)
}

// gradient returns the gradient of the output of the layer as it enters products.
func (e *eights) gradient(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if e == nil {
		return dy
	}
	return Rounded(r, e.grad, dy, e.gradOut)
}

// Rounded writes x, rounded to fp8, to y and returns it.
func Rounded(r *Run, by *fp8.Rounder, x, y *tensor.Tensor) *tensor.Tensor {
	quantize, dequantize := by.Args(x, y)
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
	b.wide = &wide{in: b.Keep.F32(b.tokens(), b.Config.HiddenSize), cast: b.Caster(m)}
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
