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

// contextRanks is the number of ranks that share the tokens of each sequence.
func (p Part) contextRanks() int {
	if p.Context == nil {
		return 1
	}
	return p.Context.Ranks
}

// share is the tokens of a sequence of some length that the rank has.
func (p Part) share(length int) sequence.Share {
	s := sequence.Share{Ranks: 1, Length: length}
	if p.Context != nil {
		s.Rank, s.Ranks = p.Context.Rank, p.Context.Ranks
	}
	return s
}

// sharedAttention is attention among tokens of sequences that several ranks have.
type sharedAttention interface {
	forward(r *Run, of *attention)
	backward(r *Run, of *attention)
}

// sharedAttention makes the attention between the views of a layer.
func (b *Builder) sharedAttention(views attentionViews, stats *tensor.Tensor) sharedAttention {
	if stats != nil {
		stats = memory.Must(stats.Reshape(b.tokens(), b.Config.NumAttentionHeads, 1))
	}
	if b.Part.Ring {
		return b.ringAttention(views, stats)
	}
	return b.contextAttention(views, stats)
}

func (b *Builder) contextRanks() int { return b.Part.contextRanks() }

// contextPlan says which tokens of a batch this rank has, and what their attention brings together.
type contextPlan struct {
	share sequence.Share // of each row
	batch int            // rows

	starts   *tensor.Tensor        // i32: the positions with which the runs of tokens begin
	segments []int32               // of all tokens of the batch; nil without
	parts    map[int][]contextPart // by the keys before its own that a query sees
	rings    map[int][][]ringBlock // likewise; those of each step of each row
}

// contextPart is the attention of a chunk of a row to the keys that it sees.
type contextPart struct {
	queries, keys      Range          // rows of the tokens of the rank, and of those of all ranks in the order of the sequences
	row                Range          // those of the whole row
	queryEnds, keyEnds *tensor.Tensor // i32 [documents+1]
}

// set takes what a batch says of documents and positions, and finds the runs of positions.
func (p *contextPlan) set(places *documents, b Batch) error {
	p.segments, p.parts, p.rings = b.Segments, map[int][]contextPart{}, map[int][][]ringBlock{}
	var ends, firsts []int32
	for row := range p.batch {
		var positions []int32
		if b.Positions != nil {
			positions = b.Positions[row*p.share.Length : (row+1)*p.share.Length]
		}
		for _, run := range p.share.Runs(positions) {
			ends, firsts = append(ends, int32(row*p.share.Tokens()+run.At)), append(firsts, int32(run.First))
		}
	}
	ends = append(ends, int32(p.batch*p.share.Tokens()))
	err := tensor.Fill(places.memory, func(all []int32) { copy(all, ends) })
	if err == nil {
		places.starts, err = tensor.Known(memory.Rows(places.memory, 0, len(ends)), ends)
	}
	p.starts = vector(firsts)
	return err
}

// positions returns the position of the first token of each run.
func (p *contextPlan) positions() *tensor.Tensor {
	if p == nil {
		return nil
	}
	return p.starts
}

// of returns the parts of attention with so many keys before its own that a query sees, -1 for all.
func (p *contextPlan) of(before int) []contextPart {
	if all, known := p.parts[before]; known {
		return all
	}
	var all []contextPart
	for row := range p.batch {
		first, own := row*p.share.Length, row*p.share.Tokens()
		for _, part := range p.share.Parts(p.segmentsOf(row), before) {
			all = append(all, contextPart{
				queries: Range{own + part.Queries.Lo, own + part.Queries.Hi}, keys: Range{first + part.Keys.Lo, first + part.Keys.Hi},
				row: Range{first, first + p.share.Length}, queryEnds: vector(part.QueryEnds), keyEnds: vector(part.KeyEnds),
			})
		}
	}
	p.parts[before] = all
	return all
}

// segmentsOf returns the documents of a row, nil for one.
func (p *contextPlan) segmentsOf(row int) []int32 {
	if p.segments == nil {
		return nil
	}
	return p.segments[row*p.share.Length : (row+1)*p.share.Length]
}

