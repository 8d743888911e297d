package opencl

import (
	"math"

	"github.com/primus-fl/primus/device/opencl"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// The flags of attention.cl.
const (
	withBias = 1 << iota
	withMask
	withALiBi
	withSlopes
	withDropout
	withOne
	withSinks
	withPeaks
	withGradient
)

// options are the parts of a call that plain attention does not have.
type options struct {
	flags        int
	bias, hidden scores
	biasFactor   float32 // 0: that of the scores
	dBias        scores
	dSinks       *tensor.Tensor
}

// scores is a tensor with the axes of the scores, or nil. An axis of length 1 is repeated: its
// distance is 0.
type scores struct {
	*tensor.Tensor
	batch, head, query, key int
}

// scoresOf views an operand, which may have any strides.
func scoresOf(v *operandViews, name string, t *tensor.Tensor) scores {
	x := scores{Tensor: t}
	if !v.on(name, t) {
		return x
	}
	for axis, d := range [...]*int{&x.batch, &x.head, &x.query, &x.key} {
		if t.Shape()[axis] > 1 {
			*d = t.Strides()[axis]
		}
	}
	v.fits(name, t)
	return x
}

// arguments returns the arguments of a buffer and the macro SCORES. In a kernel whose rows are
// keys, turned exchanges the distances along queries and keys.
func (x scores) arguments(turned bool) []opencl.Arg {
	row, column := x.query, x.key
	if turned {
		row, column = column, row
	}
	return []opencl.Arg{bufOrNil(x.Tensor), intArg(x.batch), intArg(x.head), intArg(row), intArg(column)}
}

// bufOrNil is a tensor as an argument of a kernel, a null pointer for nil.
func bufOrNil(t *tensor.Tensor) opencl.Arg {
	if t == nil {
		return opencl.Buf(nil)
	}
	return buf(t)
}

// optionsOf views the options of a call.
func optionsOf(v *operandViews, a attention.FusedAttnFwdArgs) options {
	var o options
	if a.Bias != nil {
		o.flags |= withBias
		o.bias = scoresOf(v, "bias", a.Bias)
		if a.BiasType == attention.PostScaleBias {
			o.biasFactor = 1
		}
	}
	if a.AttentionMask != nil {
		o.flags |= withMask
		o.hidden = scoresOf(v, "attention_mask", a.AttentionMask)
	}
	if a.BiasType == attention.ALiBi {
		o.flags |= withALiBi
	}
	if a.AlibiSlopes != nil {
		o.flags |= withSlopes
		v.vector("alibi_slopes", a.AlibiSlopes)
	}
	if a.PDropout > 0 {
		o.flags |= withDropout
	}
	if a.Softcap != 0 {
		v.decline("softcap %v, this impl serves scores without", a.Softcap)
	}
	switch a.SoftmaxType {
	case attention.OffByOneSoftmax:
		o.flags |= withOne
	case attention.LearnableSoftmax:
		o.flags |= withSinks
		v.vector("softmax_offset", a.SoftmaxOffset)
	case attention.VanillaSoftmax:
	default:
		v.decline("softmax_type %v, which this impl does not know", a.SoftmaxType)
	}
	if a.MaxLogit != nil {
		o.flags |= withPeaks
		v.vector("max_logit", a.MaxLogit)
	}
	return o
}

// gradientsOf views the gradients of the options of a call.
func (o *options) gradientsOf(v *operandViews, a attention.FusedAttnBwdArgs) {
	if a.DBias != nil {
		o.flags |= withGradient
		o.dBias = scoresOf(v, "dbias", a.DBias)
	}
	if a.DSoftmaxOffset != nil {
		o.dSinks = a.DSoftmaxOffset
		v.vector("dsoftmax_offset", a.DSoftmaxOffset)
	}
}

// has reports whether all these flags are set.
func (o *options) has(flags int) bool { return o.flags&flags == flags }

// wordsKV returns how many words of decisions each query has. Kernel decide makes two at a time.
func (c *call) wordsKV() int { return 2 * ((c.SeqKV + 63) / 64) }

// wordsQ returns how many words of decisions each key has.
func (c *call) wordsQ() int { return (c.SeqQ + 31) / 32 }

// decisions returns the size of the decisions of dropout for rows of so many words.
func (c *call) decisions(rows, words int) int {
	if !c.options.has(withDropout) {
		return 0
	}
	return c.batch * c.Heads * rows * words
}

// peaks returns the size of the largest scores of all rows.
func (c *call) peaks() int {
	if !c.options.has(withPeaks) {
		return 0
	}
	return c.batch * c.Heads * c.SeqQ
}

// scores returns the size of the gradients of all scores, which only the gradient of a bias needs.
func (c *call) scores() int {
	if !c.options.has(withGradient) {
		return 0
	}
	return c.batch * c.Heads * c.SeqQ * c.SeqKV
}

// biasFactor returns the factor of the bias and of its gradient.
func (c *call) biasFactor() float32 {
	if c.options.biasFactor == 0 {
		return c.scale
	}
	return c.options.biasFactor
}

// optionArgs returns OPTION_ARGS, none without options. Rows are keys if turned is true.
func (c *call) optionArgs(kept *tensor.Tensor, words int, turned bool) []opencl.Arg {
	if !c.variant.options {
		return nil
	}
	o, a := &c.options, &c.args
	slopes, perSequence := opencl.Buf(nil), 0
	if o.has(withSlopes) {
		slopes = buf(a.AlibiSlopes)
		if len(a.AlibiSlopes.Shape()) == 2 {
			perSequence = c.Heads
		}
	}
	return join(
		[]opencl.Arg{intArg(o.flags)}, o.bias.arguments(turned), []opencl.Arg{opencl.F32(c.biasFactor())}, o.hidden.arguments(turned),
		[]opencl.Arg{slopes, intArg(perSequence), buf(kept), intArg(words), opencl.F32(float32(1 / (1 - float64(a.PDropout))))})
}

// sinkArgs returns SINK_ARGS, none without options.
func (c *call) sinkArgs(peaks *tensor.Tensor) []opencl.Arg {
	if !c.variant.options {
		return nil
	}
	return []opencl.Arg{bufOrNil(c.args.SoftmaxOffset), buf(peaks)}
}

// gradientArgs returns GRADIENT_ARGS, none without options.
func (c *call) gradientArgs(scores *tensor.Tensor) []opencl.Arg {
	if !c.variant.options {
		return nil
	}
	return []opencl.Arg{buf(scores)}
}

// decide queues the decisions of dropout, if there is any.
func (q *queue) decide(kept, visible *tensor.Tensor) {
	if !q.options.has(withDropout) {
		return
	}
	limit := math.Ceil(float64(q.args.PDropout) * (1 << 32))
	q.launch("decide", q.wordsKV()/2, usualGroup, q.SeqQ, q.Heads*q.batch, []opencl.Arg{
		buf(kept), buf(visible), intArg(q.SeqQ), intArg(q.SeqKV), intArg(q.Heads), intArg(q.wordsKV()),
		opencl.U64(q.args.RNGSeed), opencl.U64(q.args.RNGOffset), opencl.U32(uint32(limit)),
	})
}

// turn queues the transposition of the decisions of dropout, if there is any.
func (q *queue) turn(kept, turned *tensor.Tensor) {
	if q.options.has(withDropout) {
		q.launch("turn", q.wordsQ(), usualGroup, (q.SeqKV+31)/32, q.Heads*q.batch, []opencl.Arg{
			buf(kept), buf(turned), intArg(q.SeqQ), intArg(q.SeqKV), intArg(q.wordsKV()), intArg(q.wordsQ()),
		})
	}
}

// highest queues the search for the largest scores, if they are wanted.
func (q *queue) highest(peaks *tensor.Tensor) {
	if q.options.has(withPeaks) {
		q.launch("highest", q.Heads, usualGroup, 1, 1, []opencl.Arg{
			buf(peaks), buf(q.args.MaxLogit), intArg(q.SeqQ), intArg(q.Heads), intArg(q.batch),
		})
	}
}

// biasGradient queues the sum of the gradients of the scores, if it is wanted.
func (q *queue) biasGradient(gradient, visible *tensor.Tensor) {
	if !q.options.has(withGradient) {
		return
	}
	d, factor := q.options.dBias, float32(1)
	if q.args.BiasType == attention.PreScaleBias {
		factor = q.scale
	}
	n := d.Shape()
	q.launch("bias_gradient", n[3], usualGroup, n[2], n[0]*n[1], join(
		[]opencl.Arg{buf(gradient), buf(visible)}, d.arguments(false),
		[]opencl.Arg{
			intArg(q.batch), intArg(q.Heads), intArg(q.SeqQ), intArg(q.SeqKV),
			intArg(n[0]), intArg(n[1]), intArg(n[2]), intArg(n[3]), opencl.F32(factor),
		}))
}

// sinkGradient queues the gradient of the offsets of the softmax, if it is wanted.
func (q *queue) sinkGradient(rowsums *tensor.Tensor) {
	if q.options.dSinks != nil {
		q.launch("sink_gradient", q.Heads, usualGroup, 1, 1, []opencl.Arg{
			buf(q.args.SoftmaxOffset), buf(rowsums), buf(q.options.dSinks), intArg(q.SeqQ), intArg(q.tilesOf(q.SeqQ)), intArg(q.Heads), intArg(q.batch),
		})
	}
}
