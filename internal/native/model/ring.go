package model

import (
	"errors"

	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/sequence"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opregistry"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/norm"
	"github.com/primus-fl/primus/tensor"
)

// ringAttention is the attention of the tokens of a rank to those of all ranks of their sequences,
// whose keys and values travel round the ranks while each computes with those that it has. The
// results of the steps are merged by their log-sum-exps:
//
//	lse = ln(exp(lse) + exp(lse of the step))
//	o   = o·exp(old lse − lse) + o of the step·exp(lse of the step − lse)
//
// In the first step a rank has its own keys. In others, all of its queries see the first chunk of
// the keys of a lower rank, and those of its second chunk see both chunks of a higher one, as far
// as documents and windows let them. In the backward pass, the gradients of keys and values travel
// with them, and come home in the end. Each step takes the result and the log-sum-exp of all steps,
// so that its gradients are parts of sums.
//
// T is batch·length, where length is the tokens of a sequence that a rank has. Rows of keys hold
// the values as well.
type ringAttention struct {
	plan          *contextPlan
	ranks         *world.World
	before        int // keys before its own that a query sees, -1 for all
	batch, length int
	groups        int
	views         attentionViews    // of the tokens of the rank, [T heads d]
	stats         *tensor.Tensor    // [T heads 1]
	keys          [2]*tensor.Tensor // [T 2·groups d]: those of this step and of the next one
	dKeys         [2]*tensor.Tensor // their gradients: those of this step, and on their way
	dStep         *tensor.Tensor    // [T 2·groups d]: what a step adds to them
	step, sum     *tensor.Tensor    // [length heads d]: the result of a step, and all so far in the second half of some rows
	stepStats     *tensor.Tensor    // [length heads 1]
	lse           *tensor.Tensor    // [1 heads length], likewise
	dQueries      *tensor.Tensor    // [T heads d]
	dQueriesStep  *tensor.Tensor    // [length heads d]
	saved         []*opregistry.Saved
	correctLSE    *opmanager.Bound[attentionops.THDSecondHalfLSECorrectionArgs]
	correctOut    *opmanager.Bound[attentionops.THDOutCorrectionArgs]
	add           *opmanager.Bound[norm.ResidualAddArgs]
}

// blocksAtMost is how many blocks a step has for a row.
const blocksAtMost = 2

