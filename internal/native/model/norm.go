package model

import (
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// StreamNorm makes a norm of the rows of the stream, nil without weights.
func (b *Builder) StreamNorm(w NormWeights) Norm {
	if w.Gain == nil {
		return nil
	}
	if b.Part.Sequence {
		return b.norm(w, b.rows(), b.Part.Tensor)
	}
	return b.norm(w, b.rows(), nil)
}

// norm makes the norm of a number of rows. The gradients of its weights are sums over the ranks
// that have other rows, if there are any.
func (b *Builder) norm(w NormWeights, rows int, ranks *world.World) Norm {
	eps, zero, rsigma := float32(b.Config.NormEpsilon), b.Config.ZeroCentered, b.Keep.F32(rows)
	if b.Config.HasLayerNorm() {
		return &layerNorm{
			gain: w.Gain, bias: w.Bias, gainGrad: b.gainGrad(w.Gain).over(ranks), biasGrad: b.vectorGrad(w.Bias).over(ranks),
			mu: b.Keep.F32(rows), rsigma: rsigma, eps: eps, zero: zero, saved: saved(),
			fwd: opmanager.MustBind(b.Fwd, norm.LayerNormFwd), bwd: opmanager.MustBind(b.Bwd, norm.LayerNormBwd),
		}
	}
	return &rmsNorm{
		gain: w.Gain, gainGrad: b.gainGrad(w.Gain).over(ranks), rsigma: rsigma, eps: eps, zero: zero, saved: saved(),
		fwd: opmanager.MustBind(b.Fwd, norm.RMSNormFwd), bwd: opmanager.MustBind(b.Bwd, norm.RMSNormBwd),
	}
}

// outputNorm is the norm of what a block adds to the stream.
type outputNorm struct {
	norm     Norm
	in, grad *tensor.Tensor // [R h]: the output of the block, and the gradient of it
}

// outputNorm makes the norm of the output of a block, nil without weights.
func (b *Builder) outputNorm(w NormWeights) *outputNorm {
	if w.Gain == nil {
		return nil
	}
	return &outputNorm{norm: b.StreamNorm(w), in: b.Rows(), grad: b.scratch(b.rows(), b.Config.HiddenSize)}
}

// Backward returns the gradient of the output of the block. It does not change dy.
func (n *outputNorm) Backward(r *Run, dy *tensor.Tensor) *tensor.Tensor {
	if n == nil {
		return dy
	}
	n.norm.Backward(r, n.in, dy, n.grad)
	return n.grad
}

type rmsNorm struct {
	gain     *Param
	gainGrad vectorGrad
	rsigma   *tensor.Tensor // [rows]
	eps      float32
	zero     bool // it multiplies by 1 + gain
	saved    *opregistry.Saved
	fwd      *opmanager.Bound[norm.RMSNormFwdArgs]
	bwd      *opmanager.Bound[norm.RMSNormBwdArgs]
}

func (n *rmsNorm) Forward(r *Run, x, y *tensor.Tensor) {
	Call(r, n.fwd, norm.RMSNormFwdArgs{Input: x, Weight: n.gain.Value, Output: y, RSigma: n.rsigma, Eps: n.eps, ZeroCenteredGamma: n.zero, Saved: n.saved})
}

func (n *rmsNorm) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	Call(r, n.bwd, norm.RMSNormBwdArgs{
		DZ: dy, X: x, RSigma: n.rsigma, Gamma: n.gain.Value, DX: dx, DGamma: n.gainGrad.to(r), ZeroCenteredGamma: n.zero, Saved: n.saved,
	})
	n.gainGrad.done(r)
}

type layerNorm struct {
	gain, bias         *Param
	gainGrad, biasGrad vectorGrad
	mu, rsigma         *tensor.Tensor // [rows]
	eps                float32
	zero               bool // as in rmsNorm
	saved              *opregistry.Saved
	fwd                *opmanager.Bound[norm.LayerNormFwdArgs]
	bwd                *opmanager.Bound[norm.LayerNormBwdArgs]
}

func (n *layerNorm) Forward(r *Run, x, y *tensor.Tensor) {
	Call(r, n.fwd, norm.LayerNormFwdArgs{
		Input: x, Weight: n.gain.Value, Bias: n.bias.Value, Output: y, Mu: n.mu, RSigma: n.rsigma, Eps: n.eps, ZeroCenteredGamma: n.zero, Saved: n.saved,
	})
}

func (n *layerNorm) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	Call(r, n.bwd, norm.LayerNormBwdArgs{
		DZ: dy, X: x, Mu: n.mu, RSigma: n.rsigma, Gamma: n.gain.Value,
		DX: dx, DGamma: n.gainGrad.to(r), DBeta: n.biasGrad.to(r), ZeroCenteredGamma: n.zero, Saved: n.saved,
	})
	n.gainGrad.done(r)
	n.biasGrad.done(r)
}
