package attention

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/ops/attention"
)

// scoreGrad is the gradient of the bias of attention. Where the bias is repeated over sequences
// or groups of heads, parts of a call share its elements. The sequences and groups are then dealt
// to lanes, each of which sums to its own copy, in order.
type scoreGrad struct {
	wanted                  bool
	to                      scoreOperand
	factor                  float32
	batch, head, query, key int  // the axes of the bias; the length is 1 where it is repeated
	once                    bool // each element belongs to a single score, of a row of several
	others                  int  // the number of combinations of sequence and group that share no elements
	lanes, copies           int
	sum                     scoreOperand // in f32: dbias itself or the copies
	copySize                int
}

// scoreGradOf converts dbias, if it is wanted.
func scoreGradOf(v *host.Views, a attention.FusedAttnBwdArgs, o *attnOptions) scoreGrad {
	if a.DBias == nil {
		return scoreGrad{}
	}
	fwd := a.Fwd()
	s, d := a.DBias.Shape(), fwd.Dims()
	return scoreGrad{
		wanted: true, to: scoreOperandOf(v, "dbias", a.DBias), factor: o.biasFactor,
		batch: s[0], head: s[1], query: s[2], key: s[3],
		once: s.Equal([]int{d.Batch, d.Heads, d.SeqQ, d.SeqKV}) && d.SeqKV > 1,
	}
}

// biasParts is the smallest number of parts that a call with dbias is cut into, if possible: each
// lane needs its own copy of dbias.
const biasParts = bwdParts / 2

// deal deals sequences and groups to lanes.
func (b *scoreGrad) deal(d *attention.AttnDims, shares int) {
	pairs := d.Batch * d.Groups
	b.others, b.lanes, b.copies = pairs, 1, 1
	if !b.wanted || pairs == 0 {
		return
	}
	if b.batch < d.Batch {
		b.others /= d.Batch
	}
	if b.head < d.Heads {
		b.others /= d.Groups
	}
	b.lanes = min((biasParts+b.others*shares-1)/(b.others*shares), pairs/b.others)
	if b.copies = b.lanes; b.key == 1 {
		b.copies *= shares
	}
}

// shared returns how many sequences and groups share each element.
func (b *scoreGrad) shared(d *attention.AttnDims) int { return d.Batch * d.Groups / b.others }

// pair returns the i-th sequence and group of those that share elements.
func (b *scoreGrad) pair(d *attention.AttnDims, other, i int) (sequence, group int) {
	switch overBatch, overHeads := b.wanted && b.batch < d.Batch, b.wanted && b.head < d.Heads; {
	case overBatch && overHeads:
		return i / d.Groups, i % d.Groups
	case overBatch:
		return i, other
	case overHeads:
		return other, i
	default:
		return other / d.Groups, other % d.Groups
	}
}

// direct reports whether sums are computed in dbias itself.
func (b *scoreGrad) direct() bool { return b.copies == 1 && !b.to.Narrow() }

// begin provides the memory for the sums.
func (b *scoreGrad) begin(c *attnBwd) {
	b.sum = b.to
	if !b.direct() {
		b.copySize = b.batch * b.head * b.query * b.key
		b.sum = scoreOperand{data: c.exec.Scratch(b.copies * b.copySize)}
		distance := 1
		for _, axis := range [...]struct{ n, distance *int }{
			{&b.key, &b.sum.key}, {&b.query, &b.sum.query}, {&b.head, &b.sum.head}, {&b.batch, &b.sum.batch},
		} {
			if *axis.n > 1 {
				*axis.distance = distance
			}
			distance *= *axis.n
		}
	}
	if !b.once {
		b.rows(c, scoreGradClearKernel)
	}
}

// end stores the sums.
func (b *scoreGrad) end(c *attnBwd) {
	if b.once || !b.direct() {
		b.rows(c, scoreGradEndKernel)
	}
	if !b.direct() {
		c.exec.Release(b.sum.data)
	}
}

// add adds the gradients of the scores of a query from a key on.
func (b *scoreGrad) add(row []float32, lane, share, sequence, head, query, key int) {
	at := b.sum.at(sequence, head, query, key)
	if b.key > 1 {
		to := b.sum.data[lane*b.copySize+at:][:len(row)]
		if b.once {
			vector.Scale(b.factor, to, row)
		} else {
			vector.Axpy(b.factor, row, to)
		}
		return
	}
	copies := b.copies / b.lanes
	b.sum.data[(lane*copies+share%copies)*b.copySize+at] += b.factor * vector.Sum(row)
}

// scoreGradRows is work on the rows of dbias.
type scoreGradRows struct {
	attnBwd
	host.Cut
}

var (
	scoreGradClearKernel = parallel.NewKernel((*scoreGradRows).clear)
	scoreGradEndKernel   = parallel.NewKernel((*scoreGradRows).end)
)

func (b *scoreGrad) rows(c *attnBwd, kernel *parallel.Kernel[scoreGradRows]) {
	s := scoreGradRows{attnBwd: *c, Cut: host.CutItems(b.batch*b.head*b.query, b.key*b.copies)}
	if b.key > 0 {
		kernel.Run(c.exec.Pool(), s.Parts, s)
	}
}

// row returns a row of a copy of the sums.
func (c *scoreGradRows) row(i, lane int) []float32 {
	b := &c.biasGrad
	return b.sum.data[lane*b.copySize+b.sum.at(i/b.query/b.head, i/b.query%b.head, i%b.query, 0):][:b.key]
}

func (c *scoreGradRows) clear(part int) {
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		for k := range c.biasGrad.copies {
			clear(c.row(i, k))
		}
	}
}

func (c *scoreGradRows) end(part int) {
	b := &c.biasGrad
	lo, hi := c.Bounds(part)
	for i := lo; i < hi; i++ {
		row := c.row(i, 0)
		if b.once {
			clear(row[:c.firstKey(i%b.query)])
			clear(row[c.visible(i%b.query):])
		}
		for k := 1; k < b.copies; k++ {
			vector.Add(row, row, c.row(i, k))
		}
		switch at := b.to.at(i/b.query/b.head, i/b.query%b.head, i%b.query, 0); {
		case b.to.Narrow():
			b.to.Store(at, row)
		case !b.direct():
			copy(b.to.data[at:], row)
		}
	}
}

// sinkGrad is the gradient of the offsets of a learnable softmax; each part computes one head.
type sinkGrad struct {
	common
	dO host.Heads
	to []float32
}

var sinkGradKernel = parallel.NewKernel((*sinkGrad).part)

func (c *sinkGrad) part(head int) {
	sum := 0.0
	for sequence := range c.Batch {
		o, dO := steps(c.o, sequence, head, c.SeqQ, c.DimV), steps(c.dO, sequence, head, c.SeqQ, c.DimV)
		for query := range c.SeqQ {
			sum -= float64(vector.Exp1(c.options.sinks[head]-*c.log(sequence, head, query))) * float64(vector.Dot(dO.Row(query), o.Row(query)))
		}
	}
	c.to[head] = float32(sum)
}
