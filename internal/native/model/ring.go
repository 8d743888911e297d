package model

import (
	"errors"

	"github.com/primus-fl/primus/internal/native/memory"
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
// the keys of a lower rank, and those of its second chunk see both chunks of a higher one. In the
// backward pass, the gradients of keys and values travel with them, and come home in the end. Each
// step takes the result and the log-sum-exp of all steps, so that its gradients are parts of sums.
//
// T is batch·length, where length is the tokens of a sequence that a rank has. Rows of keys hold
// the values as well.
type ringAttention struct {
	ranks          *world.World
	batch, length  int
	groups, heads  int
	rows, packed   attentionViews    // of the tokens of the rank, by sequence and one after the other
	stats          *tensor.Tensor    // [batch heads length 1]
	keys           [2]*tensor.Tensor // [batch length 2·groups d]: those of this step and of the next one
	dKeys          [2]*tensor.Tensor // their gradients: those of this step, and on their way
	dStep          *tensor.Tensor    // [batch length 2·groups d]: what a step adds to them
	step, sum      *tensor.Tensor    // [length heads d]: the result of a step, and all so far
	stepLSE        *tensor.Tensor    // [heads·length]
	lse            *tensor.Tensor    // [1 heads 2·length], of which the second half counts
	dQueries       *tensor.Tensor    // [T heads d]
	dQueriesStep   *tensor.Tensor    // [length heads d]
	whole, doubled *tensor.Tensor    // i32: the ends of one sequence, of length and of twice that
	saved          []*opregistry.Saved
	correctLSE     *opmanager.Bound[attentionops.THDSecondHalfLSECorrectionArgs]
	correctOut     *opmanager.Bound[attentionops.THDOutCorrectionArgs]
	add            *opmanager.Bound[norm.ResidualAddArgs]
}

func (b *Builder) ringAttention(rows, packed attentionViews, stats *tensor.Tensor) *ringAttention {
	t, d, groups, heads := b.tokens(), b.Config.HeadDim(), b.Config.Groups(), b.Config.NumAttentionHeads
	a := &ringAttention{
		ranks: b.Part.Context, batch: b.Batch, length: b.Seq, groups: groups, heads: heads, rows: rows, packed: packed, stats: stats,
		dStep: b.spare(b.Batch, b.Seq, 2*groups, d), step: b.spare(b.Seq, heads, d), sum: b.spare(b.Seq, heads, d),
		stepLSE: b.spareF32(heads * b.Seq), lse: b.spareF32(1, heads, 2*b.Seq), dQueries: b.spare(t, heads, d), dQueriesStep: b.spare(b.Seq, heads, d),
		whole: vector([]int32{0, int32(b.Seq)}), doubled: vector([]int32{0, int32(2 * b.Seq)}),
		correctLSE: opmanager.MustBind(b.Fwd, attentionops.THDSecondHalfLSECorrection), correctOut: opmanager.MustBind(b.Fwd, attentionops.THDOutCorrection),
		add: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
	for i := range a.keys {
		a.keys[i], a.dKeys[i] = b.spare(b.Batch, b.Seq, 2*groups, d), b.spare(b.Batch, b.Seq, 2*groups, d)
	}
	for range b.Batch * a.ranks.Ranks {
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

// ringCall is what a sequence computes in a step.
type ringCall struct {
	queries int // the first one
	keys    int // how many from the first one on
	mask    attentionops.MaskType
}

// call returns what a sequence computes in a step, when this rank has the keys of another one.
func (a *ringAttention) call(step int) ringCall {
	switch {
	case step == 0:
		return ringCall{0, a.length, attentionops.CausalMask}
	case step <= a.ranks.Rank: // the keys are those of a lower rank
		return ringCall{0, a.length / 2, attentionops.NoMask}
	}
	return ringCall{a.length / 2, a.length, attentionops.NoMask}
}

// turn calls a function for each step with the keys that this rank has in it, while those of the
// next one are on their way.
func (a *ringAttention) turn(r *Run, do func(step int, keys *tensor.Tensor)) {
	if r.Err != nil {
		return
	}
	keys, values := a.split(a.keys[0])
	if err := errors.Join(keys.CopyFrom(a.rows.k), values.CopyFrom(a.rows.v)); err != nil {
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
	return memory.Must(rows.Slice(2, 0, a.groups)), memory.Must(rows.Slice(2, a.groups, 2*a.groups))
}

// of returns the keys of a sequence that a call sees.
func (c ringCall) of(rows *tensor.Tensor, sequence int) *tensor.Tensor {
	return memory.Must(memory.Rows(rows, sequence, sequence+1).Slice(1, 0, c.keys))
}

// one returns rows of tokens as a sequence of their own.
func one(rows *tensor.Tensor) *tensor.Tensor {
	s := rows.Shape()
	return memory.Must(rows.Reshape(1, s[0], s[1], s[2]))
}

// stepStats returns the memory of the log-sum-exps of n queries in a step.
func (a *ringAttention) stepStats(n int) *tensor.Tensor {
	return memory.Must(memory.Rows(a.stepLSE, 0, a.heads*n).Reshape(1, a.heads, n, 1))
}

func (a *ringAttention) forward(r *Run, of *attention) {
	a.turn(r, func(step int, all *tensor.Tensor) {
		c := a.call(step)
		for i := range a.batch {
			v := a.rows.sequence(i)
			keys, values := a.split(c.of(all, i))
			q := memory.Must(v.q.Slice(1, c.queries, a.length))
			o, stats := v.o, memory.Rows(a.stats, i, i+1)
			if n := a.length - c.queries; step > 0 {
				o, stats = one(memory.Rows(a.step, 0, n)), a.stepStats(n)
			}
			Call(r, of.fwd, attentionops.FusedAttnFwdArgs{
				Q: q, K: keys, V: values, O: o, Stats: stats, AttnScale: of.scale,
				QKVFormat: attentionops.BSHD, AttnMaskType: c.mask, Saved: a.saved[i*a.ranks.Ranks+step],
			})
			if step > 0 {
				a.merge(r, i, c.queries)
			}
		}
	})
}

// merge adds the result of a step for the queries of a sequence from the first one on.
func (a *ringAttention) merge(r *Run, sequence, first int) {
	n, half := a.length-first, first > 0
	stats := memory.Must(memory.Rows(a.stats, sequence, sequence+1).Reshape(1, a.heads, a.length))
	lse, step := memory.Must(a.lse.Slice(2, a.length, 2*a.length)), memory.Must(a.stepStats(n).Reshape(1, a.heads, n))
	out := memory.Rows(a.packed.o, sequence*a.length, (sequence+1)*a.length)
	counted, ends, old := a.lse, a.doubled, stats
	if half {
		counted, ends, old = lse, a.whole, memory.Must(stats.Slice(2, first, a.length))
	}
	if r.Err == nil {
		r.fail(errors.Join(lse.CopyFrom(stats), zero(a.sum)))
	}
	Call(r, a.correctLSE, attentionops.THDSecondHalfLSECorrectionArgs{LSE: counted, LSEPerStep: step, CuSeqlens: ends})
	add := func(o, lseOf *tensor.Tensor) {
		Call(r, a.correctOut, attentionops.THDOutCorrectionArgs{Out: a.sum, OutPerStep: o, LSE: lse, LSEPerStep: lseOf, CuSeqlens: a.whole, OnlySecondHalf: half})
	}
	add(memory.Rows(out, first, a.length), old)
	add(memory.Rows(a.step, 0, n), step)
	if r.Err == nil {
		r.fail(errors.Join(memory.Rows(out, first, a.length).CopyFrom(memory.Rows(a.sum, first, a.length)), stats.CopyFrom(lse)))
	}
}

func (a *ringAttention) backward(r *Run, of *attention) {
	n := a.ranks.Ranks
	a.turn(r, func(step int, all *tensor.Tensor) {
		into, wait := a.dStep, func() error { return nil }
		if step == 0 {
			into = a.dKeys[0]
		} else {
			wait = a.ranks.Shift("pass on gradients of keys and values", a.dKeys[(step-1)%2], a.dKeys[step%2])
		}
		c := a.call(step)
		for i := range a.batch {
			a.gradients(r, of, c, i, step, all, into)
		}
		if err := wait(); r.Err == nil {
			r.fail(err)
		}
		for i := range a.batch {
			if step > 0 {
				to := c.of(a.dKeys[step%2], i)
				Call(r, a.add, norm.ResidualAddArgs{A: to, B: c.of(into, i), Output: to})
			}
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
	r.fail(errors.Join(a.rows.dk.CopyFrom(keys), a.rows.dv.CopyFrom(values), a.packed.dq.CopyFrom(a.dQueries)))
}

// gradients adds those of the queries of a sequence in a step, and writes those of the keys.
func (a *ringAttention) gradients(r *Run, of *attention, c ringCall, sequence, step int, all, into *tensor.Tensor) {
	v, n := a.rows.sequence(sequence), a.length-c.queries
	own := func(t *tensor.Tensor) *tensor.Tensor { return memory.Must(t.Slice(1, c.queries, a.length)) }
	keys, values := a.split(c.of(all, sequence))
	dKeys, dValues := a.split(c.of(into, sequence))
	stats, dq := memory.Rows(a.stats, sequence, sequence+1), memory.Rows(a.dQueries, sequence*a.length+c.queries, (sequence+1)*a.length)
	if c.queries > 0 {
		some := a.stepStats(n)
		if r.Err == nil {
			r.fail(some.CopyFrom(memory.Must(stats.Slice(2, c.queries, a.length))))
		}
		stats = some
	}
	to := dq
	if step > 0 {
		to = memory.Rows(a.dQueriesStep, 0, n)
	}
	Call(r, of.bwd, attentionops.FusedAttnBwdArgs{
		Q: own(v.q), K: keys, V: values, O: own(v.o), DO: own(v.dO), Stats: stats, DQ: one(to), DK: dKeys, DV: dValues,
		AttnScale: of.scale, QKVFormat: attentionops.BSHD, AttnMaskType: c.mask, Saved: a.saved[sequence*a.ranks.Ranks+step],
	})
	if step > 0 {
		Call(r, a.add, norm.ResidualAddArgs{A: dq, B: to, Output: dq})
	}
}
