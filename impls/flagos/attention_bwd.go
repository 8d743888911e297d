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
	bwdQueries = 96
	bwdKeys    = 256
)

// attnBwd is one backward call.
type attnBwd struct {
	attention
	dO, dQ, dK, dV heads
}

var attnBwdKernel = parallel.NewKernel((*attnBwd).part)

// fusedAttnBwd serves ops.FusedAttnBwd. All operands but stats may be views whose
// last axis is dense; stats must be contiguous. Everything is in f32. A part owns a
// head of K and V with all heads of Q that it serves and adds them up in order, so
// the result is the same bit for bit for any number of workers; blocks that a mask
// hides are left out. Scratch a worker: K twice, V once for a head, and two blocks
// of scores.
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
	attnBwdKernel.Run(e.Pool(), c.Batch*c.Groups, c)
	return nil
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

// part computes dK and dV of one head and dQ of the heads that share it.
func (c *attnBwd) part(part int) {
	nr := c.kernel.NR
	sequence, group := part/c.Groups, part%c.Groups
	room, b := c.room()
	defer c.exec.Release(room)

	keys := c.k.steps(sequence, group, c.SeqKV, c.DimQK)
	keys.transposed().packColumns(b.keysT, c.DimQK*nr, 0, c.DimQK, 0, c.SeqKV, nr)
	keys.packSteps(b.keys, c.SeqKV*nr, 0, c.SeqKV, 0, c.DimQK, nr)
	values := c.v.steps(sequence, group, c.SeqKV, c.DimV)
	if c.DimV > 0 {
		values.transposed().packColumns(b.valuesT, c.DimV*nr, 0, c.DimV, 0, c.SeqKV, nr)
	}
	dK := c.dK.steps(sequence, group, c.SeqKV, c.DimQK)
	dV := c.dV.steps(sequence, group, c.SeqKV, c.DimV)
	for j := range c.SeqKV {
		clear(dK.row(j))
		clear(dV.row(j))
	}
	share := c.Heads / c.Groups
	for head := group * share; head < (group+1)*share; head++ {
		for first := 0; first < c.SeqQ; first += bwdQueries {
			c.queries(&b, sequence, head, first, dK, dV)
		}
	}
}

// queries adds the gradients of a block of queries of one head.
func (c *attnBwd) queries(b *bwdRoom, sequence, head, first int, dK, dV gemmOperand) {
	nr := c.kernel.NR
	rows := min(bwdQueries, c.SeqQ-first)
	q := c.q.steps(sequence, head, c.SeqQ, c.DimQK)
	o, dO := c.o.steps(sequence, head, c.SeqQ, c.DimV), c.dO.steps(sequence, head, c.SeqQ, c.DimV)
	dQ := c.dQ.steps(sequence, head, c.SeqQ, c.DimQK)
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

	p := scoreBlock{data: b.probabilities, pitch: bwdKeys + leftPad, query: first, rows: rows}
	ds := scoreBlock{data: b.gradient, pitch: bwdKeys + leftPad, query: first, rows: rows}
	end := c.visible(first + rows - 1)
	for more := true; more; more = p.key < end {
		p.keys = min(bwdKeys, end-p.key)
		ds.key, ds.keys = p.key, p.keys
		c.scores(&p, b.q, qPitch, c.DimQK, b.keysT, c.scale)
		c.scores(&ds, b.dO, vPitch, c.DimV, b.valuesT, 1)
		for r := range rows {
			c.softmaxGradient(&p, &ds, r, log[r], inner[r])
		}
		c.timesQueries(&p, b.dOPanels, c.DimV, dV, 1)
		c.timesQueries(&ds, b.qPanels, c.DimQK, dK, c.scale)
		c.timesKeys(&ds, b.keys, c.DimQK, dQ, c.scale)
		p.key += bwdKeys
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
