package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// entries is the length of the axis of the batch; packed tokens have none.
func (c *common) entries(f attention.QKVFormat) int {
	if f == attention.THD {
		return 1
	}
	return c.Batch
}

// sequence returns the part of a call with lengths of its own that belongs to one sequence, as a
// call of that sequence alone.
func (c *common) sequence(a attention.FusedAttnFwdArgs, b int) common {
	s, one := a.Sequence(b), *c
	one.from0, one.Batch, one.SeqQ, one.SeqKV = b, 1, s.LenQ, s.LenKV
	one.band = bandOf(a, one.AttnDims)
	one.q, one.o = alone(c.q, b, s.FirstQ, s.LenQ), alone(c.o, b, s.FirstQ, s.LenQ)
	one.k, one.v = alone(c.k, b, s.FirstKV, s.LenKV), alone(c.v, b, s.FirstKV, s.LenKV)
	if s.LenQ > 0 {
		one.stats.data = c.stats.data[b*c.stats.sequence+s.FirstQ*c.stats.step:]
	}
	return one
}

// alone returns n positions of a sequence from the first one on.
func alone(h host.Heads, sequence, first, n int) host.Heads {
	switch {
	case n == 0:
		h.Data, h.Half = nil, host.Half{}
	case len(h.Data) > 0 || len(h.Bits()) > 0:
		h = h.Shift(sequence*h.Sequence + first*h.Step)
	}
	return h
}

// outside calls do with the positions of an axis that belong to no sequence. of returns the first
// position of a sequence and its length.
func (c *common) outside(f attention.QKVFormat, seq int, of func(b int) (first, n int), do func(entry, first, n int)) {
	at := 0
	for b := range c.Batch {
		first, n := of(b)
		if f != attention.THD {
			do(b, first+n, seq-first-n)
			continue
		}
		do(0, at, first-at)
		at = first + n
	}
	if f == attention.THD {
		do(0, at, seq-at)
	}
}

// clearSteps sets n positions of an entry of the batch to 0.
func clearSteps(h host.Heads, entry, first, n, heads, d int) {
	for i := first; i < first+n; i++ {
		for head := range heads {
			if d > 0 {
				clear(h.From(entry, i)[head*h.Head:][:d])
			}
		}
	}
}

// fewQueries is the number of queries of a sequence up to which they are computed one by one from
// the keys where they are, without packing these. A query has the same bits beside any number of
// others up to this one.
const fewQueries = 8

// sequences computes sequences that have lengths of their own.
func (c *attnFwd) sequences(a attention.FusedAttnFwdArgs) {
	queriesOf := func(b int) (first, n int) { s := a.Sequence(b); return s.FirstQ, s.LenQ }
	c.outside(a.QKVFormat, c.SeqQ, queriesOf, func(entry, first, n int) {
		clearSteps(c.o, entry, first, n, c.Heads, c.DimV)
		for i := first; i < first+n; i++ {
			for head := range c.Heads {
				*c.log(entry, head, i) = float32(math.Inf(-1))
			}
		}
	})
	few := decode{attnFwd: *c, call: a}
	for b := range c.Batch {
		_, n := queriesOf(b)
		if n == 0 {
			continue
		}
		if few.serves(n) {
			few.wanted = true
			continue
		}
		one, w := attnFwd{common: c.sequence(a, b)}, f32Heads{exec: c.exec}
		one.k, one.v = w.load(one.k, 1, one.SeqKV, one.Groups, one.DimQK), w.load(one.v, 1, one.SeqKV, one.Groups, one.DimV)
		one.run()
		w.release()
	}
	if few.wanted {
		decodeKernel.Run(c.exec.Pool(), c.Batch*c.Groups, few)
	}
}

// decode is a forward call for the sequences that have few queries.
type decode struct {
	attnFwd
	call   attention.FusedAttnFwdArgs
	wanted bool
}

var decodeKernel = parallel.NewKernel((*decode).part)

// serves reports whether n queries of a sequence are computed one by one.
func (c *decode) serves(n int) bool {
	return n > 0 && n <= fewQueries && !c.options.alibi && !c.options.dropout.on
}

