package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/philox"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// bwdQueries and bwdKeys are the sizes of a block of scores: multiples of the tiles of every
// kernel; two such blocks fit into a second-level cache with space to spare.
const (
	bwdQueries = 144
	bwdKeys    = keysMultiple
)

// bwdParts is the smallest number of parts that a backward call is cut into, if possible.
const bwdParts = 16

// attnBwd is one backward call.
type attnBwd struct {
	common
	dO, dQ, dK, dV host.Heads
	shares         int       // number of parts into which a head of K and V is cut
	partial        []float32 // what all shares but the first add to dQ: [shares−1, b, h, s_q, d_qk]
	biasGrad       scoreGrad
}

var attnBwdKernel = parallel.NewKernel((*attnBwd).part)

// fusedAttnBwd implements attention.FusedAttnBwd. All operands but stats may be views whose last
// axis is dense; stats must be contiguous. All arithmetic is in f32. A part owns blocks of keys of
// a head of K and V and adds the contributions of all heads of Q that the head serves, in order.
// Where a head has several parts, their contributions to dQ are summed in the order of the parts.
// The result therefore has the same bits for any number of workers; blocks that a mask or a window
// hides are skipped. Scratch per worker: K twice, V once for a head, and two blocks of scores; dQ
// once for each part of a head but the first; an f32 copy of each narrow operand; and dbias in f32,
// at most bwdParts times if it is repeated over sequences or heads.
func fusedAttnBwd(e *opregistry.Exec, a attention.FusedAttnBwdArgs) error {
	var v host.Views
	c := attnBwd{
		common: commonOf(&v, e, a.Fwd()),
		dO:     v.Heads("dO", a.DO, a.QKVFormat), dQ: v.Heads("dQ", a.DQ, a.QKVFormat),
		dK: v.Heads("dK", a.DK, a.QKVFormat), dV: v.Heads("dV", a.DV, a.QKVFormat),
	}
	c.biasGrad = scoreGradOf(&v, a, &c.options)
	var dSinks []float32
	if a.DSoftmaxOffset != nil {
		dSinks = v.Vector("dsoftmax_offset", a.DSoftmaxOffset)
	}
	if v.Err != nil {
		return v.Err
	}
	w := f32Heads{exec: e}
	dQ, dK, dV := c.dQ, c.dK, c.dV
	batch := c.entries(a.QKVFormat)
	c.common = w.inputs(c.common, batch)
	c.o = w.load(c.o, batch, c.SeqQ, c.Heads, c.DimV)
	c.dO = w.load(c.dO, batch, c.SeqQ, c.Heads, c.DimV)
	c.dQ = w.place(dQ, batch, c.SeqQ, c.Heads, c.DimQK)
	c.dK = w.place(dK, batch, c.SeqKV, c.Groups, c.DimQK)
	c.dV = w.place(dV, batch, c.SeqKV, c.Groups, c.DimV)
	if a.AttnMaskType.Padding() {
		c.sequences(a)
	} else {
		c.run()
	}
	if dSinks != nil {
		sinkGradKernel.Run(e.Pool(), c.Heads, sinkGrad{common: c.common, dO: c.dO, to: dSinks})
	}
	w.store(dQ, c.dQ, batch, c.SeqQ, c.Heads, c.DimQK)
	w.store(dK, c.dK, batch, c.SeqKV, c.Groups, c.DimQK)
	w.store(dV, c.dV, batch, c.SeqKV, c.Groups, c.DimV)
	w.release()
	return nil
}

// run computes dQ, dK, dV and dbias for sequences of one length.
func (c *attnBwd) run() {
	c.options.prepare(&c.common)
	defer c.options.release(c.exec)
	pool, pairs := c.exec.Pool(), c.Batch*c.Groups
	c.shares = 1
	if blocks := (c.SeqKV + bwdKeys - 1) / bwdKeys; pairs > 0 && blocks > 0 {
		c.shares = min((bwdParts+pairs-1)/pairs, blocks)
	}
	if c.shares > 1 {
		c.partial = c.exec.Scratch((c.shares - 1) * c.queryElements())
		defer c.exec.Release(c.partial)
	}
	b := &c.biasGrad
	b.deal(&c.AttnDims, c.shares)
	if b.wanted {
		b.begin(c)
		defer b.end(c)
	}
	attnBwdKernel.Run(pool, b.others*b.lanes*c.shares, *c)
	if c.shares > 1 {
		s := attnBwdSum{attnBwd: *c, Cut: host.CutItems(c.Batch*c.Heads*c.SeqQ, c.DimQK*c.shares)}
		attnBwdSumKernel.Run(pool, s.Parts, s)
	}
}

