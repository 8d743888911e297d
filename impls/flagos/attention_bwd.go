package flagos

import (
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/internal/simd"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
)

// bwdQueries and bwdKeys are the sizes of a block of scores: multiples of the tiles
// of every kernel; two such blocks leave room in a second-level cache.
const (
	bwdQueries = 144
	bwdKeys    = keysMultiple
)

// bwdParts is how many parts a backward call is cut into at least, if it can.
const bwdParts = 16

// attnBwd is one backward call.
type attnBwd struct {
	attention
	dO, dQ, dK, dV heads
	shares         int       // parts of a head of K and V
	partial        []float32 // what all shares but the first add to dQ: [shares−1, b, h, s_q, d_qk]
}

var attnBwdKernel = parallel.NewKernel((*attnBwd).part)

// fusedAttnBwd serves ops.FusedAttnBwd. All operands but stats may be views whose
// last axis is dense; stats must be contiguous. All arithmetic is in f32. A part owns
// some blocks of keys of a head of K and V, with all heads of Q that it serves and
// adds them up in order; where that makes several parts of a head, what they add to
// dQ is summed in their order. So the result is the same bit for bit for any number
// of workers; blocks that a mask hides are left out. Scratch a worker: K twice, V
// once for a head, and two blocks of scores; dQ once for each part of a head but
// the first; and of operands in bf16 and f16 a copy in f32.
func fusedAttnBwd(e *opregistry.Exec, a ops.FusedAttnBwdArgs) error {
	var v views
	c := attnBwd{
		attention: v.attention(e, a.Fwd()),
		dO:        v.heads("dO", a.DO, a.QKVFormat), dQ: v.heads("dQ", a.DQ, a.QKVFormat),
		dK: v.heads("dK", a.DK, a.QKVFormat), dV: v.heads("dV", a.DV, a.QKVFormat),
	}
	if v.err != nil {
		return v.err
	}
	pairs := c.Batch * c.Groups
	if pairs == 0 {
		return nil
	}
	w := f32Heads{exec: e}
	defer w.release()
	dQ, dK, dV := c.dQ, c.dK, c.dV
	c.attention = w.inputs(c.attention)
	c.o = w.load(c.o, c.Batch, c.SeqQ, c.Heads, c.DimV)
	c.dO = w.load(c.dO, c.Batch, c.SeqQ, c.Heads, c.DimV)
	c.dQ = w.place(dQ, c.Batch, c.SeqQ, c.Heads, c.DimQK)
	c.dK = w.place(dK, c.Batch, c.SeqKV, c.Groups, c.DimQK)
	c.dV = w.place(dV, c.Batch, c.SeqKV, c.Groups, c.DimV)
	c.shares = max(min((bwdParts+pairs-1)/pairs, (c.SeqKV+bwdKeys-1)/bwdKeys), 1)
	if c.shares > 1 {
		c.partial = e.Scratch((c.shares - 1) * c.queryElements())
		defer e.Release(c.partial)
	}
	attnBwdKernel.Run(e.Pool(), pairs*c.shares, c)
	if c.shares > 1 {
		s := attnBwdSum{attnBwd: c, cut: cutItems(c.Batch*c.Heads*c.SeqQ, c.DimQK*c.shares)}
		attnBwdSumKernel.Run(e.Pool(), s.parts, s)
	}
	w.store(dQ, c.dQ, c.Batch, c.SeqQ, c.Heads, c.DimQK)
	w.store(dK, c.dK, c.Batch, c.SeqKV, c.Groups, c.DimQK)
	w.store(dV, c.dV, c.Batch, c.SeqKV, c.Groups, c.DimV)
	return nil
}

func (c *attnBwd) queryElements() int { return c.Batch * c.Heads * c.SeqQ * c.DimQK }

// partialOf returns what a share adds to dQ of one head.
func (c *attnBwd) partialOf(share, sequence, head int) gemmOperand {
	if share == 0 {
		return c.dQ.steps(sequence, head, c.SeqQ, c.DimQK)
	}
	at := (share-1)*c.queryElements() + (sequence*c.Heads+head)*c.SeqQ*c.DimQK
	return gemmOperand{data: c.partial[at:], rows: c.SeqQ, cols: c.DimQK, rowStep: c.DimQK, colStep: 1}
}

