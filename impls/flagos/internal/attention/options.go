package attention

import (
	"math"

	"github.com/primus-fl/primus/impls/flagos/internal/host"
	kernel "github.com/primus-fl/primus/internal/kernel/gemm"
	"github.com/primus-fl/primus/internal/kernel/philox"
	"github.com/primus-fl/primus/internal/kernel/vector"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// attnOptions holds what attention.AttnOptions adds to the scores, to the softmax and to its
// probabilities.
type attnOptions struct {
	bias       scoreOperand
	biasFactor float32
	preScale   bool // the bias is added before the soft cap

	alibi     bool
	slopes    []float32 // [h] or [b, h]
	distances []float32 // of keys from the diagonal; that of the diagonal itself is at index center
	center    int
	buf       []float32 // memory of slopes and distances

	cap float32 // the soft cap of scores, 0 without

	softmax attention.SoftmaxType
	sinks   []float32 // of each head, for a learnable softmax

	dropout attnDropout
}

// attnDropout says which probabilities are dropped. The others are multiplied by kept.
type attnDropout struct {
	on            bool
	threshold     uint32
	seed, counter uint64
	kept          float32
}

// optionsOf converts the options of a call and requires their operands.
func optionsOf(v *host.Views, a attention.FusedAttnFwdArgs, scale float32) attnOptions {
	o := attnOptions{alibi: a.BiasType == attention.ALiBi, cap: a.Softcap, preScale: a.BiasType == attention.PreScaleBias, softmax: a.SoftmaxType, dropout: attnDropout{kept: 1}}
	if a.Bias != nil {
		o.bias, o.biasFactor = scoreOperandOf(v, "bias", a.Bias), 1
		if o.preScale {
			o.biasFactor = scale
		}
	}
	if a.AlibiSlopes != nil {
		o.slopes = v.Vector("alibi_slopes", a.AlibiSlopes)
	}
	if a.SoftmaxOffset != nil {
		o.sinks = v.Vector("softmax_offset", a.SoftmaxOffset)
	}
	if p := float64(a.PDropout); p > 0 {
		o.dropout = attnDropout{
			on: true, threshold: uint32(math.Ceil(p * (1 << 32))), kept: float32(1 / (1 - p)),
			seed: a.RNGSeed, counter: a.RNGOffset,
		}
	}
	return o
}

// prepare computes what the parts of a call share, in scratch that release returns.
func (o *attnOptions) prepare(c *common) {
	if !o.alibi {
		return
	}
	o.center = max(c.offset+c.SeqQ-1, 0)
	n := o.center + max(c.SeqKV-c.offset, 0)
	o.buf = c.exec.Scratch(n + c.Heads)
	o.distances = o.buf[:n]
	for i := range o.distances {
		o.distances[i] = float32(max(i-o.center, o.center-i))
	}
	if o.slopes == nil {
		o.slopes = o.buf[n:]
		for h := range o.slopes {
			o.slopes[h] = attention.AlibiSlope(h, c.Heads)
		}
	}
}

func (o *attnOptions) release(e *opregistry.Exec) {
	if o.buf != nil {
		e.Release(o.buf)
	}
}

// sink returns the largest score and the sum of exponentials relative to it that a softmax starts
// with, before any key.
func (o *attnOptions) sink(head int) (most, total float32) {
	switch none := float32(math.Inf(-1)); {
	case o.softmax == attention.OffByOneSoftmax:
		return 0, 1
	case o.softmax == attention.LearnableSoftmax && o.sinks[head] != none:
		return o.sinks[head], 1
	default:
		return none, 0
	}
}

// changeScores adds bias and ALiBi to a row of scores and applies the soft cap, whose derivatives
// it stores in slopes, if there are any.
func (c *common) changeScores(s *scoreBlock, r, sequence, head int, slopes []float32) {
	o := &c.options
	if !o.alibi && !o.bias.given && o.cap == 0 {
		return
	}
	from, seen := c.from(s, r), c.seen(s, r)
	row, key := s.row(r)[from:seen], s.key+from
	if len(row) == 0 {
		return
	}
	if o.bias.given && o.preScale {
		o.bias.addTo(row, o.biasFactor, sequence, head, s.query+r, key)
	}
	if o.cap != 0 {
		vector.SoftCap(row, row, o.cap)
		for i := range min(len(slopes), len(row)) {
			t := row[i] / o.cap
			slopes[i] = 1 - t*t
		}
	}
	if o.bias.given && !o.preScale {
		o.bias.addTo(row, o.biasFactor, sequence, head, s.query+r, key)
	}
	if o.alibi {
		slope := o.slopes[((c.from0+sequence)*c.Heads+head)%len(o.slopes)]
		vector.Axpy(-slope, o.distances[o.center+key-(s.query+r+c.offset):][:len(row)], row)
	}
}

// prefetch brings the elements of a block of scores into the cache.
func (x *scoreOperand) prefetch(s *scoreBlock, sequence, head int) {
	if len(x.data) > 0 && x.key == 1 && s.keys > 0 {
		kernel.Prefetch(x.data[x.at(sequence, head, s.query, s.key):], x.query, s.rows, s.keys)
	}
}

// dropBits is the number of decisions that a row of a block needs, including those that share words
// with them.
const dropBits = fwdKeys + 3

// dropRow holds the decisions of a row, one bit each.
type dropRow [(dropBits + 63) / 32]uint32

// decide computes the decisions for the keys of a row of a block from one key on. It returns the
// decisions and the index of the first.
func (c *common) decide(bits *dropRow, s *scoreBlock, r, from, seen, sequence, head int) (kept []uint32, first int) {
	n := ((uint64(c.from0+sequence)*uint64(c.Heads)+uint64(head))*uint64(c.axes.SeqQ)+uint64(s.query+r))*uint64(c.axes.SeqKV) + uint64(s.key+from)
	first = int(n % 4)
	o := &c.options.dropout
	philox.AtLeast(bits[:(first+seen-from+31)/32], o.seed, o.counter+n/4, o.threshold)
	return bits[:], first
}

// dropProbabilities sets the dropped probabilities of a row to 0.
func (c *common) dropProbabilities(s *scoreBlock, r, sequence, head int) {
	if !c.options.dropout.on {
		return
	}
	var bits dropRow
	from, seen := c.from(s, r), c.seen(s, r)
	kept, first := c.decide(&bits, s, r, from, seen, sequence, head)
	row := s.row(r)[from:seen]
	philox.Select(row, row, kept, first)
}

// scoreOperand is a tensor with the axes of the scores. An axis of length 1 is repeated: its
// distance is 0.
type scoreOperand struct {
	given bool
	data  []float32
	host.Half
	batch, head, query, key int // distances; that of keys is 0 or 1
}

// scoreOperandOf requires that the axis of keys is dense.
func scoreOperandOf(v *host.Views, name string, t *tensor.Tensor) scoreOperand {
	if !v.Stored(name, t) {
		return scoreOperand{}
	}
	x := scoreOperand{given: true}
	for axis, d := range [...]*int{&x.batch, &x.head, &x.query, &x.key} {
		if t.Shape()[axis] > 1 {
			*d = t.Strides()[axis]
		}
	}
	if x.key > 1 {
		v.Decline("strides %v of %s %v, this impl serves a dense last axis", t.Strides(), name, t.Shape())
		return scoreOperand{}
	}
	x.data, x.Half = host.ElementsOf(t)
	return x
}

func (x *scoreOperand) at(sequence, head, query, key int) int {
	return sequence*x.batch + head*x.head + query*x.query + key*x.key
}

// addTo adds the elements of a query from a key on, times factor, to row.
func (x *scoreOperand) addTo(row []float32, factor float32, sequence, head, query, key int) {
	at := x.at(sequence, head, query, key)
	switch {
	case x.Narrow():
		x.addNarrow(row, factor, at)
	case x.key == 1:
		vector.Axpy(factor, x.data[at:][:len(row)], row)
	default:
		addConstant(row, factor*x.data[at])
	}
}

func (x *scoreOperand) addNarrow(row []float32, factor float32, at int) {
	var buf [fwdKeys]float32
	if x.key == 1 {
		x.Load(buf[:len(row)], at)
		vector.Axpy(factor, buf[:len(row)], row)
	} else {
		x.Load(buf[:1], at)
		addConstant(row, factor*buf[0])
	}
}

func addConstant(row []float32, c float32) {
	for i := range row {
		row[i] += c
	}
}