// ringAttention makes the attention between the views of a layer.
func (b *Builder) ringAttention(views attentionViews, stats *tensor.Tensor) *ringAttention {
	t, d, groups, heads := b.tokens(), b.Config.HeadDim(), b.Config.Groups(), b.Config.NumAttentionHeads
	a := &ringAttention{
		plan: b.context, ranks: b.Part.Context, before: b.Config.KeysBeforeIn(b.depth), batch: b.Batch, length: b.Seq, groups: groups, views: views, stats: stats,
		dStep: b.spare(t, 2*groups, d), step: b.spare(b.Seq, heads, d), sum: b.spare(b.Seq, heads, d),
		stepStats: b.spareF32(b.Seq, heads, 1), lse: b.spareF32(1, heads, b.Seq), dQueries: b.spare(t, heads, d), dQueriesStep: b.spare(b.Seq, heads, d),
		correctLSE: opmanager.MustBind(b.Fwd, attentionops.THDSecondHalfLSECorrection), correctOut: opmanager.MustBind(b.Fwd, attentionops.THDOutCorrection),
		add: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
	for i := range a.keys {
		a.keys[i], a.dKeys[i] = b.spare(t, 2*groups, d), b.spare(t, 2*groups, d)
	}
	for range b.Batch * a.ranks.Ranks * blocksAtMost {
		a.saved = append(a.saved, saved())
	}
	return a
}

// spareF32 is spare for f32.
func (b *Builder) spareF32(shape ...int) *tensor.Tensor {
	if b.Spare == nil {
		return b.Keep.F32(shape...)
	}
	return b.Spare.F32(shape...)
}

// ringBlock is what the queries of a row see in a step.
type ringBlock struct {
	index              int // among those of the row in all steps
	queries, keys      Range
	own                bool           // the keys are those of the queries, which see those up to their own
	queryEnds, keyEnds *tensor.Tensor // i32 [documents+1]
	window             attentionops.WindowSize
	halves             []ringHalf // queries whose results are merged; nil with own
}

// ringHalf is queries of a block, at most half of the row, as the second half of as many tokens
// again.
type ringHalf struct {
	queries Range
	ends    *tensor.Tensor // i32: of one sequence
}

// ring returns the blocks of a row in a step, with so many keys before its own that a query sees,
// -1 for all.
func (p *contextPlan) ring(before, row, step int) []ringBlock {
	all, known := p.rings[before]
	if !known {
		for row := range p.batch {
			for step := range p.share.Ranks {
				all = append(all, p.ringBlocks(before, row, step))
			}
		}
		p.rings[before] = all
	}
	return all[row*p.share.Ranks+step]
}

func (p *contextPlan) ringBlocks(before, row, step int) []ringBlock {
	first := row * p.share.Tokens()
	at := func(r sequence.Range) Range { return Range{first + r.Lo, first + r.Hi} }
	var all []ringBlock
	for i, part := range p.share.Blocks((p.share.Rank+p.share.Ranks-step)%p.share.Ranks, p.segmentsOf(row), before) {
		b := ringBlock{index: (row*p.share.Ranks+step)*blocksAtMost + i, queries: at(part.Queries), keys: at(part.Keys), own: part.Ends != nil}
		if part.Before >= 0 {
			b.window = attentionops.Window(part.Before, -1)
		}
		if b.own {
			b.queryEnds, b.keyEnds = vector(part.Ends), vector(part.Ends)
			all = append(all, b)
			continue
		}
		b.queryEnds, b.keyEnds = vector([]int32{0, int32(part.Queries.Len())}), vector([]int32{0, int32(part.Keys.Len())})
		for lo := b.queries.Lo; lo < b.queries.Hi; lo += p.share.Tokens() / 2 {
			q := Range{lo, min(lo+p.share.Tokens()/2, b.queries.Hi)}
			b.halves = append(b.halves, ringHalf{q, vector([]int32{0, int32(2 * (q.Hi - q.Lo))})})
		}
		all = append(all, b)
	}
	return all
}

// mask says which keys of a block a query sees.
func (b *ringBlock) mask() attentionops.MaskType {
	if b.own {
		return attentionops.PaddingCausalMask
	}
	return attentionops.PaddingMask
}

func (b *ringBlock) options(of *attention) attentionops.AttnOptions {
	o := attentionops.AttnOptions{CuSeqlensQ: b.queryEnds, CuSeqlensKV: b.keyEnds, WindowSize: b.window, Softcap: of.softcap}
	if !b.own {
		o.BottomRightDiagonal = opregistry.Bool(true)
	}
	return o
}

// turn calls a function for each step with the keys that this rank has in it, while those of the
// next one are on their way.
func (a *ringAttention) turn(r *Run, do func(step int, keys *tensor.Tensor)) {
	if r.Err != nil {
		return
	}
	keys, values := a.split(a.keys[0])
	if err := errors.Join(keys.CopyFrom(a.views.k), values.CopyFrom(a.views.v)); err != nil {
		r.fail(err)
		return
	}
	for step := range a.ranks.Ranks {
		own := a.keys[step%2]
		wait := func() error { return nil }
		if step+1 < a.ranks.Ranks {
			wait = a.ranks.Shift("pass on keys and values", own, a.keys[(step+1)%2])
		}
		do(step, own)
		if err := wait(); r.Err == nil {
			r.fail(err)
		}
	}
}

// split returns the keys and the values of rows.
func (a *ringAttention) split(rows *tensor.Tensor) (keys, values *tensor.Tensor) {
	return memory.Must(rows.Slice(1, 0, a.groups)), memory.Must(rows.Slice(1, a.groups, 2*a.groups))
}

// of returns these rows of a tensor.
func (r Range) of(t *tensor.Tensor) *tensor.Tensor { return memory.Rows(t, r.Lo, r.Hi) }

func (a *ringAttention) forward(r *Run, of *attention) {
	a.turn(r, func(step int, all *tensor.Tensor) {
		for i := range a.batch {
			for _, b := range a.plan.ring(a.before, i, step) {
				keys, values := a.split(b.keys.of(all))
				o, stats := b.queries.of(a.views.o), b.queries.of(a.stats)
				if n := b.queries.Hi - b.queries.Lo; !b.own {
					o, stats = memory.Rows(a.step, 0, n), memory.Rows(a.stepStats, 0, n)
				}
				Call(r, of.fwd, attentionops.FusedAttnFwdArgs{
					Q: b.queries.of(a.views.q), K: keys, V: values, O: o, Stats: stats, AttnScale: of.scale,
					QKVFormat: attentionops.THD, AttnMaskType: b.mask(), AttnOptions: b.options(of), Saved: a.saved[b.index],
				})
				for _, h := range b.halves {
					a.merge(r, h, h.queries.Lo-b.queries.Lo)
				}
			}
		}
	})
}

// turned returns the log-sum-exps of queries as [1 heads queries].
func turned(stats *tensor.Tensor) *tensor.Tensor { return memory.Must(stats.Transpose(0, 2)) }

// merge adds the result of a step, from one of its queries on, for queries.
func (a *ringAttention) merge(r *Run, h ringHalf, from int) {
	n := h.queries.Hi - h.queries.Lo
	out, old := h.queries.of(a.views.o), turned(h.queries.of(a.stats))
	step, stats := memory.Rows(a.step, from, from+n), turned(memory.Rows(a.stepStats, from, from+n))
	sum, total := memory.Rows(a.sum, 0, 2*n), memory.Rows(a.sum, n, 2*n)
	lse, whole := memory.Must(a.lse.Slice(2, 0, 2*n)), memory.Must(a.lse.Slice(2, n, 2*n))
	if r.Err == nil {
		r.fail(errors.Join(zero(sum), zero(a.lse), whole.CopyFrom(old)))
	}
	Call(r, a.correctLSE, attentionops.THDSecondHalfLSECorrectionArgs{LSE: lse, LSEPerStep: stats, CuSeqlens: h.ends})
	Call(r, a.correctOut, attentionops.THDOutCorrectionArgs{Out: sum, OutPerStep: out, LSE: lse, LSEPerStep: old, CuSeqlens: h.ends, OnlySecondHalf: true})
	Call(r, a.correctOut, attentionops.THDOutCorrectionArgs{Out: sum, OutPerStep: step, LSE: lse, LSEPerStep: stats, CuSeqlens: h.ends, OnlySecondHalf: true})
	if r.Err == nil {
		r.fail(errors.Join(out.CopyFrom(total), old.CopyFrom(whole)))
	}
}

func (a *ringAttention) backward(r *Run, of *attention) {
	n := a.ranks.Ranks
	a.turn(r, func(step int, all *tensor.Tensor) {
		wait := func() error { return nil }
		if step > 0 {
			wait = a.ranks.Shift("pass on gradients of keys and values", a.dKeys[(step-1)%2], a.dKeys[step%2])
		}
		to := a.dKeys[step%2]
		for k := range blocksAtMost {
			a.each(step, k, func(b *ringBlock) { a.gradients(r, of, b, all, to) })
			if k == 0 { // what the blocks add to is on its way
				if err := wait(); r.Err == nil {
					r.fail(err)
				}
			}
			a.each(step, k, func(b *ringBlock) {
				if !b.own {
					Call(r, a.add, norm.ResidualAddArgs{A: b.keys.of(to), B: b.keys.of(a.dStep), Output: b.keys.of(to)})
				}
			})
		}
	})
	if r.Err != nil {
		return
	}
	home := a.dKeys[n%2]
	if err := a.ranks.Shift("return gradients of keys and values", a.dKeys[(n-1)%2], home)(); err != nil {
		r.fail(err)
		return
	}
	keys, values := a.split(home)
	r.fail(errors.Join(a.views.dk.CopyFrom(keys), a.views.dv.CopyFrom(values), a.views.dq.CopyFrom(a.dQueries)))
}

// each calls a function for the k-th block of each row that has one.
func (a *ringAttention) each(step, k int, do func(b *ringBlock)) {
	for i := range a.batch {
		if blocks := a.plan.ring(a.before, i, step); k < len(blocks) {
			do(&blocks[k])
		}
	}
}

// gradients adds those of the queries of a block. It writes those of the keys to dStep, or to own
// if they are those of the queries.
func (a *ringAttention) gradients(r *Run, of *attention, b *ringBlock, all, own *tensor.Tensor) {
	keys, values := a.split(b.keys.of(all))
	dq, into, dKeys := b.queries.of(a.dQueries), b.queries.of(a.dQueries), b.keys.of(own)
	if !b.own {
		into, dKeys = memory.Rows(a.dQueriesStep, 0, b.queries.Hi-b.queries.Lo), b.keys.of(a.dStep)
	}
	dK, dV := a.split(dKeys)
	Call(r, of.bwd, attentionops.FusedAttnBwdArgs{
		Q: b.queries.of(a.views.q), K: keys, V: values, O: b.queries.of(a.views.o), DO: b.queries.of(a.views.dO), Stats: b.queries.of(a.stats), DQ: into, DK: dK, DV: dV,
		AttnScale: of.scale, QKVFormat: attentionops.THD, AttnMaskType: b.mask(), AttnOptions: b.options(of), Saved: a.saved[b.index],
	})
	if !b.own {
		Call(r, a.add, norm.ResidualAddArgs{A: dq, B: into, Output: dq})
	}
}
