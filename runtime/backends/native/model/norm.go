package model

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	normops "github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// norm makes the norm of a number of rows.
func (b *builder) norm(w normWeights, rows int) norm {
	eps, rsigma := float32(b.cfg.NormEpsilon), b.keep.f32(rows)
	if b.cfg.layerNorm() {
		return &layerNorm{
			gain: w.gain, bias: w.bias, gainGrad: b.gainGrad(w.gain), biasGrad: b.vectorGrad(w.bias),
			mu: b.keep.f32(rows), rsigma: rsigma, eps: eps, saved: saved(),
			fwd: opmanager.MustBind(b.fwd, normops.LayerNormFwd), bwd: opmanager.MustBind(b.bwd, normops.LayerNormBwd),
		}
	}
	return &rmsNorm{
		gain: w.gain, gainGrad: b.gainGrad(w.gain), rsigma: rsigma, eps: eps, saved: saved(),
		fwd: opmanager.MustBind(b.fwd, normops.RMSNormFwd), bwd: opmanager.MustBind(b.bwd, normops.RMSNormBwd),
	}
}

type rmsNorm struct {
	gain     *Param
	gainGrad vectorGrad
	rsigma   *tensor.Tensor // [rows]
	eps      float32
	saved    *opregistry.Saved
	fwd      *opmanager.Bound[normops.RMSNormFwdArgs]
	bwd      *opmanager.Bound[normops.RMSNormBwdArgs]
}

func (n *rmsNorm) forward(r *run, x, y *tensor.Tensor) {
	call(r, n.fwd, normops.RMSNormFwdArgs{Input: x, Weight: n.gain.Value, Output: y, RSigma: n.rsigma, Eps: n.eps, Saved: n.saved})
}

func (n *rmsNorm) backward(r *run, x, dy, dx *tensor.Tensor) {
	call(r, n.bwd, normops.RMSNormBwdArgs{
		DZ: dy, X: x, RSigma: n.rsigma, Gamma: n.gain.Value, DX: dx, DGamma: n.gainGrad.to(r), Saved: n.saved,
	})
	n.gainGrad.done(r)
}

type layerNorm struct {
	gain, bias         *Param
	gainGrad, biasGrad vectorGrad
	mu, rsigma         *tensor.Tensor // [rows]
	eps                float32
	saved              *opregistry.Saved
	fwd                *opmanager.Bound[normops.LayerNormFwdArgs]
	bwd                *opmanager.Bound[normops.LayerNormBwdArgs]
}

func (n *layerNorm) forward(r *run, x, y *tensor.Tensor) {
	call(r, n.fwd, normops.LayerNormFwdArgs{
		Input: x, Weight: n.gain.Value, Bias: n.bias.Value, Output: y, Mu: n.mu, RSigma: n.rsigma, Eps: n.eps, Saved: n.saved,
	})
}

func (n *layerNorm) backward(r *run, x, dy, dx *tensor.Tensor) {
	call(r, n.bwd, normops.LayerNormBwdArgs{
		DZ: dy, X: x, Mu: n.mu, RSigma: n.rsigma, Gamma: n.gain.Value,
		DX: dx, DGamma: n.gainGrad.to(r), DBeta: n.biasGrad.to(r), Saved: n.saved,
	})
	n.gainGrad.done(r)
	n.biasGrad.done(r)
}
