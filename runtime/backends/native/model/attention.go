package model

import (
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

// attention is causal self-attention between its two projections.
type attention struct {
	qkv, out   linear
	norms      *headNorms // nil without
	rotary     *rotary    // nil without
	projected  *tensor.Tensor
	mixed      *tensor.Tensor // [T heads·d]
	stats      *tensor.Tensor // [batch heads seq 1], or as many elements for packed documents
	window     attentionops.WindowSize
	dropout    float32
	offset     uint64
	packedAt   uint64 // offset for packed documents
	dProjected *tensor.Tensor
	dMixed     *tensor.Tensor
	rows       attentionViews // [batch seq heads d]
	packed     attentionViews // [T heads d]
	saved      *opregistry.Saved
	cached     *cachedAttention // nil where keys and values are those of the pass
	fwd        *opmanager.Bound[attentionops.FusedAttnFwdArgs]
	bwd        *opmanager.Bound[attentionops.FusedAttnBwdArgs]
}

func (b *builder) attention(w layerWeights, freqs *tensor.Tensor) *attention {
	c, t, d := b.cfg, b.tokens(), b.cfg.HeadDim()
	nq, nk := c.NumAttentionHeads, c.NumAttentionHeads+c.Groups()
	all := nk + c.Groups()
	a := &attention{
		qkv: b.linear(w.qkv), out: b.linear(w.out), projected: b.act(t, c.qkvRows()),
		dropout: float32(c.AttentionDropout), dProjected: b.scratch(t, c.qkvRows()), dMixed: b.scratch(t, nq*d), saved: saved(),
		fwd: opmanager.MustBind(b.fwd, attentionops.FusedAttnFwd), bwd: opmanager.MustBind(b.bwd, attentionops.FusedAttnBwd),
	}
	defer b.during(recompute.Attention)()
	a.mixed, a.stats = b.act(t, nq*d), b.keep.f32(b.batch, nq, b.seq, 1)
	if a.dropout > 0 {
		a.offset, a.packedAt = b.random(b.batch*nq*b.seq*b.seq), b.randomPacked(nq)
	}
	if left := c.window(); left >= 0 {
		a.window = attentionops.Window(left, 0)
	}
	normed, rotated := a.projected, a.projected
	if freqs != nil || c.QKNorm {
		rotated = b.act(t, nk*d)
	}
	if c.QKNorm {
		normed = rotated
		a.norms = &headNorms{
			q: b.norm(w.qNorm, t*nq), inQ: packedHeads(a.projected, d, 0, nq), outQ: packedHeads(normed, d, 0, nq),
			k: b.norm(w.kNorm, t*c.Groups()), inK: packedHeads(a.projected, d, nq, nk), outK: packedHeads(normed, d, nq, nk),
		}
	}
	if freqs != nil {
		a.rotary = &rotary{freqs: freqs, cache: b.cache, fwd: opmanager.MustBind(b.fwd, rope.FusedRopeForward), bwd: opmanager.MustBind(b.bwd, rope.FusedRopeBackward)}
	}
	views := func(view func(t *tensor.Tensor, lo, hi int) *tensor.Tensor) (attentionViews, rotaryViews) {
		return attentionViews{
			q: view(rotated, 0, nq), k: view(rotated, nq, nk), v: view(a.projected, nk, all), o: view(a.mixed, 0, nq), dO: view(a.dMixed, 0, nq),
			dq: view(a.dProjected, 0, nq), dk: view(a.dProjected, nq, nk), dv: view(a.dProjected, nk, all),
		}, rotaryViews{in: view(normed, 0, nk), out: view(rotated, 0, nk), grad: view(a.dProjected, 0, nk)}
	}
	var whole, packed rotaryViews
	a.rows, whole = views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return heads(t, b.batch, b.seq, d, lo, hi) })
	a.packed, packed = views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return packedHeads(t, d, lo, hi) })
	if a.rotary != nil {
		a.rotary.rows, a.rotary.packed = whole, packed
	}
	if b.cache != nil {
		a.cached = b.cachedAttention()
	}
	return a
}

// attentionViews are the operands of attention by heads: views of projected, or q and k of what
// norms and rotary have made, of mixed, and of the gradients.
type attentionViews struct{ q, k, v, o, dq, dk, dv, dO *tensor.Tensor }

func (a *attention) forward(r *run, x, y *tensor.Tensor) {
	a.qkv.forward(r, x, a.projected)
	a.core(r)
	a.out.forward(r, a.mixed, y)
}

// core is what happens between the projections.
func (a *attention) core(r *run) {
	a.norms.forward(r)
	a.rotary.forward(r)
	v, format, mask := a.views(r)
	args := attentionops.FusedAttnFwdArgs{
		Q: v.q, K: v.k, V: v.v, O: v.o, Stats: a.stats, QKVFormat: format, AttnMaskType: mask, AttnOptions: a.options(r), Saved: a.saved,
	}
	if a.cached != nil {
		a.cached.append(r, &args)
	}
	call(r, a.fwd, args)
}

