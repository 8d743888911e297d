package block

import (
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/runtime/backends/native/architecture"
	"github.com/primus-fl/primus/runtime/backends/native/memory"
	"github.com/primus-fl/primus/runtime/backends/native/param"
	"github.com/primus-fl/primus/runtime/backends/native/recompute"
	"github.com/primus-fl/primus/tensor"
)

// attention is causal self-attention between its two projections.
type attention struct {
	qkv, out   Linear
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

func (b *Builder) attention(w param.LayerWeights, freqs *tensor.Tensor) *attention {
	c, t, d := b.Config, b.tokens(), b.Config.HeadDim()
	nq, nk := c.NumAttentionHeads, c.NumAttentionHeads+c.Groups()
	all := nk + c.Groups()
	a := &attention{
		qkv: b.Linear(w.QKV), out: b.Linear(w.Out), projected: b.Act(t, c.QKVRows()),
		dropout: float32(c.AttentionDropout), dProjected: b.scratch(t, c.QKVRows()), dMixed: b.scratch(t, nq*d), saved: saved(),
		fwd: opmanager.MustBind(b.Fwd, attentionops.FusedAttnFwd), bwd: opmanager.MustBind(b.Bwd, attentionops.FusedAttnBwd),
	}
	defer b.during(recompute.Attention)()
	a.mixed, a.stats = b.Act(t, nq*d), b.Keep.F32(b.Batch, nq, b.Seq, 1)
	if a.dropout > 0 {
		a.offset, a.packedAt = b.random(b.Batch*nq*b.Seq*b.Seq), b.randomPacked(nq)
	}
	if left := c.KeysBefore(); left >= 0 {
		a.window = attentionops.Window(left, 0)
	}
	normed, rotated := a.projected, a.projected
	if freqs != nil || c.QKNorm {
		rotated = b.Act(t, nk*d)
	}
	if c.QKNorm {
		normed = rotated
		a.norms = &headNorms{
			q: b.norm(w.QNorm, t*nq, b.Part.Tensor), inQ: memory.PackedHeads(a.projected, d, 0, nq), outQ: memory.PackedHeads(normed, d, 0, nq),
			k: b.norm(w.KNorm, t*c.Groups(), b.Part.Tensor), inK: memory.PackedHeads(a.projected, d, nq, nk), outK: memory.PackedHeads(normed, d, nq, nk),
		}
	}
	if freqs != nil {
		a.rotary = &rotary{freqs: freqs, cache: b.Cache, fwd: opmanager.MustBind(b.Fwd, rope.FusedRopeForward), bwd: opmanager.MustBind(b.Bwd, rope.FusedRopeBackward)}
	}
	views := func(view func(t *tensor.Tensor, lo, hi int) *tensor.Tensor) (attentionViews, rotaryViews) {
		return attentionViews{
			q: view(rotated, 0, nq), k: view(rotated, nq, nk), v: view(a.projected, nk, all), o: view(a.mixed, 0, nq), dO: view(a.dMixed, 0, nq),
			dq: view(a.dProjected, 0, nq), dk: view(a.dProjected, nq, nk), dv: view(a.dProjected, nk, all),
		}, rotaryViews{in: view(normed, 0, nk), out: view(rotated, 0, nk), grad: view(a.dProjected, 0, nk)}
	}
	var whole, packed rotaryViews
	a.rows, whole = views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.Heads(t, b.Batch, b.Seq, d, lo, hi) })
	a.packed, packed = views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.PackedHeads(t, d, lo, hi) })
	if a.rotary != nil {
		a.rotary.rows, a.rotary.packed = whole, packed
	}
	if b.Cache != nil {
		a.cached = b.cachedAttention()
	}
	return a
}

// attentionViews are the operands of attention by heads: views of projected, or q and k of what
// norms and rotary have made, of mixed, and of the gradients.
type attentionViews struct{ q, k, v, o, dq, dk, dv, dO *tensor.Tensor }

func (a *attention) Forward(r *Run, x, y *tensor.Tensor) {
	a.qkv.Forward(r, x, a.projected)
	a.core(r)
	a.out.Forward(r, a.mixed, y)
}