// blocks returns the blocks of keys of a share: the first key of the first block, the end of the
// last block, and the distance between two blocks. Where queries see many keys the shares take
// turns; where a window hides most keys, the blocks of a share are adjacent, so that most queries
// meet few shares.
func (c *attnBwd) blocks(share int) (key, end, step int) {
	if c.narrow() {
		all := (c.SeqKV + bwdKeys - 1) / bwdKeys
		lo, hi := parallel.Split(all, c.shares, share)
		return lo * bwdKeys, min(hi*bwdKeys, c.SeqKV), bwdKeys
	}
	return share * bwdKeys, c.SeqKV, c.shares * bwdKeys
}

// narrow reports whether a window hides most keys.
func (c *attnBwd) narrow() bool { return 4*(c.left+c.right) < c.SeqKV }

// meets returns the first keys of the first block of a share that contains a key which these
// queries see, and of the block after the last. There is none when key >= end.
func (c *attnBwd) meets(share, query, rows int) (key, end int) {
	key, end, step := c.blocks(share)
	if beyond := c.firstKey(query)/bwdKeys*bwdKeys - key; beyond > 0 {
		key += (beyond + step - 1) / step * step
	}
	return key, min(end, c.visible(query+rows-1))
}

func (c *attnBwd) queryElements() int { return c.Batch * c.Heads * c.SeqQ * c.DimQK }

// partialOf returns the memory for what a share adds to dQ of one head.
func (c *attnBwd) partialOf(share, sequence, head int) panel.Operand {
	if share == 0 {
		return steps(c.dQ, sequence, head, c.SeqQ, c.DimQK)
	}
	at := (share-1)*c.queryElements() + (sequence*c.Heads+head)*c.SeqQ*c.DimQK
	return panel.Operand{Data: c.partial[at:], Rows: c.SeqQ, Cols: c.DimQK, RowStep: c.DimQK, ColStep: 1}
}

// attnBwdSum adds up the shares of dQ.
type attnBwdSum struct {
	attnBwd
	host.Cut
}

var attnBwdSumKernel = parallel.NewKernel((*attnBwdSum).part)

func (c *attnBwdSum) part(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		head, query := i/c.SeqQ, i%c.SeqQ
		to := c.partialOf(0, head/c.Heads, head%c.Heads).Row(query)
		block := query / bwdQueries * bwdQueries
		for share := 1; share < c.shares; share++ {
			if key, end := c.meets(share, block, min(bwdQueries, c.SeqQ-block)); key >= end {
				continue
			}
			vector.Add(to, to, c.partialOf(share, head/c.Heads, head%c.Heads).Row(query))
		}
	}
}

// bwdScratch is the scratch of a part.
type bwdScratch struct {
	lane                    int       // the copy of the bias's gradient that the part adds to
	keysT, keys, valuesT    []float32 // packed: K as right of Q·Kᵀ and of dS·K, V of dO·Vᵀ
	q, dO                   []float32 // rows of a block of queries at a pitch
	qPanels, dOPanels       []float32 // the same as right of dSᵀ·Q and Pᵀ·dO
	probabilities, gradient []float32

	finiteKeys bool // those that are packed
}

func (c *attnBwd) scratch() (buf []float32, b bwdScratch) {
	nr := c.kernel.NR
	wideQK, wideV := host.RoundUp(c.DimQK, nr), host.RoundUp(c.DimV, nr)
	allKeys := host.RoundUp(c.SeqKV, nr)
	sizes := [...]int{
		allKeys * c.DimQK, c.SeqKV * wideQK, allKeys * c.DimV,
		bwdQueries * (c.DimQK + panel.LeftPad), bwdQueries * (c.DimV + panel.LeftPad),
		bwdQueries * wideQK, bwdQueries * wideV,
		bwdQueries * (bwdKeys + panel.LeftPad), bwdQueries * (bwdKeys + panel.LeftPad),
	}
	total := 0
	for _, n := range sizes {
		total += host.RoundUp(n, host.LineFloats)
	}
	buf = c.exec.Scratch(total)
	rest := buf
	for i, part := range [...]*[]float32{
		&b.keysT, &b.keys, &b.valuesT, &b.q, &b.dO, &b.qPanels, &b.dOPanels, &b.probabilities, &b.gradient,
	} {
		*part = rest[:sizes[i]]
		rest = rest[host.RoundUp(sizes[i], host.LineFloats):]
	}
	return buf, b
}