func (a *attention) backward(r *run, x, dy, dx *tensor.Tensor) {
	a.out.backward(r, a.mixed, dy, a.dMixed)
	v, format, mask := a.views(r)
	call(r, a.bwd, attentionops.FusedAttnBwdArgs{
		Q: v.q, K: v.k, V: v.v, O: v.o, DO: v.dO, Stats: a.stats, DQ: v.dq, DK: v.dk, DV: v.dv,
		QKVFormat: format, AttnMaskType: mask, AttnOptions: a.options(r), Saved: a.saved,
	})
	a.rotary.backward(r)
	a.norms.backward(r, a.packed.dq, a.packed.dk)
	a.qkv.backward(r, x, a.dProjected, dx)
}

// views returns the operands of attention, which are packed if rows hold several sequences.
func (a *attention) views(r *run) (attentionViews, attentionops.QKVFormat, attentionops.MaskType) {
	if r.segments != nil || a.cached != nil {
		return a.packed, attentionops.THD, attentionops.PaddingCausalMask
	}
	return a.rows, attentionops.BSHD, attentionops.CausalMask
}

func (a *attention) options(r *run) attentionops.AttnOptions {
	o := attentionops.AttnOptions{CuSeqlensQ: r.segments, CuSeqlensKV: r.segments, WindowSize: a.window}
	if a.dropout > 0 && r.dropout.on {
		o.PDropout, o.RNGSeed, o.RNGOffset = a.dropout, r.dropout.key, a.offset
		if r.segments != nil {
			o.RNGOffset = a.packedAt
		}
	}
	return o
}

// headNorms normalises each head of queries and keys. The views are [T heads d].
type headNorms struct {
	q, k       norm
	inQ, inK   *tensor.Tensor
	outQ, outK *tensor.Tensor
}

func (n *headNorms) forward(r *run) {
	if n != nil {
		n.q.forward(r, n.inQ, n.outQ)
		n.k.forward(r, n.inK, n.outK)
	}
}

// backward replaces the gradients of the heads after the norms with those before them.
func (n *headNorms) backward(r *run, dq, dk *tensor.Tensor) {
	if n != nil {
		n.q.backward(r, n.inQ, dq, dq)
		n.k.backward(r, n.inK, dk, dk)
	}
}

// rotary rotates the heads of queries and keys by their positions.
type rotary struct {
	freqs        *tensor.Tensor // [seq 1 1 d]
	rows, packed rotaryViews
	cache        *kvCache // whose sequences the rows continue; nil for whole sequences
	fwd, bwd     *opmanager.Bound[rope.FusedRopeArgs]
}

// rotaryViews are the operands of rotary positions by heads.
type rotaryViews struct {
	in, out *tensor.Tensor
	grad    *tensor.Tensor // of out, then of in
}

// views returns the operands, which are packed if positions begin anew within rows.
func (p *rotary) views(r *run) (rotaryViews, attentionops.QKVFormat) {
	if r.places != nil || p.cache != nil {
		return p.packed, attentionops.THD
	}
	return p.rows, attentionops.BSHD
}

func (p *rotary) forward(r *run) {
	if p == nil {
		return
	}
	v, format := p.views(r)
	args := rope.FusedRopeArgs{Input: v.in, Freqs: p.freqs, Output: v.out, QKVFormat: format, CuSeqlens: r.places}
	if p.cache != nil {
		args.CuSeqlens, args.StartPositions = p.cache.rowEnds, p.cache.starts
	}
	call(r, p.fwd, args)
}

func (p *rotary) backward(r *run) {
	if p != nil {
		v, format := p.views(r)
		call(r, p.bwd, rope.FusedRopeArgs{Input: v.grad, Freqs: p.freqs, Output: v.grad, QKVFormat: format, CuSeqlens: r.places})
	}
}

// Frequency returns the angle in radians by which pair i of a head of d elements turns per
// position:
//
//	f = rotary_base^(−2i/d) / rotary_seq_len_interpolation_factor
//
// With use_rope_scaling, a frequency that turns t = original·f/2π times within the original context
// is divided by rope_scaling_factor if t is below the low factor, is kept if t is above the high
// factor, and is between the two in proportion else. Source: Llama 3.1, arXiv:2407.21783, and its
// published configuration.
func (c Config) Frequency(i int) float64 {
	s := c.RopeScaling.resolved()
	f := math.Pow(c.RotaryBase, -2*float64(i)/float64(c.HeadDim())) / s.Interpolation
	if !s.UseScaling {
		return f
	}
	turns := float64(s.OldContext) * f / (2 * math.Pi)
	kept := min(max((turns-s.LowFreq)/(s.HighFreq-s.LowFreq), 0), 1)
	return kept*f + (1-kept)*f/s.ScalingFactor
}

// fillFreqs writes the angles of rotary positions: position · frequency, for each half of the head
// alike.
func (c Config) fillFreqs(freqs *tensor.Tensor) {
	seq, d := freqs.Shape()[0], freqs.Shape().Cols()
	data := tensor.Data[float32](freqs)
	for i := range d / 2 {
		frequency := c.Frequency(i)
		for pos := range seq {
			angle := float32(float64(pos) * frequency)
			data[pos*d+i], data[pos*d+d/2+i] = angle, angle
		}
	}
}