// stretchOfRows is rows that follow each other in the batch of all ranks.
type stretchOfRows struct{ at, of, n int }

// rows returns the stretches of a range of the rows of the rank. A nil plan is that of a rank with
// all tokens, of which it has a range.
func (p *contextPlan) rows(r Range) []stretchOfRows {
	if p == nil {
		return []stretchOfRows{{r.Lo, r.Lo, r.Hi - r.Lo}}
	}
	var all []stretchOfRows
	at := 0
	for row := range p.batch {
		for _, c := range p.share.Ranges() {
			lo, hi := max(at, r.Lo), min(at+c.Len(), r.Hi)
			if lo < hi {
				all = append(all, stretchOfRows{lo, row*p.share.Length + c.Lo + lo - at, hi - lo})
			}
			at += c.Len()
		}
	}
	return all
}

// contextAttention is the attention of the tokens of a rank to those of all ranks of their
// sequences, whose keys and values it collects. Rows of keys hold the values as well.
type contextAttention struct {
	plan   *contextPlan
	ranks  *world.World
	before int            // keys before its own that a query sees, -1 for all
	views  attentionViews // of the tokens of the rank, [T heads d]
	stats  *tensor.Tensor // [T heads 1]
	groups int

	own     *tensor.Tensor // [T 2·groups d]
	all     *tensor.Tensor // [ranks·T 2·groups d], one rank after the other
	ordered *tensor.Tensor // the same in the order of the sequences
	dFirst  *tensor.Tensor // gradients of ordered: of the part of a row that sees least
	dAll    *tensor.Tensor // of all parts
	saved   []*opregistry.Saved
	add     *opmanager.Bound[norm.ResidualAddArgs]
}

// contextAttention makes the attention between the views of a layer.
func (b *Builder) contextAttention(views attentionViews, stats *tensor.Tensor) *contextAttention {
	t, d, groups := b.tokens(), b.Config.HeadDim(), b.Config.Groups()
	n := t * b.contextRanks()
	c := &contextAttention{
		plan: b.context, ranks: b.Part.Context, before: b.Config.KeysBeforeIn(b.depth), views: views, stats: stats, groups: groups,
		own: b.spare(t, 2*groups, d), all: b.spare(n, 2*groups, d), ordered: b.spare(n, 2*groups, d),
		dFirst: b.spare(n, 2*groups, d), dAll: b.spare(n, 2*groups, d),
		add: opmanager.MustBind(b.Bwd, norm.ResidualAdd),
	}
	for range 2 * b.Batch {
		c.saved = append(c.saved, saved())
	}
	return c
}

// spare returns memory for a call only, also in a forward-only pass.
func (b *Builder) spare(shape ...int) *tensor.Tensor {
	if b.Spare == nil {
		return b.Act(shape...)
	}
	return b.scratch(shape...)
}

// heads returns the keys and the values of rows.
func (c *contextAttention) heads(rows *tensor.Tensor) (keys, values *tensor.Tensor) {
	return memory.Must(rows.Slice(1, 0, c.groups)), memory.Must(rows.Slice(1, c.groups, 2*c.groups))
}

// collect writes the keys and values of all ranks to ordered.
func (c *contextAttention) collect(r *Run) {
	if r.Err != nil {
		return
	}
	keys, values := c.heads(c.own)
	if err := errors.Join(keys.CopyFrom(c.views.k), values.CopyFrom(c.views.v)); err != nil {
		r.fail(err)
		return
	}
	if err := c.ranks.GatherInto("collect keys and values", c.own, c.all); err != nil {
		r.fail(err)
		return
	}
	c.each(r, func(byRank, ordered *tensor.Tensor) error { return ordered.CopyFrom(byRank) }, c.ordered)
}