// part computes the queries of a sequence that use one head of K and V.
func (c *decode) part(part int) {
	b, group := part/c.Groups, part%c.Groups
	one := c.sequence(c.call, b)
	if !c.serves(one.SeqQ) {
		return
	}
	scores := one.exec.Scratch(one.SeqKV)
	defer one.exec.Release(scores)
	from, end := one.firstKey(0), one.visible(one.SeqQ-1)
	var keys, values widened
	one.k, one.v = keys.load(c.exec, one.k, group, from, end, one.DimQK), values.load(c.exec, one.v, group, from, end, one.DimV)
	defer keys.release(c.exec)
	defer values.release(c.exec)
	perGroup := one.Heads / one.Groups
	for head := group * perGroup; head < (group+1)*perGroup; head++ {
		for query := range one.SeqQ {
			one.decode(scores, group, head, query)
		}
	}
}

// widened is an f32 copy of some vectors of a head, if they are narrow.
type widened struct{ buffer []float32 }

// load returns the heads with the positions from up to end of one of them in f32.
func (w *widened) load(e *opregistry.Exec, h host.Heads, head, from, end, d int) host.Heads {
	if !h.Narrow() {
		return h
	}
	w.buffer = e.Scratch(end * d)
	for i := from; i < end; i++ {
		h.Vector(w.buffer[i*d:][:d], 0, i, head)
	}
	return host.Heads{Data: w.buffer, Step: d}
}

func (w *widened) release(e *opregistry.Exec) {
	if w.buffer != nil {
		e.Release(w.buffer)
	}
}

// decode computes O and stats of one query.
func (c *common) decode(scores []float32, group, head, query int) {
	from, end := c.firstKey(query), c.visible(query)
	o := c.o.From(0, query)[head*c.o.Head:][:c.DimV]
	clear(o)
	most, total := c.options.sink(head)
	if from < end {
		scores = scores[:end-from]
		q := c.q.From(0, query)[head*c.q.Head:][:c.DimQK]
		vector.DotRows(scores, q, c.k.Data[from*c.k.Step+group*c.k.Head:], c.k.Step)
		vector.Scale(c.scale, scores, scores)
		if c.options.cap != 0 {
			vector.SoftCap(scores, scores, c.options.cap)
		}
		if m := vector.Max(scores); m > most {
			total *= vector.Exp1(most - m)
			most = m
		}
		shift := most
		if shift == float32(math.Inf(-1)) {
			shift = 0 // no score is finite
		}
		total += vector.ExpSum(scores, scores, shift)
		vector.AxpyRows(o, scores, c.v.Data[from*c.v.Step+group*c.v.Head:], c.v.Step)
		vector.Scale(1/total, o, o)
	}
	*c.log(0, head, query) = most + float32(math.Log(float64(total)))
}

// sequences computes the gradients of sequences that have lengths of their own.
func (c *attnBwd) sequences(a attention.FusedAttnBwdArgs) {
	fwd := a.Fwd()
	queriesOf := func(b int) (first, n int) { s := fwd.Sequence(b); return s.FirstQ, s.LenQ }
	keysOf := func(b int) (first, n int) { s := fwd.Sequence(b); return s.FirstKV, s.LenKV }
	c.outside(a.QKVFormat, c.SeqQ, queriesOf, func(entry, first, n int) {
		clearSteps(c.dQ, entry, first, n, c.Heads, c.DimQK)
	})
	c.outside(a.QKVFormat, c.SeqKV, keysOf, func(entry, first, n int) {
		clearSteps(c.dK, entry, first, n, c.Groups, c.DimQK)
		clearSteps(c.dV, entry, first, n, c.Groups, c.DimV)
	})
	for b := range c.Batch {
		s, one := fwd.Sequence(b), *c
		one.common = c.common.sequence(fwd, b)
		one.dO, one.dQ = alone(c.dO, b, s.FirstQ, s.LenQ), alone(c.dQ, b, s.FirstQ, s.LenQ)
		one.dK, one.dV = alone(c.dK, b, s.FirstKV, s.LenKV), alone(c.dV, b, s.FirstKV, s.LenKV)
		if s.LenKV == 0 {
			clearSteps(one.dQ, 0, 0, s.LenQ, c.Heads, c.DimQK)
			continue
		}
		one.run()
	}
}
