package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/impls/flagos/internal/panel"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
)

// fwdQueries and fwdKeys are the sizes of a block of scores: multiples of the tiles of every kernel
// that fit into a second-level cache with space to spare.
const (
	fwdQueries = 96
	fwdKeys    = 2 * keysMultiple
)

// fwdParts is the smallest number of parts that a forward call is cut into, if possible. A head of
// K and V is packed once for each of its parts.
const fwdParts = 16

// attnFwd is one forward call.
type attnFwd struct {
	common
	blocks int // number of blocks of queries in a head
	shares int // number of parts into which a head of K and V is cut
}

var attnFwdKernel = parallel.NewKernel((*attnFwd).part)

// fusedAttnFwd implements attention.FusedAttnFwd. Q, K, V and O may be views whose last axis is
// dense; stats must be contiguous. All arithmetic is in f32. Blocks of keys are processed in
// ascending order with a running maximum and sum, so the result has the same bits for any number
// of workers; blocks that a mask or a window hides are skipped. Sequences of fewQueries queries or
// less, as in generation, read the keys where they are. Scratch per worker: a copy of a head of K
// and V, a block of scores, and an f32 copy of each narrow operand; of K and V with a padding mask
// it is one of the keys of a sequence.
func fusedAttnFwd(e *opregistry.Exec, a attention.FusedAttnFwdArgs) error {
	var v host.Views
	c := attnFwd{common: commonOf(&v, e, a)}
	if v.Err != nil {
		return v.Err
	}
	if c.Groups == 0 || c.SeqQ == 0 || c.Batch == 0 && !a.AttnMaskType.Padding() {
		return nil
	}
	w := f32Heads{exec: e}
	o, batch := c.o, c.entries(a.QKVFormat)
	c.o = w.place(o, batch, c.SeqQ, c.Heads, c.DimV)
	if a.AttnMaskType.Padding() {
		c.q = w.load(c.q, batch, c.SeqQ, c.Heads, c.DimQK)
		c.sequences(a)
	} else {
		c.common = w.inputs(c.common, batch)
		c.run()
	}
	w.store(o, c.o, batch, c.SeqQ, c.Heads, c.DimV)
	w.release()
	return nil
}

// run computes sequences of one length.
func (c attnFwd) run() {
	pairs := c.Batch * c.Groups
	c.blocks = (c.SeqQ + fwdQueries - 1) / fwdQueries
	c.shares = min((fwdParts+pairs-1)/pairs, c.Heads/c.Groups*c.blocks)
	c.options.prepare(&c.common)
	attnFwdKernel.Run(c.exec.Pool(), pairs*c.shares, c)
	c.options.release(c.exec)
}

// part computes every shares-th block of the queries that use one head of K and V.
func (c *attnFwd) part(part int) {
	nr := c.kernel.NR
	pair := part / c.shares
	sequence, group := pair/c.Groups, pair%c.Groups
	keySize := host.RoundUp(host.RoundUp(c.SeqKV, nr)*c.DimQK, host.LineFloats)
	buf := c.exec.Scratch(keySize + host.RoundUp(c.DimV, nr)*c.SeqKV)
	defer c.exec.Release(buf)
	keys, values := buf[:keySize], buf[keySize:]
	steps(c.k, sequence, group, c.SeqKV, c.DimQK).Transposed().PackColumns(keys, c.DimQK*nr, 0, c.DimQK, 0, c.SeqKV, nr)
	if c.DimV > 0 {
		steps(c.v, sequence, group, c.SeqKV, c.DimV).PackSteps(values, c.SeqKV*nr, 0, c.SeqKV, 0, c.DimV, nr)
	}
	ordinary := finite(values)
	perGroup := c.Heads / c.Groups
	for unit := part % c.shares; unit < perGroup*c.blocks; unit += c.shares {
		c.queries(sequence, group*perGroup+unit/c.blocks, unit%c.blocks*fwdQueries, keys, values, ordinary)
	}
}

// queries computes O and stats of a block of queries of one head; ordinary says that the values are
// finite.
func (c *attnFwd) queries(sequence, head, first int, keys, values []float32, ordinary bool) {
	rows := min(fwdQueries, c.SeqQ-first)
	mr := c.kernel.MR
	qPitch := c.DimQK + panel.LeftPad
	buf := c.exec.Scratch(host.RoundUp(rows, mr) * (qPitch + fwdKeys + panel.LeftPad))
	defer c.exec.Release(buf)
	q := buf[:host.RoundUp(rows, mr)*qPitch]
	c.copyRows(q, qPitch, steps(c.q, sequence, head, c.SeqQ, c.DimQK), first, rows)
	s := scoreBlock{data: buf[len(q):], pitch: fwdKeys + panel.LeftPad, query: first, rows: rows}
	o := steps(c.o, sequence, head, c.SeqQ, c.DimV)

	var most, total [fwdQueries]float32
	for r := range rows {
		most[r], total[r] = c.options.sink(head)
	}
	s.key = c.firstKey(first) / c.kernel.NR * c.kernel.NR
	end := c.visible(first + rows - 1)
	for ; ; s.more = true {
		s.keys = max(min(fwdKeys, end-s.key), 0)
		c.options.bias.prefetch(&s, sequence, head)
		c.scores(&s, q, qPitch, c.DimQK, keys, c.scale)
		for r := range rows {
			c.changeScores(&s, r, sequence, head, nil)
			correction := c.softmax(&s, r, &most[r], &total[r])
			c.dropProbabilities(&s, r, sequence, head)
			if s.more && correction != 1 {
				row := o.Data[(first+r)*o.RowStep:][:c.DimV]
				vector.Scale(correction, row, row)
			}
		}
		c.timesKeys(&s, values, c.DimV, o.From(first), 1, ordinary)
		if s.key += fwdKeys; s.key >= end {
			break
		}
	}
	for r := range rows {
		*c.log(sequence, head, first+r) = most[r] + float32(math.Log(float64(total[r])))
		if c.DimV > 0 && c.visible(first+r) > c.firstKey(first+r) {
			row := o.Data[(first+r)*o.RowStep:][:c.DimV]
			vector.Scale(c.options.dropout.kept/total[r], row, row)
		}
	}
}

// softmax replaces a row of scores by exponentials relative to the largest score so far and adds
// them up. It returns the factor by which earlier results of the row must be multiplied.
func (c *common) softmax(s *scoreBlock, r int, most, total *float32) (correction float32) {
	from, seen := c.from(s, r), c.seen(s, r)
	row := s.row(r)
	c.clearBeside(row, from, seen)
	if from == seen {
		return 1
	}
	row = row[from:seen]
	correction = 1
	if m := vector.Max(row); m > *most {
		correction = vector.Exp1(*most - m)
		*most = m
	}
	shift := *most
	if shift == float32(math.Inf(-1)) {
		shift = 0 // no score is finite yet
	}
	*total = *total*correction + vector.ExpSum(row, row, shift)
	return correction
}
