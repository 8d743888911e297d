package model

import (
	"fmt"
	"math"

	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// calls are the ops of a layer, or of what lies outside of layers, bound to the
// views of a manager for that place.
type calls struct {
	gemm, gemmBwd    *opmanager.Bound[ops.GenericGemmArgs]
	normFwd          *opmanager.Bound[ops.RMSNormFwdArgs]
	normBwd          *opmanager.Bound[ops.RMSNormBwdArgs]
	ropeFwd, ropeBwd *opmanager.Bound[ops.FusedRopeArgs]
	attnFwd          *opmanager.Bound[ops.FusedAttnFwdArgs]
	attnBwd          *opmanager.Bound[ops.FusedAttnBwdArgs]
	swiglu           *opmanager.Bound[ops.SwiGLUArgs]
	dswiglu          *opmanager.Bound[ops.DSwiGLUArgs]
	add, addBwd      *opmanager.Bound[ops.ResidualAddArgs]
	embFwd           *opmanager.Bound[ops.EmbeddingFwdArgs]
	embBwd           *opmanager.Bound[ops.EmbeddingBwdArgs]
	lossFwd          *opmanager.Bound[ops.CrossEntropyFwdArgs]
	lossBwd          *opmanager.Bound[ops.CrossEntropyBwdArgs]
}

func bindCalls(m *opmanager.Manager) calls {
	fwd, bwd := m.Phase(opmanager.PhaseForward), m.Phase(opmanager.PhaseBackward)
	return calls{
		gemm: opmanager.MustBind(fwd, ops.GenericGemm), gemmBwd: opmanager.MustBind(bwd, ops.GenericGemm),
		normFwd: opmanager.MustBind(fwd, ops.RMSNormFwd), normBwd: opmanager.MustBind(bwd, ops.RMSNormBwd),
		ropeFwd: opmanager.MustBind(fwd, ops.FusedRopeForward), ropeBwd: opmanager.MustBind(bwd, ops.FusedRopeBackward),
		attnFwd: opmanager.MustBind(fwd, ops.FusedAttnFwd), attnBwd: opmanager.MustBind(bwd, ops.FusedAttnBwd),
		swiglu: opmanager.MustBind(fwd, ops.SwiGLU), dswiglu: opmanager.MustBind(bwd, ops.DSwiGLU),
		add: opmanager.MustBind(fwd, ops.ResidualAdd), addBwd: opmanager.MustBind(bwd, ops.ResidualAdd),
		embFwd: opmanager.MustBind(fwd, ops.EmbeddingFwd), embBwd: opmanager.MustBind(bwd, ops.EmbeddingBwd),
		lossFwd: opmanager.MustBind(fwd, ops.CrossEntropyFwd), lossBwd: opmanager.MustBind(bwd, ops.CrossEntropyBwd),
	}
}

// activations are what the forward pass of one layer leaves for its backward
// pass. T is batch·seq; the qkv views are [batch, seq, heads, head_dim].
type activations struct {
	in, norm1, rsigma1     *tensor.Tensor // [T h], [T h], [T]
	qkv, qk                *tensor.Tensor // [T rows], rotated query and key heads [T (heads+groups)·d]
	qkIn, qkOut            *tensor.Tensor // views: query and key heads of qkv, and of qk
	q, k, v                *tensor.Tensor // views: of qk, qk and qkv
	attn, attnHeads        *tensor.Tensor // [T heads·d] and its view by heads
	stats                  *tensor.Tensor // [batch heads seq 1]
	mid, norm2, rsigma2    *tensor.Tensor
	gateUp, act            *tensor.Tensor // [T 2f], [T f]
	saved1, saved2, savedA *opregistry.Saved
	call                   calls
}

// gradients are the buffers of the backward pass, shared by all layers. Those of
// logits and of gate and up projections are written over the activations.
type gradients struct {
	res             *tensor.Tensor // of the residual stream
	hidden          *tensor.Tensor // of a norm's output, then of its input
	act             *tensor.Tensor
	qkv             *tensor.Tensor
	qk, dq, dk, dv  *tensor.Tensor // views of qkv
	attn, attnHeads *tensor.Tensor // as in activations
	gamma, losses   *tensor.Tensor
}

// Pass runs a model forward and backward over batches of one size.
type Pass struct {
	m          *Model
	outside    calls
	memory     *arena
	batch, seq int
	check      bool // look for NaN and Inf behind each op
	fresh      bool // the activations are those of the last Loss
	loss       Loss
	lossArgs   LossBatch
	current    run

	freqs           *tensor.Tensor
	tokens, targets *tensor.Tensor // i32 [T]
	layers          []activations
	out             *tensor.Tensor // of the last layer [T h]
	proj            *tensor.Tensor // scratch [T h]
	norm, rsigma    *tensor.Tensor
	logits          *tensor.Tensor // [T vocab]
	losses, lse     *tensor.Tensor // [T]
	savedN, savedL  *opregistry.Saved
	grad            *gradients // nil for a forward-only pass
}

// NewPass allocates the activations for batches of batch sequences of seq tokens,
// and with train the buffers of the backward pass. Close returns the memory.
func (m *Model) NewPass(mgr *opmanager.Manager, batch, seq int, train bool) (*Pass, error) {
	if batch < 1 || seq < 1 || seq > m.cfg.SeqLength {
		return nil, fmt.Errorf("pass of %d sequences of %d tokens: want at least one sequence of 1 to %d tokens (seq_length)", batch, seq, m.cfg.SeqLength)
	}
	p := &Pass{m: m, outside: bindCalls(mgr), memory: &arena{backend: m.memory.backend}, batch: batch, seq: seq, loss: CrossEntropy()}
	p.allocate(train)
	if p.memory.err != nil {
		return nil, fmt.Errorf("allocate activations for %d sequences of %d tokens: %w", batch, seq, p.memory.fail())
	}
	for i := range p.layers {
		p.layers[i].call = bindCalls(mgr.Layer(i))
	}
	p.fillFreqs()
	p.makeViews()
	return p, nil
}

func (p *Pass) allocate(train bool) {
	c, a := p.m.cfg, p.memory
	t, h, f, d := p.batch*p.seq, c.HiddenSize, c.FFNHiddenSize, c.HeadDim()
	f32 := func(shape ...int) *tensor.Tensor { return a.new(tensor.F32, shape...) }
	p.freqs = f32(p.seq, 1, 1, d)
	p.tokens, p.targets = a.new(tensor.I32, t), a.new(tensor.I32, t)
	for i := range c.NumLayers {
		if i > 0 && !train {
			// Nothing is kept for a backward pass: layers share memory, and their
			// inputs take turns.
			shared := p.layers[0]
			if i == 1 {
				shared.in = f32(t, h)
			} else {
				shared.in = p.layers[i-2].in
			}
			p.layers = append(p.layers, shared)
			continue
		}
		p.layers = append(p.layers, activations{
			in: f32(t, h), norm1: f32(t, h), rsigma1: f32(t),
			qkv: f32(t, c.qkvRows()), qk: f32(t, (c.NumAttentionHeads+c.Groups())*d),
			attn: f32(t, c.NumAttentionHeads*d), stats: f32(p.batch, c.NumAttentionHeads, p.seq, 1),
			mid: f32(t, h), norm2: f32(t, h), rsigma2: f32(t),
			gateUp: f32(t, 2*f), act: f32(t, f),
			saved1: new(opregistry.Saved), saved2: new(opregistry.Saved), savedA: new(opregistry.Saved),
		})
	}
	p.out, p.proj = f32(t, h), f32(t, h)
	p.norm, p.rsigma, p.savedN = f32(t, h), f32(t), new(opregistry.Saved)
	p.logits, p.losses, p.lse, p.savedL = f32(t, c.VocabSize), f32(t), f32(t), new(opregistry.Saved)
	if train {
		p.grad = &gradients{
			res: f32(t, h), hidden: f32(t, h), act: f32(t, f), qkv: f32(t, c.qkvRows()),
			attn: f32(t, c.NumAttentionHeads*d), gamma: f32(h), losses: f32(t),
		}
	}
	p.lossArgs = LossBatch{Logits: p.logits, Targets: p.targets, Losses: p.losses, LSE: p.lse, pass: p}
	if train {
		p.lossArgs.DLosses, p.lossArgs.DLogits = p.grad.losses, p.logits
	}
}

// fillFreqs writes the angles of rotary positions: position · base^(−2i/d), for
// each half of the head alike.
func (p *Pass) fillFreqs() {
	d := p.m.cfg.HeadDim()
	data := tensor.Data[float32](p.freqs)
	for pos := range p.seq {
		for i := range d / 2 {
			angle := float32(float64(pos) * math.Pow(p.m.cfg.RotaryBase, -2*float64(i)/float64(d)))
			data[pos*d+i], data[pos*d+d/2+i] = angle, angle
		}
	}
}

func (p *Pass) makeViews() {
	c := p.m.cfg
	heads, groups := c.NumAttentionHeads, c.Groups()
	split := func(t *tensor.Tensor, total, lo, hi int) *tensor.Tensor {
		return must(reshape(t, p.batch, p.seq, total, c.HeadDim()).Slice(2, lo, hi))
	}
	for i := range p.layers {
		l := &p.layers[i]
		l.qkIn, l.qkOut = split(l.qkv, heads+2*groups, 0, heads+groups), split(l.qk, heads+groups, 0, heads+groups)
		l.q, l.k = split(l.qk, heads+groups, 0, heads), split(l.qk, heads+groups, heads, heads+groups)
		l.v = split(l.qkv, heads+2*groups, heads+groups, heads+2*groups)
		l.attnHeads = split(l.attn, heads, 0, heads)
	}
	if g := p.grad; g != nil {
		all := heads + 2*groups
		g.qk = split(g.qkv, all, 0, heads+groups)
		g.dq, g.dk, g.dv = split(g.qkv, all, 0, heads), split(g.qkv, all, heads, heads+groups), split(g.qkv, all, heads+groups, all)
		g.attnHeads = split(g.attn, heads, 0, heads)
	}
}

// Close returns the memory of the pass.
func (p *Pass) Close() error { return p.memory.close() }

// SetBatch takes [batch, seq+1] tokens: of each row the first seq are the input
// and the last seq the targets.
func (p *Pass) SetBatch(rows []int32) error {
	if len(rows) != p.batch*(p.seq+1) {
		return fmt.Errorf("batch of %d tokens: want %d sequences of %d", len(rows), p.batch, p.seq+1)
	}
	tokens, targets := tensor.Data[int32](p.tokens), tensor.Data[int32](p.targets)
	for b := range p.batch {
		row := rows[b*(p.seq+1):]
		copy(tokens[b*p.seq:(b+1)*p.seq], row[:p.seq])
		copy(targets[b*p.seq:(b+1)*p.seq], row[1:p.seq+1])
	}
	return nil
}

// CheckFinite makes the pass look for NaN and Inf behind each op, to name the
// first op at fault. It is slow.
func (p *Pass) CheckFinite(on bool) { p.check = on }
