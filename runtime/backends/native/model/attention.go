package model

import (
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

// attention is causal self-attention between its two projections. The views are
// [batch, seq, heads, head_dim].
type attention struct {
	qkv, out   linear
	rotary     *rotary // nil without
	projected  *tensor.Tensor
	q, k, v    *tensor.Tensor // views: of projected, or q and k of what rotary has made
	mixed, o   *tensor.Tensor // [T heads·d] and its view by heads
	stats      *tensor.Tensor // [batch heads seq 1]
	dropout    float32
	offset     uint64
	dProjected *tensor.Tensor
	dq, dk, dv *tensor.Tensor // views of dProjected
	dMixed, dO *tensor.Tensor
	saved      *opregistry.Saved
	cached     *cachedAttention // nil where keys and values are those of the pass
	fwd        *opmanager.Bound[attentionops.FusedAttnFwdArgs]
	bwd        *opmanager.Bound[attentionops.FusedAttnBwdArgs]
}

func (b *builder) attention(w layerWeights, freqs *tensor.Tensor) *attention {
	c, t, d := b.cfg, b.tokens(), b.cfg.HeadDim()
	nq, nk := c.NumAttentionHeads, c.NumAttentionHeads+c.Groups()
	all := nk + c.Groups()
	view := func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return b.heads(t, d, lo, hi) }
	a := &attention{
		qkv: b.linear(w.qkv), out: b.linear(w.out), projected: b.keep.f32(t, c.qkvRows()),
		mixed: b.keep.f32(t, nq*d), stats: b.keep.f32(b.batch, nq, b.seq, 1),
		dropout: float32(c.AttentionDropout), dProjected: b.spare.f32(t, c.qkvRows()), dMixed: b.spare.f32(t, nq*d), saved: saved(),
		fwd: opmanager.MustBind(b.fwd, attentionops.FusedAttnFwd), bwd: opmanager.MustBind(b.bwd, attentionops.FusedAttnBwd),
	}
	if a.dropout > 0 {
		a.offset = b.random(b.batch * nq * b.seq * b.seq)
	}
	a.q, a.k, a.v = view(a.projected, 0, nq), view(a.projected, nq, nk), view(a.projected, nk, all)
	a.dq, a.dk, a.dv = view(a.dProjected, 0, nq), view(a.dProjected, nq, nk), view(a.dProjected, nk, all)
	a.o, a.dO = view(a.mixed, 0, nq), view(a.dMixed, 0, nq)
	if freqs != nil {
		rotated := b.keep.f32(t, nk*d)
		a.rotary = &rotary{
			freqs: freqs, in: view(a.projected, 0, nk), out: view(rotated, 0, nk), grad: view(a.dProjected, 0, nk),
			fwd: opmanager.MustBind(b.fwd, rope.FusedRopeForward), bwd: opmanager.MustBind(b.bwd, rope.FusedRopeBackward),
			cache: b.cache,
		}
		a.q, a.k = view(rotated, 0, nq), view(rotated, nq, nk)
	}
	if b.cache != nil {
		a.cached = b.cachedAttention()
	}
	return a
}

func (a *attention) forward(r *run, x, y *tensor.Tensor) {
	a.qkv.forward(r, x, a.projected)
	a.rotary.forward(r)
	args := attentionops.FusedAttnFwdArgs{
		Q: a.q, K: a.k, V: a.v, O: a.o, Stats: a.stats,
		QKVFormat: attentionops.BSHD, AttnMaskType: attentionops.CausalMask, AttnOptions: a.options(r), Saved: a.saved,
	}
	if a.cached != nil {
		a.cached.append(r, &args)
	}
	call(r, a.fwd, args)
	a.out.forward(r, a.mixed, y)
}

func (a *attention) backward(r *run, x, dy, dx *tensor.Tensor) {
	a.out.backward(r, a.mixed, dy, a.dMixed)
	call(r, a.bwd, attentionops.FusedAttnBwdArgs{
		Q: a.q, K: a.k, V: a.v, O: a.o, DO: a.dO, Stats: a.stats, DQ: a.dq, DK: a.dk, DV: a.dv,
		QKVFormat: attentionops.BSHD, AttnMaskType: attentionops.CausalMask, AttnOptions: a.options(r), Saved: a.saved,
	})
	a.rotary.backward(r)
	a.qkv.backward(r, x, a.dProjected, dx)
}

func (a *attention) options(r *run) attentionops.AttnOptions {
	if a.dropout == 0 || !r.dropout.on {
		return attentionops.AttnOptions{}
	}
	return attentionops.AttnOptions{PDropout: a.dropout, RNGSeed: r.dropout.key, RNGOffset: a.offset}
}

// rotary rotates the heads of queries and keys by their positions.
type rotary struct {
	freqs    *tensor.Tensor // [seq 1 1 d]
	in, out  *tensor.Tensor
	grad     *tensor.Tensor // of out, then of in
	cache    *kvCache       // whose sequences the rows continue; nil for whole sequences
	fwd, bwd *opmanager.Bound[rope.FusedRopeArgs]
}

func (p *rotary) forward(r *run) {
	if p == nil {
		return
	}
	args := rope.FusedRopeArgs{Input: p.in, Freqs: p.freqs, Output: p.out, QKVFormat: attentionops.BSHD}
	if p.cache != nil {
		args.QKVFormat, args.CuSeqlens, args.StartPositions = attentionops.THD, p.cache.rowEnds, p.cache.starts
	}
	call(r, p.fwd, args)
}

func (p *rotary) backward(r *run) {
	if p != nil {
		call(r, p.bwd, rope.FusedRopeArgs{Input: p.grad, Freqs: p.freqs, Output: p.grad, QKVFormat: attentionops.BSHD})
	}
}

// fillFreqs writes the angles of rotary positions: position · base^(−2i/d), for
// each half of the head alike.
func fillFreqs(freqs *tensor.Tensor, base float64) {
	seq, d := freqs.Shape()[0], freqs.Shape().Cols()
	data := tensor.Data[float32](freqs)
	for pos := range seq {
		for i := range d / 2 {
			angle := float32(float64(pos) * math.Pow(base, -2*float64(i)/float64(d)))
			data[pos*d+i], data[pos*d+d/2+i] = angle, angle
		}
	}
}