// part computes every shares-th block of dK and dV, and its share of dQ, for one head of K and V,
// or for those of one lane of the bias's gradient.
func (c *attnBwd) part(part int) {
	share, rest := part%c.shares, part/c.shares
	lane, other := rest%c.biasGrad.lanes, rest/c.biasGrad.lanes
	buf, b := c.scratch()
	defer c.exec.Release(buf)
	b.lane = lane
	lo, hi := parallel.Split(c.biasGrad.shared(&c.AttnDims), c.biasGrad.lanes, lane)
	for i := lo; i < hi; i++ {
		sequence, group := c.biasGrad.pair(&c.AttnDims, other, i)
		c.head(&b, share, sequence, group)
	}
}

// head computes every shares-th block of dK and dV of one head, and their share of dQ for the heads
// of Q that it serves.
func (c *attnBwd) head(b *bwdScratch, share, sequence, group int) {
	nr := c.kernel.NR
	keys := steps(c.k, sequence, group, c.SeqKV, c.DimQK)
	values := steps(c.v, sequence, group, c.SeqKV, c.DimV)
	dK := steps(c.dK, sequence, group, c.SeqKV, c.DimQK)
	dV := steps(c.dV, sequence, group, c.SeqKV, c.DimV)
	perGroup := c.Heads / c.Groups
	unseen, seen := 0, 0 // the first head of Q stores the gradients of the keys between them
	if perGroup > 0 && c.SeqQ > 0 {
		unseen, seen = c.firstKey(0), c.visible(c.SeqQ-1)
	}
	b.finiteKeys = true
	first, beyond, step := c.blocks(share)
	for key := first; key < beyond; key += step {
		end := min(key+bwdKeys, c.SeqKV)
		prefetch(keys, key, bwdKeys)
		prefetch(values, key, bwdKeys)
		keys.Transposed().PackColumns(b.keysT[key*c.DimQK:], c.DimQK*nr, 0, c.DimQK, key, end, nr)
		keys.PackSteps(b.keys[key*nr:], c.SeqKV*nr, key, end-key, 0, c.DimQK, nr)
		for at := key * nr; at < len(b.keys) && b.finiteKeys; at += c.SeqKV * nr {
			b.finiteKeys = finite(b.keys[at:][:(end-key)*nr])
		}
		if c.DimV > 0 {
			values.Transposed().PackColumns(b.valuesT[key*c.DimV:], c.DimV*nr, 0, c.DimV, key, end, nr)
		}
		for j := key; j < end; j++ {
			if j < unseen || j >= seen {
				clear(dK.Row(j))
				clear(dV.Row(j))
			}
		}
	}
	for head := group * perGroup; head < (group+1)*perGroup; head++ {
		dQ := c.partialOf(share, sequence, head)
		c.prefetch(sequence, head, 0)
		for first := 0; first < c.SeqQ; first += bwdQueries {
			c.queries(b, share, sequence, head, first, dQ.From(first), dK, dV)
		}
	}
}

// prefetch brings a block of queries into the cache, if there is one.
func (c *attnBwd) prefetch(sequence, head, first int) {
	prefetch(steps(c.q, sequence, head, c.SeqQ, c.DimQK), first, bwdQueries)
	prefetch(steps(c.o, sequence, head, c.SeqQ, c.DimV), first, bwdQueries)
	prefetch(steps(c.dO, sequence, head, c.SeqQ, c.DimV), first, bwdQueries)
}

