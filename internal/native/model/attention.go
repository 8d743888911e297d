package model

import (
	"github.com/primus-fl/primus/internal/native/architecture"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/rope"
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
	scale      opregistry.OptionalFloat
	softcap    float32 // of scores, 0 without
	dropout    float32
	dProjected *tensor.Tensor
	dMixed     *tensor.Tensor
	rows       []attentionCall  // of whole rows
	packed     []attentionCall  // of packed documents
	apart      []attentionCall  // of whole rows with dropout, one of each; nil where this rank has all heads
	cached     *cachedAttention // nil where keys and values are those of the pass
	context    sharedAttention  // nil where this rank has whole sequences
	fwd        *opmanager.Bound[attentionops.FusedAttnFwdArgs]
	bwd        *opmanager.Bound[attentionops.FusedAttnBwdArgs]
}

func (b *Builder) attention(w LayerWeights, angles angles) *attention {
	freqs := angles.of(b)
	c, t, d := b.Config, b.tokens(), b.Config.HeadDim()
	nq, nk := c.NumAttentionHeads, c.NumAttentionHeads+c.Groups()
	all := nk + c.Groups()
	a := &attention{
		qkv: b.Linear(w.QKV), out: b.Linear(w.Out), projected: b.Act(t, c.QKVRows()),
		dropout: float32(c.AttentionDropout), softcap: float32(c.AttnSoftcap), dProjected: b.scratch(t, c.QKVRows()), dMixed: b.scratch(t, nq*d),
		fwd: opmanager.MustBind(b.Fwd, attentionops.FusedAttnFwd), bwd: opmanager.MustBind(b.Bwd, attentionops.FusedAttnBwd),
	}
	if b.Apart {
		a.dProjected = b.Act(t, c.QKVRows())
	}
	b.postpone(&a.qkv, nil)
	b.postpone(&a.out, b.kept(t, c.HiddenSize))
	defer b.during(architecture.Attention)()
	a.mixed, a.stats = b.Act(t, nq*d), b.Keep.F32(b.Batch, nq, b.Seq, 1)
	if left := c.KeysBeforeIn(b.depth); left >= 0 {
		a.window = attentionops.Window(left, 0)
	}
	if scale, special := c.AttentionScale(); special {
		a.scale = opregistry.Float(float32(scale))
	}
	normed, rotated := a.projected, a.projected
	if freqs != nil || c.QKNorm {
		rotated = b.Act(t, nk*d)
	}
	if c.QKNorm {
		normed = rotated
		rowsQ, rowsK, part := t*nq, t*c.Groups(), func(x *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.PackedHeads(x, d, lo, hi) }
		if c.QKNormWhole {
			rowsQ, rowsK, part = t, t, func(x *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.Columns(x, lo*d, hi*d) }
		}
		a.norms = &headNorms{
			q: b.norm(w.QNorm, rowsQ, b.Part.Tensor), inQ: part(a.projected, 0, nq), outQ: part(normed, 0, nq), dQ: part(a.dProjected, 0, nq),
			k: b.norm(w.KNorm, rowsK, b.Part.Tensor), inK: part(a.projected, nq, nk), outK: part(normed, nq, nk), dK: part(a.dProjected, nq, nk),
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
	rows, wholeRows := views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.Heads(t, b.Batch, b.Seq, d, lo, hi) })
	packed, wholePacked := views(func(t *tensor.Tensor, lo, hi int) *tensor.Tensor { return memory.PackedHeads(t, d, lo, hi) })
	if a.rotary != nil {
		a.rotary.rows, a.rotary.packed = wholeRows, wholePacked
	}
	if b.context != nil {
		a.context = b.sharedAttention(packed, a.stats)
		a.packed = []attentionCall{{attentionViews: packed}}
		return a
	}
	b.attentionCalls(a, rows, packed)
	if b.Cache != nil {
		a.cached = b.cachedAttention()
	}
	return a
}