// core is what happens between the projections.
func (a *attention) core(r *Run) {
	a.norms.Forward(r)
	a.rotary.Forward(r)
	v, format, mask := a.views(r)
	args := attentionops.FusedAttnFwdArgs{
		Q: v.q, K: v.k, V: v.v, O: v.o, Stats: a.stats, QKVFormat: format, AttnMaskType: mask, AttnOptions: a.options(r), Saved: a.saved,
	}
	if a.cached != nil {
		a.cached.append(r, &args)
	}
	Call(r, a.fwd, args)
}

func (a *attention) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	a.out.Backward(r, a.mixed, dy, a.dMixed)
	v, format, mask := a.views(r)
	Call(r, a.bwd, attentionops.FusedAttnBwdArgs{
		Q: v.q, K: v.k, V: v.v, O: v.o, DO: v.dO, Stats: a.stats, DQ: v.dq, DK: v.dk, DV: v.dv,
		QKVFormat: format, AttnMaskType: mask, AttnOptions: a.options(r), Saved: a.saved,
	})
	a.rotary.Backward(r)
	a.norms.Backward(r, a.packed.dq, a.packed.dk)
	a.qkv.Backward(r, x, a.dProjected, dx)
}

// views returns the operands of attention, which are packed if rows hold several sequences.
func (a *attention) views(r *Run) (attentionViews, attentionops.QKVFormat, attentionops.MaskType) {
	if r.Segments != nil || a.cached != nil {
		return a.packed, attentionops.THD, attentionops.PaddingCausalMask
	}
	return a.rows, attentionops.BSHD, attentionops.CausalMask
}

func (a *attention) options(r *Run) attentionops.AttnOptions {
	o := attentionops.AttnOptions{CuSeqlensQ: r.Segments, CuSeqlensKV: r.Segments, WindowSize: a.window}
	if a.dropout > 0 && r.Dropout.On {
		o.PDropout, o.RNGSeed, o.RNGOffset = a.dropout, r.Dropout.Key, a.offset
		if r.Segments != nil {
			o.RNGOffset = a.packedAt
		}
	}
	return o
}

// headNorms normalises each head of queries and keys. The views are [T heads d].
type headNorms struct {
	q, k       Norm
	inQ, inK   *tensor.Tensor
	outQ, outK *tensor.Tensor
}

func (n *headNorms) Forward(r *Run) {
	if n != nil {
		n.q.Forward(r, n.inQ, n.outQ)
		n.k.Forward(r, n.inK, n.outK)
	}
}

// Backward replaces the gradients of the heads after the norms with those before them.
func (n *headNorms) Backward(r *Run, dq, dk *tensor.Tensor) {
	if n != nil {
		n.q.Backward(r, n.inQ, dq, dq)
		n.k.Backward(r, n.inK, dk, dk)
	}
}

// rotary rotates the heads of queries and keys by their positions.
type rotary struct {
	freqs        *tensor.Tensor // [seq 1 1 d]
	rows, packed rotaryViews
	cache        *KVCache // whose sequences the rows continue; nil for whole sequences
	fwd, bwd     *opmanager.Bound[rope.FusedRopeArgs]
}

// rotaryViews are the operands of rotary positions by heads.
type rotaryViews struct {
	in, out *tensor.Tensor
	grad    *tensor.Tensor // of out, then of in
}

// views returns the operands, which are packed if positions begin anew within rows.
func (p *rotary) views(r *Run) (rotaryViews, attentionops.QKVFormat) {
	if r.Places != nil || p.cache != nil {
		return p.packed, attentionops.THD
	}
	return p.rows, attentionops.BSHD
}

func (p *rotary) Forward(r *Run) {
	if p == nil {
		return
	}
	v, format := p.views(r)
	args := rope.FusedRopeArgs{Input: v.in, Freqs: p.freqs, Output: v.out, QKVFormat: format, CuSeqlens: r.Places}
	if p.cache != nil {
		args.CuSeqlens, args.StartPositions = p.cache.RowEnds, p.cache.Starts
	}
	Call(r, p.fwd, args)
}

func (p *rotary) Backward(r *Run) {
	if p != nil {
		v, format := p.views(r)
		Call(r, p.bwd, rope.FusedRopeArgs{Input: v.grad, Freqs: p.freqs, Output: v.grad, QKVFormat: format, CuSeqlens: r.Places})
	}
}

// FillFreqs writes the angles of rotary positions: position · frequency, for each half of the head
// alike.
func FillFreqs(c architecture.Config, freqs *tensor.Tensor) {
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