// queries adds the gradients of a block of queries of one head for a share of its keys. first is
// the first query, with which dQ begins.
func (c *attnBwd) queries(b *bwdScratch, share, sequence, head, first int, dQ, dK, dV panel.Operand) {
	nr := c.kernel.NR
	rows := min(bwdQueries, c.SeqQ-first)
	key, end := c.meets(share, first, rows)
	if key >= end {
		for r := range rows {
			if share == 0 {
				clear(dQ.Row(r))
			}
		}
		return
	}
	_, _, step := c.blocks(share)
	q := steps(c.q, sequence, head, c.SeqQ, c.DimQK)
	o, dO := steps(c.o, sequence, head, c.SeqQ, c.DimV), steps(c.dO, sequence, head, c.SeqQ, c.DimV)
	var inner [bwdQueries]float32 // rowsum(dO∘O)
	for r := range rows {
		inner[r] = vector.Dot(dO.Row(first+r), o.Row(first+r))
	}
	qPitch, vPitch := c.DimQK+panel.LeftPad, c.DimV+panel.LeftPad
	c.copyRows(b.q, qPitch, q, first, rows)
	c.copyRows(b.dO, vPitch, dO, first, rows)
	q.PackSteps(b.qPanels, rows*nr, first, rows, 0, c.DimQK, nr)
	if c.DimV > 0 {
		dO.PackSteps(b.dOPanels, rows*nr, first, rows, 0, c.DimV, nr)
	}

	finiteQ := finite(b.qPanels[:rows*host.RoundUp(c.DimQK, nr)])
	finiteDO := finite(b.dOPanels[:rows*host.RoundUp(c.DimV, nr)])

	c.prefetch(sequence, head, first+bwdQueries)

	var slopes [bwdKeys]float32 // of the soft cap
	fresh := head%(c.Heads/c.Groups) == 0
	p := scoreBlock{data: b.probabilities, pitch: bwdKeys + panel.LeftPad, query: first, rows: rows}
	ds := scoreBlock{data: b.gradient, pitch: bwdKeys + panel.LeftPad, query: first, rows: rows}
	for ; key < end; key += step {
		keys := min(bwdKeys, end-key)
		p.key, p.keys = key, keys
		ds.key, ds.keys = key, keys
		c.options.bias.prefetch(&p, sequence, head)
		c.scores(&p, b.q, qPitch, c.DimQK, b.keysT, c.scale)
		c.biasGrad.sum.prefetch(&p, sequence, head)
		c.scores(&ds, b.dO, vPitch, c.DimV, b.valuesT, c.options.dropout.kept)
		for r := range rows {
			c.changeScores(&p, r, sequence, head, slopes[:])
			c.softmaxGradient(&p, &ds, r, *c.log(sequence, head, first+r), inner[r], sequence, head)
			from := c.from(&ds, r)
			row := ds.row(r)[from:c.seen(&ds, r)]
			if c.biasGrad.wanted && !c.options.preScale {
				c.biasGrad.add(row, b.lane, share, sequence, head, first+r, key+from)
			}
			if c.options.cap != 0 {
				vector.Mul(row, row, slopes[:len(row)])
			}
			if c.biasGrad.wanted && c.options.preScale {
				c.biasGrad.add(row, b.lane, share, sequence, head, first+r, key+from)
			}
		}
		c.timesQueries(&p, b.dOPanels, c.DimV, dV, c.options.dropout.kept, fresh, finiteDO)
		c.timesQueries(&ds, b.qPanels, c.DimQK, dK, c.scale, fresh, finiteQ)
		c.timesKeys(&ds, b.keys, c.DimQK, dQ, c.scale, b.finiteKeys)
		ds.more = true
	}
}

// softmaxGradient replaces a row of scores by probabilities, with 0 for dropped ones, and a row of
// dP, to which dropout is not yet applied, by P·(dP − rowsum(dO∘O)).
func (c *common) softmaxGradient(p, ds *scoreBlock, r int, log, inner float32, sequence, head int) {
	from, seen := c.from(p, r), c.seen(p, r)
	c.clearBeside(p.row(r), from, seen)
	c.clearBeside(ds.row(r), from, seen)
	if from == seen {
		return
	}
	probabilities, gradient := p.row(r)[from:seen], ds.row(r)[from:seen]
	if math.IsInf(float64(log), 1) {
		log = float32(math.NaN()) // a score is infinite, so no probability is a number
	}
	vector.ExpSum(probabilities, probabilities, log)
	if !c.options.dropout.on {
		vector.MulSub(gradient, probabilities, gradient, inner)
		return
	}
	var bits dropRow
	kept, at := c.decide(&bits, p, r, from, seen, sequence, head)
	philox.Select(gradient, gradient, kept, at)
	vector.MulSub(gradient, probabilities, gradient, inner)
	philox.Select(probabilities, probabilities, kept, at)
}