// attentionViews are the operands of attention by heads: views of projected, or q and k of what
// norms and rotary have made, of mixed, and of the gradients.
type attentionViews struct{ q, k, v, o, dq, dk, dv, dO *tensor.Tensor }

// sequence returns the operands of one sequence of the batch.
func (v attentionViews) sequence(i int) attentionViews {
	for _, t := range []**tensor.Tensor{&v.q, &v.k, &v.v, &v.o, &v.dq, &v.dk, &v.dv, &v.dO} {
		*t = memory.Rows(*t, i, i+1)
	}
	return v
}

// attentionCall is a call of attention over a batch or a part of it.
type attentionCall struct {
	attentionViews
	stats  *tensor.Tensor
	format attentionops.QKVFormat
	mask   attentionops.MaskType
	offset uint64 // of the random numbers of dropout
	saved  *opregistry.Saved
}

// attentionCalls makes the calls of an attention. Dropout counts its random numbers by sequence and
// head of all ranks: where other ranks have other heads, those of one sequence do not follow those
// of another, and each has a call of its own.
func (b *Builder) attentionCalls(a *attention, rows, packed attentionViews) {
	heads := b.Config.NumAttentionHeads
	first, all := 0, heads
	if t := b.Part.Tensor; t != nil {
		first, all = t.Rank*heads, t.Ranks*heads
	}
	one := attentionCall{attentionViews: rows, stats: a.stats, format: attentionops.BSHD, mask: attentionops.CausalMask, saved: saved()}
	if a.dropout > 0 {
		one.offset = b.random(b.Batch * all * b.Seq * b.Seq)
	}
	a.rows = []attentionCall{one}
	one.attentionViews, one.format, one.mask = packed, attentionops.THD, attentionops.PaddingCausalMask
	if a.dropout > 0 {
		one.offset = b.randomPacked(all)
	}
	a.packed = []attentionCall{one}
	if a.dropout == 0 || all == heads {
		return
	}
	for i := range b.Batch {
		one = a.rows[0]
		one.attentionViews, one.stats, one.saved = rows.sequence(i), memory.Rows(a.stats, i, i+1), saved()
		one.offset += uint64(i*all+first) * uint64(b.Seq) * uint64(b.Seq) / 4
		a.apart = append(a.apart, one)
	}
}

// calls returns the calls for a pass. Those of packed documents are for rows with several
// sequences.
func (a *attention) calls(r *Run) []attentionCall {
	switch {
	case r.Segments != nil || a.cached != nil:
		return a.packed
	case a.apart != nil && r.Dropout.On:
		return a.apart
	}
	return a.rows
}

func (a *attention) Forward(r *Run, x, y *tensor.Tensor) {
	a.qkv.Forward(r, x, a.projected)
	a.core(r)
	a.out.Forward(r, a.mixed, y)
}

// core is what happens between the projections.
func (a *attention) core(r *Run) {
	a.norms.Forward(r)
	a.rotary.Forward(r)
	if a.context != nil {
		a.context.forward(r, a)
		return
	}
	for _, c := range a.calls(r) {
		args := attentionops.FusedAttnFwdArgs{
			Q: c.q, K: c.k, V: c.v, O: c.o, Stats: c.stats, AttnScale: a.scale, QKVFormat: c.format, AttnMaskType: c.mask, AttnOptions: a.options(r, c.offset), Saved: c.saved,
		}
		if a.cached != nil {
			a.cached.append(r, &args)
		}
		Call(r, a.fwd, args)
	}
}

func (a *attention) Backward(r *Run, x, dy, dx *tensor.Tensor) {
	a.out.Backward(r, a.mixed, dy, a.dMixed)
	if a.context != nil {
		a.context.backward(r, a)
	} else {
		a.coreBackward(r)
	}
	a.rotary.Backward(r)
	a.norms.Backward(r)
	a.qkv.Backward(r, x, a.dProjected, dx)
}

