package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

func (b *builder) mlp(w layerWeights) mlp {
	if b.cfg.mixture() {
		return b.experts(w.experts)
	}
	defer b.during(recompute.MLP)()
	t, f := b.tokens(), b.cfg.FFNHiddenSize
	up, down := b.linear(w.up), b.linear(w.down)
	in, act, dAct := b.act(t, b.cfg.upRows()), b.act(t, f), b.scratch(t, f)
	if b.cfg.gated() {
		return &swiGLU{
			up: up, down: down, in: in, act: act, dAct: dAct,
			fwd: opmanager.MustBind(b.fwd, activation.SwiGLU), bwd: opmanager.MustBind(b.bwd, activation.DSwiGLU),
		}
	}
	return &gelu{
		up: up, down: down, in: in, act: act, dAct: dAct,
		fwd: opmanager.MustBind(b.fwd, activation.GELU), bwd: opmanager.MustBind(b.bwd, activation.DGELU),
		biasBwd: opmanager.MustBind(b.bwd, activation.DBiasDGELU),
	}
}

// swiGLU is an MLP whose first projection computes gate and value.
type swiGLU struct {
	up, down linear
	in       *tensor.Tensor // [T 2f], the input of the activation, which backward overwrites with its gradient
	act      *tensor.Tensor // [T f]
	dAct     *tensor.Tensor
	fwd      *opmanager.Bound[activation.SwiGLUArgs]
	bwd      *opmanager.Bound[activation.DSwiGLUArgs]
}

func (m *swiGLU) forward(r *run, x, y *tensor.Tensor) {
	m.up.forward(r, x, m.in)
	call(r, m.fwd, activation.SwiGLUArgs{Input: m.in, Output: m.act})
	if y != nil {
		m.down.forward(r, m.act, y)
	}
}

func (m *swiGLU) backward(r *run, x, dy, dx *tensor.Tensor) {
	m.down.backward(r, m.act, dy, m.dAct)
	call(r, m.bwd, activation.DSwiGLUArgs{Grad: m.dAct, FwdInput: m.in, Output: m.in})
	m.up.backward(r, x, m.in, dx)
}

// gelu is the MLP of two projections with GELU between them.
type gelu struct {
	up, down linear
	in       *tensor.Tensor // [T f], as in swiGLU
	act      *tensor.Tensor // [T f]
	dAct     *tensor.Tensor
	fwd      *opmanager.Bound[activation.ActivationArgs]
	bwd      *opmanager.Bound[activation.DActivationArgs]
	biasBwd  *opmanager.Bound[activation.DBiasDActivationArgs]
}

func (m *gelu) forward(r *run, x, y *tensor.Tensor) {
	m.up.forward(r, x, m.in)
	call(r, m.fwd, activation.ActivationArgs{Input: m.in, Output: m.act})
	if y != nil {
		m.down.forward(r, m.act, y)
	}
}

func (m *gelu) backward(r *run, x, dy, dx *tensor.Tensor) {
	m.down.backward(r, m.act, dy, m.dAct)
	if m.up.biasGrad.param == nil {
		call(r, m.bwd, activation.DActivationArgs{Grad: m.dAct, FwdInput: m.in, Output: m.in})
	} else {
		call(r, m.biasBwd, activation.DBiasDActivationArgs{Grad: m.dAct, FwdInput: m.in, DBias: m.up.biasGrad.to(r), Output: m.in})
		m.up.biasGrad.done(r)
	}
	m.up.products(r, x, m.in, dx, nil)
}
