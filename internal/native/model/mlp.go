package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/ops/activation"
	"github.com/primus-fl/primus/tensor"
)

func (b *Builder) mlp(w LayerWeights) mlp {
	if b.Config.Mixture() {
		return b.experts(w.Experts)
	}
	defer b.during(architecture.MLP)()
	t, f := b.tokens(), b.Config.FFNHiddenSize
	up, down := b.Linear(w.Up), b.Linear(w.Down)
	b.postpone(&up, nil)
	b.postpone(&down, b.kept(t, b.Config.HiddenSize))
	in, act, dAct := b.Act(t, b.Config.UpRows()), b.Act(t, f), b.scratch(t, f)
	if b.Config.Gated() {
		m := &gatedMLP{up: up, down: down, in: in, act: act, dAct: dAct}
		fwd, bwd := activation.SwiGLU, activation.DSwiGLU
		switch b.Config.Activation {
		case architecture.GeGLU:
			fwd, bwd = activation.GEGLU, activation.DGEGLU
		case architecture.GeGLUErf:
			fwd, bwd = activation.GEGLUErf, activation.DGEGLUErf
		}
		m.fwd, m.bwd = opmanager.MustBind(b.Fwd, fwd), opmanager.MustBind(b.Bwd, bwd)
		return m
	}
	fwd, bwd, biasBwd := activation.GELU, activation.DGELU, activation.DBiasDGELU
	if b.Config.Activation == architecture.GELUErf {
		fwd, bwd, biasBwd = activation.GELUErf, activation.DGELUErf, activation.DBiasDGELUErf
	}
	return &gelu{
		up: up, down: down, in: in, act: act, dAct: dAct,
		fwd: opmanager.MustBind(b.Fwd, fwd), bwd: opmanager.MustBind(b.Bwd, bwd), biasBwd: opmanager.MustBind(b.Bwd, biasBwd),
	}
}

// gatedMLP is an MLP whose first projection computes gate and value.
type gatedMLP struct {
	up, down Linear
	in       *tensor.Tensor // [T 2f], the input of the activation, which backward overwrites with its gradient
	act      *tensor.Tensor // [T f]
	dAct     *tensor.Tensor
	fwd      *opmanager.Bound[activation.ActivationArgs]
	bwd      *opmanager.Bound[activation.DActivationArgs]
}

func (m *gatedMLP) Forward(r *Run, x, y *tensor.Tensor) {
	m.up.Forward(r, x, m.in)
	Call(r, m.fwd, activation.ActivationArgs{Input: m.in, Output: m.act})
	if y != nil {
		m.down.Forward(r, m.act, y)
	}
}

func (m *gatedMLP) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	m.down.Backward(r, m.act, dy, m.dAct)
	Call(r, m.bwd, activation.DActivationArgs{Grad: m.dAct, FwdInput: m.in, Output: m.in})
	m.up.Backward(r, x, m.in, dx)
}

// gelu is the MLP of two projections with GELU between them.
type gelu struct {
	up, down Linear
	in       *tensor.Tensor // [T f], as in gatedMLP
	act      *tensor.Tensor // [T f]
	dAct     *tensor.Tensor
	fwd      *opmanager.Bound[activation.ActivationArgs]
	bwd      *opmanager.Bound[activation.DActivationArgs]
	biasBwd  *opmanager.Bound[activation.DBiasDActivationArgs]
}

func (m *gelu) Forward(r *Run, x, y *tensor.Tensor) {
	m.up.Forward(r, x, m.in)
	Call(r, m.fwd, activation.ActivationArgs{Input: m.in, Output: m.act})
	if y != nil {
		m.down.Forward(r, m.act, y)
	}
}

func (m *gelu) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	m.down.Backward(r, m.act, dy, m.dAct)
	if m.up.biasGrad.param == nil {
		Call(r, m.bwd, activation.DActivationArgs{Grad: m.dAct, FwdInput: m.in, Output: m.in})
	} else {
		Call(r, m.biasBwd, activation.DBiasDActivationArgs{Grad: m.dAct, FwdInput: m.in, DBias: m.up.biasGrad.to(r), Output: m.in})
		m.up.biasGrad.done(r)
	}
	m.up.products(r, x, m.in, dx, nil)
}