// coreBackward is the gradient of core without rotary and norms.
func (a *attention) coreBackward(r *Run) {
	for _, c := range a.calls(r) {
		Call(r, a.bwd, attentionops.FusedAttnBwdArgs{
			Q: c.q, K: c.k, V: c.v, O: c.o, DO: c.dO, Stats: c.stats, DQ: c.dq, DK: c.dk, DV: c.dv,
			AttnScale: a.scale, QKVFormat: c.format, AttnMaskType: c.mask, AttnOptions: a.options(r, c.offset), Saved: c.saved,
		})
	}
}

func (a *attention) options(r *Run, offset uint64) attentionops.AttnOptions {
	o := attentionops.AttnOptions{CuSeqlensQ: r.Segments, CuSeqlensKV: r.Segments, WindowSize: a.window, Softcap: a.softcap}
	if a.dropout > 0 && r.Dropout.On {
		o.PDropout, o.RNGSeed, o.RNGOffset = a.dropout, r.Dropout.Key, offset
	}
	return o
}

// headNorms normalises each head of queries and keys, or all heads in one. The views are [T heads
// d], or [T heads·d].
type headNorms struct {
	q, k       Norm
	inQ, inK   *tensor.Tensor
	outQ, outK *tensor.Tensor
	dQ, dK     *tensor.Tensor
}

func (n *headNorms) Forward(r *Run) {
	if n != nil {
		n.q.Forward(r, n.inQ, n.outQ)
		n.k.Forward(r, n.inK, n.outK)
	}
}

// Backward replaces the gradients of the heads after the norms with those before them.
func (n *headNorms) Backward(r *Run) {
	if n != nil {
		n.q.Backward(r, n.inQ, n.dQ, n.dQ)
		n.k.Backward(r, n.inK, n.dK, n.dK)
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
	args := rope.FusedRopeArgs{Input: v.in, Freqs: p.freqs, Output: v.out, QKVFormat: format, CuSeqlens: r.Places, StartPositions: r.Starts}
	if p.cache != nil {
		args.CuSeqlens, args.StartPositions = p.cache.RowEnds, p.cache.Starts
	}
	Call(r, p.fwd, args)
}

func (p *rotary) Backward(r *Run) {
	if p != nil {
		v, format := p.views(r)
		Call(r, p.bwd, rope.FusedRopeArgs{Input: v.grad, Freqs: p.freqs, Output: v.grad, QKVFormat: format, CuSeqlens: r.Places, StartPositions: r.Starts})
	}
}

// angles are those of rotary positions [seq 1 1 d]; nil without.
type angles struct{ all, local *tensor.Tensor } // local is of layers with the window, nil where they have the others

// newAngles allocates angles of so many positions.
func newAngles(c architecture.Config, positions int, f32 func(shape ...int) *tensor.Tensor) (a angles) {
	if c.Rotary() {
		a.all = f32(positions, 1, 1, c.HeadDim())
	}
	if c.LocalBase != 0 {
		a.local = f32(positions, 1, 1, c.HeadDim())
	}
	return a
}

// of returns the angles of the layer that is made.
func (a angles) of(b *Builder) *tensor.Tensor {
	if a.local != nil && b.Config.KeysBeforeIn(b.depth) >= 0 {
		return a.local
	}
	return a.all
}

// fill writes the angles.
func (a angles) fill(c architecture.Config) error {
	if a.all == nil {
		return nil
	}
	err := FillFreqs(c, a.all)
	if err == nil && a.local != nil {
		err = FillFreqs(c.Local(), a.local)
	}
	return err
}

// FillFreqs writes the angles of rotary positions: position · frequency, for each half of the head
// alike. The number of positions is the length of sequences.
func FillFreqs(c architecture.Config, freqs *tensor.Tensor) error {
	seq, d := freqs.Shape()[0], freqs.Shape().Cols()
	return tensor.Fill(freqs, func(data []float32) {
		for i := range d / 2 {
			frequency := c.Frequency(i, seq)
			for pos := range seq {
				angle := float32(float64(pos) * frequency)
				data[pos*d+i], data[pos*d+d/2+i] = angle, angle
			}
		}
	})
}