// attnBwdSum adds up the shares of dQ.
type attnBwdSum struct {
	attnBwd
	cut
}

var attnBwdSumKernel = parallel.NewKernel((*attnBwdSum).part)

func (c *attnBwdSum) part(part int) {
	lo, hi := c.bounds(part)
	for i := lo; i < hi; i++ {
		head, query := i/c.SeqQ, i%c.SeqQ
		to := c.partialOf(0, head/c.Heads, head%c.Heads).row(query)
		for share := 1; share < c.shares; share++ {
			simd.Add(to, to, c.partialOf(share, head/c.Heads, head%c.Heads).row(query))
		}
	}
}

// bwdRoom is the scratch of a part.
type bwdRoom struct {
	keysT, keys, valuesT    []float32 // packed: K as right of Q·Kᵀ and of dS·K, V of dO·Vᵀ
	q, dO                   []float32 // rows of a block of queries at a pitch
	qPanels, dOPanels       []float32 // the same as right of dSᵀ·Q and Pᵀ·dO
	probabilities, gradient []float32
}

func (c *attnBwd) room() (room []float32, b bwdRoom) {
	nr := c.kernel.NR
	wideQK, wideV := roundUp(c.DimQK, nr), roundUp(c.DimV, nr)
	allKeys := roundUp(c.SeqKV, nr)
	sizes := [...]int{
		allKeys * c.DimQK, c.SeqKV * wideQK, allKeys * c.DimV,
		bwdQueries * (c.DimQK + leftPad), bwdQueries * (c.DimV + leftPad),
		bwdQueries * wideQK, bwdQueries * wideV,
		bwdQueries * (bwdKeys + leftPad), bwdQueries * (bwdKeys + leftPad),
	}
	total := 0
	for _, n := range sizes {
		total += roundUp(n, lineFloats)
	}
	room = c.exec.Scratch(total)
	rest := room
	for i, part := range [...]*[]float32{
		&b.keysT, &b.keys, &b.valuesT, &b.q, &b.dO, &b.qPanels, &b.dOPanels, &b.probabilities, &b.gradient,
	} {
		*part = rest[:sizes[i]]
		rest = rest[roundUp(sizes[i], lineFloats):]
	}
	return room, b
}

// part computes every shares-th block of dK and dV of one head and their share of
// dQ of the heads that it serves.
func (c *attnBwd) part(part int) {
	nr := c.kernel.NR
	pair, share := part/c.shares, part%c.shares
	sequence, group := pair/c.Groups, pair%c.Groups
	room, b := c.room()
	defer c.exec.Release(room)

	keys := c.k.steps(sequence, group, c.SeqKV, c.DimQK)
	values := c.v.steps(sequence, group, c.SeqKV, c.DimV)
	dK := c.dK.steps(sequence, group, c.SeqKV, c.DimQK)
	dV := c.dV.steps(sequence, group, c.SeqKV, c.DimV)
	perGroup := c.Heads / c.Groups
	seen := 0 // keys whose gradients are stored by what the first of the heads adds
	if perGroup > 0 && c.SeqQ > 0 {
		seen = c.visible(c.SeqQ - 1)
	}
	for key := share * bwdKeys; key < c.SeqKV; key += c.shares * bwdKeys {
		end := min(key+bwdKeys, c.SeqKV)
		near(keys, key, bwdKeys)
		near(values, key, bwdKeys)
		keys.transposed().packColumns(b.keysT[key*c.DimQK:], c.DimQK*nr, 0, c.DimQK, key, end, nr)
		keys.packSteps(b.keys[key*nr:], c.SeqKV*nr, key, end-key, 0, c.DimQK, nr)
		if c.DimV > 0 {
			values.transposed().packColumns(b.valuesT[key*c.DimV:], c.DimV*nr, 0, c.DimV, key, end, nr)
		}
		for j := max(key, seen); j < end; j++ {
			clear(dK.row(j))
			clear(dV.row(j))
		}
	}
	for head := group * perGroup; head < (group+1)*perGroup; head++ {
		dQ := c.partialOf(share, sequence, head)
		c.near(sequence, head, 0)
		for first := 0; first < c.SeqQ; first += bwdQueries {
			c.queries(&b, share, sequence, head, first, dQ.from(first), dK, dV)
		}
	}
}

