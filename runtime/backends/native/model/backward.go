package model

import (
	"errors"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// Backward runs the gradient of scale·Σ loss over the batch of the last Loss. It
// writes the gradients of all weights, or adds to them with accumulate. Gradients
// take the place of activations that are of no more use, so each Backward needs a
// Loss of its own.
func (p *Pass) Backward(scale float32, accumulate bool) error {
	if !p.fresh {
		return errors.New("backward: the activations are used up or were never computed; run Loss first")
	}
	p.fresh = false
	m, g := p.m, p.grad
	r := p.run()
	r.accumulate = accumulate
	p.lossBackward(r, scale)
	r.leave("output layer")
	p.linearBackward(r, m.head, p.norm, p.logits, g.hidden)
	r.leave("final norm")
	p.normBackward(r, p.out, m.finalNorm, p.rsigma, g.hidden, g.res, p.savedN)
	for i := len(p.layers) - 1; i >= 0; i-- {
		p.layerBackward(r, i)
	}
	r.leave("embedding")
	call(r, r.call.embBwd, ops.EmbeddingBwdArgs{
		Grad: g.res, Indices: p.tokens, DWeight: m.embedding.Grad,
		Accumulate: accumulate || m.head == m.embedding,
	})
	return r.err
}

// layerBackward takes the gradient of the residual stream behind a layer in
// grad.res and leaves there the one in front of it.
func (p *Pass) layerBackward(r *run, i int) {
	w, a, g := &p.m.layers[i], &p.layers[i], p.grad
	r.layer(i, "mlp")
	p.linearBackward(r, w.down, a.act, g.res, g.act)
	call(r, r.call.dswiglu, ops.DSwiGLUArgs{Grad: g.act, FwdInput: a.gateUp, Output: a.gateUp})
	p.linearBackward(r, w.gateUp, a.norm2, a.gateUp, g.hidden)
	p.residualBackward(r, a.mid, w.postNorm, a.rsigma2, a.saved2)

	r.layer(i, "attention")
	p.linearBackward(r, w.out, a.attn, g.res, g.attn)
	call(r, r.call.attnBwd, ops.FusedAttnBwdArgs{
		Q: a.q, K: a.k, V: a.v, O: a.attnHeads, DO: g.attnHeads, Stats: a.stats, DQ: g.dq, DK: g.dk, DV: g.dv,
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalMask, Saved: a.savedA,
	})
	call(r, r.call.ropeBwd, ops.FusedRopeArgs{Input: g.qk, Freqs: p.freqs, Output: g.qk, QKVFormat: ops.BSHD})
	p.linearBackward(r, w.qkv, a.norm1, g.qkv, g.hidden)
	p.residualBackward(r, a.in, w.inputNorm, a.rsigma1, a.saved1)
}

// residualBackward adds the gradient that comes through a norm, whose output's
// gradient is in grad.hidden, to that of the residual stream.
func (p *Pass) residualBackward(r *run, x *tensor.Tensor, gamma *Param, rsigma *tensor.Tensor, saved *opregistry.Saved) {
	g := p.grad
	p.normBackward(r, x, gamma, rsigma, g.hidden, g.hidden, saved)
	call(r, r.call.addBwd, ops.ResidualAddArgs{A: g.res, B: g.hidden, Output: g.res})
}
