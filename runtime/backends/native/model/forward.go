package model

import (
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// Loss runs the model over the batch and returns the loss: with cross entropy, the
// mean in nats a token.
func (p *Pass) Loss() (float64, error) {
	r := p.run()
	p.forward(r)
	loss, err := p.lossForward(r)
	p.fresh = err == nil && p.grad != nil
	return loss, err
}

// Logits runs the model over tokens of one sequence, padded to the length of the
// pass, and returns the scores for what follows position at. The slice is valid
// until the next call.
func (p *Pass) Logits(tokens []int32, at int) ([]float32, error) {
	input := tensor.Data[int32](p.tokens)
	clear(input)
	copy(input, tokens)
	r := p.run()
	p.forward(r)
	if r.err != nil {
		return nil, r.err
	}
	vocab := p.m.cfg.VocabSize
	return tensor.Data[float32](p.logits)[at*vocab : (at+1)*vocab], nil
}

func (p *Pass) forward(r *run) {
	p.fresh = false
	m := p.m
	r.leave("embedding")
	call(r, r.call.embFwd, ops.EmbeddingFwdArgs{Indices: p.tokens, Weight: m.embedding.Value, Output: p.layers[0].in})
	for i := range p.layers {
		next := p.out
		if i+1 < len(p.layers) {
			next = p.layers[i+1].in
		}
		p.layerForward(r, i, next)
	}
	r.leave("final norm")
	p.normForward(r, p.out, m.finalNorm, p.norm, p.rsigma, p.savedN)
	r.leave("output layer")
	p.linear(r, m.head, p.norm, p.logits)
}

func (p *Pass) layerForward(r *run, i int, next *tensor.Tensor) {
	w, a := &p.m.layers[i], &p.layers[i]
	r.layer(i, "attention")
	p.normForward(r, a.in, w.inputNorm, a.norm1, a.rsigma1, a.saved1)
	p.linear(r, w.qkv, a.norm1, a.qkv)
	call(r, r.call.ropeFwd, ops.FusedRopeArgs{Input: a.qkIn, Freqs: p.freqs, Output: a.qkOut, QKVFormat: ops.BSHD})
	call(r, r.call.attnFwd, ops.FusedAttnFwdArgs{
		Q: a.q, K: a.k, V: a.v, O: a.attnHeads, Stats: a.stats,
		QKVFormat: ops.BSHD, AttnMaskType: ops.CausalMask, Saved: a.savedA,
	})
	p.linear(r, w.out, a.attn, p.proj)
	call(r, r.call.add, ops.ResidualAddArgs{A: a.in, B: p.proj, Output: a.mid})
	r.layer(i, "mlp")
	p.normForward(r, a.mid, w.postNorm, a.norm2, a.rsigma2, a.saved2)
	p.linear(r, w.gateUp, a.norm2, a.gateUp)
	call(r, r.call.swiglu, ops.SwiGLUArgs{Input: a.gateUp, Output: a.act})
	p.linear(r, w.down, a.act, p.proj)
	call(r, r.call.add, ops.ResidualAddArgs{A: a.mid, B: p.proj, Output: next})
}