// near brings a block of queries nearer, if there is one.
func (c *attnBwd) near(sequence, head, first int) {
	near(c.q.steps(sequence, head, c.SeqQ, c.DimQK), first, bwdQueries)
	near(c.o.steps(sequence, head, c.SeqQ, c.DimV), first, bwdQueries)
	near(c.dO.steps(sequence, head, c.SeqQ, c.DimV), first, bwdQueries)
}

// queries adds the gradients of a block of queries of one head and a share of its
// keys; dQ begins at the first query.
func (c *attnBwd) queries(b *bwdRoom, share, sequence, head, first int, dQ, dK, dV gemmOperand) {
	nr := c.kernel.NR
	rows := min(bwdQueries, c.SeqQ-first)
	key, end := share*bwdKeys, c.visible(first+rows-1)
	if key >= end {
		for r := range rows {
			clear(dQ.row(r))
		}
		return
	}
	q := c.q.steps(sequence, head, c.SeqQ, c.DimQK)
	o, dO := c.o.steps(sequence, head, c.SeqQ, c.DimV), c.dO.steps(sequence, head, c.SeqQ, c.DimV)
	log := c.log(sequence, head)[first:]
	var inner [bwdQueries]float32 // rowsum(dO∘O)
	for r := range rows {
		inner[r] = simd.Dot(dO.row(first+r), o.row(first+r))
	}
	qPitch, vPitch := c.DimQK+leftPad, c.DimV+leftPad
	c.copyRows(b.q, qPitch, q, first, rows)
	c.copyRows(b.dO, vPitch, dO, first, rows)
	q.packSteps(b.qPanels, rows*nr, first, rows, 0, c.DimQK, nr)
	if c.DimV > 0 {
		dO.packSteps(b.dOPanels, rows*nr, first, rows, 0, c.DimV, nr)
	}

	c.near(sequence, head, first+bwdQueries)

	fresh := head%(c.Heads/c.Groups) == 0
	p := scoreBlock{data: b.probabilities, pitch: bwdKeys + leftPad, query: first, rows: rows}
	ds := scoreBlock{data: b.gradient, pitch: bwdKeys + leftPad, query: first, rows: rows}
	for ; key < end; key += c.shares * bwdKeys {
		keys := min(bwdKeys, end-key)
		p.key, p.keys = key, keys
		ds.key, ds.keys = key, keys
		c.scores(&p, b.q, qPitch, c.DimQK, b.keysT, c.scale)
		c.scores(&ds, b.dO, vPitch, c.DimV, b.valuesT, 1)
		for r := range rows {
			c.softmaxGradient(&p, &ds, r, log[r], inner[r])
		}
		c.timesQueries(&p, b.dOPanels, c.DimV, dV, 1, fresh)
		c.timesQueries(&ds, b.qPanels, c.DimQK, dK, c.scale, fresh)
		c.timesKeys(&ds, b.keys, c.DimQK, dQ, c.scale)
		ds.more = true
	}
}

// softmaxGradient replaces a row of scores by probabilities and a row of dP by
// P·(dP − rowsum(dO∘O)).
func (c *attention) softmaxGradient(p, ds *scoreBlock, r int, log, inner float32) {
	seen := c.seen(p, r)
	probabilities, gradient := p.row(r), ds.row(r)
	if seen > 0 {
		simd.ExpSum(probabilities[:seen], probabilities[:seen], log)
		simd.MulSub(gradient[:seen], probabilities[:seen], gradient[:seen], inner)
	}
	clear(probabilities[seen : seen+c.kernel.MR])
	clear(gradient[seen : seen+c.kernel.MR])
}