// each calls a function with the rows of each chunk of all, and of a tensor in the order of the
// sequences.
func (c *contextAttention) each(r *Run, do func(byRank, ordered *tensor.Tensor) error, of *tensor.Tensor) {
	at := 0
	for rank := range c.ranks.Ranks {
		share := c.plan.share
		share.Rank = rank
		for row := range c.plan.batch {
			for _, g := range share.Ranges() {
				first := row*share.Length + g.Lo
				if r.Err == nil {
					r.fail(do(memory.Rows(c.all, at, at+g.Len()), memory.Rows(of, first, first+g.Len())))
				}
				at += g.Len()
			}
		}
	}
}

// options are those of a part.
func (c *contextAttention) options(a *attention, p contextPart) attentionops.AttnOptions {
	return attentionops.AttnOptions{CuSeqlensQ: p.queryEnds, CuSeqlensKV: p.keyEnds, WindowSize: a.window, Softcap: a.softcap}
}

func (c *contextAttention) forward(r *Run, a *attention) {
	c.collect(r)
	for i, p := range c.plan.of(c.before) {
		q := func(t *tensor.Tensor) *tensor.Tensor { return memory.Rows(t, p.queries.Lo, p.queries.Hi) }
		keys, values := c.heads(memory.Rows(c.ordered, p.keys.Lo, p.keys.Hi))
		Call(r, a.fwd, attentionops.FusedAttnFwdArgs{
			Q: q(c.views.q), K: keys, V: values, O: q(c.views.o), Stats: q(c.stats), AttnScale: a.scale,
			QKVFormat: attentionops.THD, AttnMaskType: attentionops.PaddingCausalBottomRightMask, AttnOptions: c.options(a, p), Saved: c.saved[i],
		})
	}
}

// backward collects the keys and values again, which the layers share memory for, and adds up their
// gradients for the ranks that have them.
func (c *contextAttention) backward(r *Run, a *attention) {
	c.collect(r)
	parts := c.plan.of(c.before)
	for i := len(parts) - 1; i >= 0; i-- { // the second chunk of a row comes first, and writes all of the row
		p, into := parts[i], c.dAll
		if i%2 == 0 {
			into = c.dFirst
		}
		q := func(t *tensor.Tensor) *tensor.Tensor { return memory.Rows(t, p.queries.Lo, p.queries.Hi) }
		keys, values := c.heads(memory.Rows(c.ordered, p.keys.Lo, p.keys.Hi))
		rows := memory.Rows(into, p.keys.Lo, p.keys.Hi)
		dKeys, dValues := c.heads(rows)
		Call(r, a.bwd, attentionops.FusedAttnBwdArgs{
			Q: q(c.views.q), K: keys, V: values, O: q(c.views.o), DO: q(c.views.dO), Stats: q(c.stats), DQ: q(c.views.dq), DK: dKeys, DV: dValues, AttnScale: a.scale,
			QKVFormat: attentionops.THD, AttnMaskType: attentionops.PaddingCausalBottomRightMask, AttnOptions: c.options(a, p), Saved: c.saved[i],
		})
		if i%2 == 0 {
			all := memory.Rows(c.dAll, p.keys.Lo, p.keys.Hi)
			Call(r, c.add, norm.ResidualAddArgs{A: all, B: rows, Output: all})
		} else if r.Err == nil {
			r.fail(errors.Join(zero(memory.Rows(into, p.row.Lo, p.keys.Lo)), zero(memory.Rows(into, p.keys.Hi, p.row.Hi))))
		}
	}
	c.each(r, func(byRank, ordered *tensor.Tensor) error { return byRank.CopyFrom(ordered) }, c.dAll)
	r.scatter(c.ranks, c.all, c.own)
	if r.Err == nil {
		keys, values := c.heads(c.own)
		r.fail(errors.Join(c.views.dk.CopyFrom(keys), c.views.dv.CopyFrom(values)))
	}
}

// zero sets the elements of contiguous rows to 0.
func zero(t *tensor.Tensor) error {
	if t.NumElements() > 0 {
		clear(bytes(t))
	}
	return nil
}
