package model

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// run is one forward or backward pass: its first error, and where it is.
type run struct {
	at         string // a part without layers, or the part of layer index
	index      int    // -1 outside of layers
	pass       *Pass
	call       *calls // of this place
	check      bool
	accumulate bool
	err        error
}

// run begins a forward or backward pass; there is one at a time.
func (p *Pass) run() *run {
	p.current = run{index: -1, check: p.check, pass: p, call: &p.outside}
	return &p.current
}

// layer moves on to a part of a layer.
func (r *run) layer(i int, part string) { r.index, r.at, r.call = i, part, &r.pass.layers[i].call }

// leave moves on to a part without layers.
func (r *run) leave(part string) { r.index, r.at, r.call = -1, part, &r.pass.outside }

func (r *run) place() string {
	if r.index >= 0 {
		return fmt.Sprintf("layer %d %s", r.index, r.at)
	}
	return r.at
}

// NonFiniteError says that an op produced a NaN or an infinity.
type NonFiniteError struct {
	Place   string // "layer 3 mlp"
	Op      string
	Operand string
	Value   float64
}

// Error names op, operand, value and the place in the model.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("%s: op %q: operand %q holds %v", e.Place, e.Op, e.Operand, e.Value)
}

// call calls an op unless an earlier one has failed.
func call[A any](r *run, b *opmanager.Bound[A], a A) {
	if r.err != nil {
		return
	}
	if err := b.Call(a); err != nil {
		r.err = fmt.Errorf("%s: %w", r.place(), err)
		return
	}
	if r.check {
		r.err = nonFinite(r.place(), b.Op().Name(), b.Op().Operands(a))
	}
}

func nonFinite(place, op string, operands []opregistry.Operand) error {
	for _, o := range operands {
		if o.Access == opregistry.Read || o.Tensor.DType() != tensor.F32 {
			continue
		}
		for _, v := range o.Tensor.Float64s() {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return &NonFiniteError{Place: place, Op: op, Operand: o.Name, Value: v}
			}
		}
	}
	return nil
}

// linear is y = x·Wᵀ.
func (p *Pass) linear(r *run, w *Param, x, y *tensor.Tensor) {
	call(r, r.call.gemm, ops.GenericGemmArgs{A: w.Value, TransA: true, B: x, D: y})
}

// linearBackward is dx = dy·W and dW = dyᵀ·x.
func (p *Pass) linearBackward(r *run, w *Param, x, dy, dx *tensor.Tensor) {
	call(r, r.call.gemmBwd, ops.GenericGemmArgs{A: w.Value, B: dy, D: dx})
	call(r, r.call.gemmBwd, ops.GenericGemmArgs{A: x, B: dy, TransB: true, D: w.Grad, Grad: true, Accumulate: r.accumulate})
}

func (p *Pass) normForward(r *run, x *tensor.Tensor, gamma *Param, y, rsigma *tensor.Tensor, saved *opregistry.Saved) {
	call(r, r.call.normFwd, ops.RMSNormFwdArgs{
		Input: x, Weight: gamma.Value, Output: y, RSigma: rsigma, Eps: float32(p.m.cfg.NormEpsilon), Saved: saved,
	})
}

func (p *Pass) normBackward(r *run, x *tensor.Tensor, gamma *Param, rsigma, dy, dx *tensor.Tensor, saved *opregistry.Saved) {
	dGamma := gamma.Grad
	if r.accumulate {
		dGamma = p.grad.gamma
	}
	call(r, r.call.normBwd, ops.RMSNormBwdArgs{
		DZ: dy, X: x, RSigma: rsigma, Gamma: gamma.Value, DX: dx, DGamma: dGamma, Saved: saved,
	})
	if r.accumulate {
		call(r, r.call.addBwd, ops.ResidualAddArgs{A: gamma.Grad, B: dGamma, Output: gamma.Grad})
	}
}
