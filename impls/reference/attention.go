package reference

import (
	"math"

	"github.com/primus-fl/primus/internal/random"
	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// attention is a call of fused_attn_fwd with its operands in float64.
type attention struct {
	attentionops.FusedAttnFwdArgs
	attentionops.AttnDims
	scale                float64
	q, k, v              headVectors
	bias, slopes, offset []float64 // empty when the call has none
	hidden               []float64 // attention_mask
}

func newAttention(a attentionops.FusedAttnFwdArgs) *attention {
	d := a.Dims()
	c := &attention{
		FusedAttnFwdArgs: a, AttnDims: d,
		scale: float64(a.AttnScale.Or(float32(1 / math.Sqrt(float64(d.DimQK))))),
		q:     heads(a.Q, a.QKVFormat), k: heads(a.K, a.QKVFormat), v: heads(a.V, a.QKVFormat),
	}
	if a.Bias != nil {
		c.bias = a.Bias.Float64s()
	}
	if a.AttentionMask != nil {
		c.hidden = a.AttentionMask.Float64s()
	}
	if a.BiasType == attentionops.ALiBi {
		c.slopes = alibiSlopes(a, d)
	}
	switch a.SoftmaxType {
	case attentionops.OffByOneSoftmax:
		c.offset = make([]float64, d.Heads)
	case attentionops.LearnableSoftmax:
		c.offset = a.SoftmaxOffset.Float64s()
	case attentionops.VanillaSoftmax:
	default:
		panic("BUG: attention: unknown type of softmax")
	}
	return c
}

// alibiSlopes returns the slope of each batch and head.
func alibiSlopes(a attentionops.FusedAttnFwdArgs, d attentionops.AttnDims) []float64 {
	var given []float64
	if a.AlibiSlopes != nil {
		given = a.AlibiSlopes.Float64s()
	} else {
		for _, s := range attentionops.DefaultAlibiSlopes(d.Heads) {
			given = append(given, float64(s))
		}
	}
	slopes := make([]float64, d.Batch*d.Heads)
	for i := range slopes {
		slopes[i] = given[i%len(given)]
	}
	return slopes
}

// fusedAttnFwd implements attention.FusedAttnFwd.
func fusedAttnFwd(a attentionops.FusedAttnFwdArgs) error {
	c := newAttention(a)
	o := zeroHeads(a.O, a.QKVFormat)
	stats, most := orAll(nil, a.Stats.NumElements(), math.Inf(-1)), orAll(nil, c.Heads, math.Inf(-1))
	c.eachQuery(func(r *row) {
		scores := r.scores()
		for _, s := range scores {
			most[r.head] = math.Max(most[r.head], s.value)
		}
		lse := c.logDenominator(scores, r.head)
		stats[r.stat] = lse
		for _, s := range scores {
			addScaled(o.at(r.batch, r.query, r.head), math.Exp(s.value-lse)*s.dropout, c.v.at(r.batch, s.key, r.group))
		}
	})
	if a.MaxLogit != nil {
		if err := a.MaxLogit.SetFloat64s(most); err != nil {
			return err
		}
	}
	if err := a.O.SetFloat64s(o.data); err != nil {
		return err
	}
	return a.Stats.SetFloat64s(stats)
}

// fusedAttnBwd implements attention.FusedAttnBwd.
func fusedAttnBwd(a attentionops.FusedAttnBwdArgs) error {
	c, format := newAttention(a.Fwd()), a.QKVFormat
	o, do := heads(a.O, format), heads(a.DO, format)
	dq, dk, dv := zeroHeads(a.DQ, format), zeroHeads(a.DK, format), zeroHeads(a.DV, format)
	dbias, doffset := make([]float64, len(c.bias)), make([]float64, c.Heads)
	stats := a.Stats.Float64s()
	c.eachQuery(func(r *row) {
		q, dout := c.q.at(r.batch, r.query, r.head), do.at(r.batch, r.query, r.head)
		mean := dot(dout, o.at(r.batch, r.query, r.head))
		for _, s := range r.scores() {
			p := math.Exp(s.value - stats[r.stat])
			if math.IsInf(stats[r.stat], 1) {
				p = math.NaN() // a score is infinite
			}
			ds := p * (s.dropout*dot(dout, c.v.at(r.batch, s.key, r.group)) - mean)
			addScaled(dv.at(r.batch, s.key, r.group), p*s.dropout, dout)
			dx := c.scale * s.slope * ds
			addScaled(dq.at(r.batch, r.query, r.head), dx, c.k.at(r.batch, s.key, r.group))
			addScaled(dk.at(r.batch, s.key, r.group), dx, q)
			switch a.BiasType {
			case attentionops.PreScaleBias:
				dbias[broadcast(a.Bias, r.batch, r.head, r.i, s.j)] += dx
			case attentionops.PostScaleBias:
				dbias[broadcast(a.Bias, r.batch, r.head, r.i, s.j)] += ds
			case attentionops.NoBias, attentionops.ALiBi:
			default:
				panic("BUG: attention: unknown type of bias")
			}
		}
		if a.SoftmaxType == attentionops.LearnableSoftmax {
			doffset[r.head] -= math.Exp(c.offset[r.head]-stats[r.stat]) * mean
		}
	})
	if a.DBias != nil {
		if err := a.DBias.SetFloat64s(dbias); err != nil {
			return err
		}
	}
	if a.DSoftmaxOffset != nil {
		if err := a.DSoftmaxOffset.SetFloat64s(doffset); err != nil {
			return err
		}
	}
	if err := a.DQ.SetFloat64s(dq.data); err != nil {
		return err
	}
	if err := a.DK.SetFloat64s(dk.data); err != nil {
		return err
	}
	return a.DV.SetFloat64s(dv.data)
}

// row holds the scores of one query and head.
type row struct {
	*attention
	attentionops.Sequence
	batch, head, group int
	i, query           int // the query's position in its sequence and its row
	diagonal           int // the key on its diagonal
	stat               int // index of its statistics
}

// eachQuery calls f for each query that belongs to a sequence, and each head.
func (c *attention) eachQuery(f func(*row)) {
	for b := range c.Batch {
		for h := range c.Heads {
			r := &row{attention: c, Sequence: c.Sequence(b), batch: b, head: h, group: h / (c.Heads / c.Groups)}
			for i := range r.LenQ {
				r.i, r.query, r.diagonal = i, r.FirstQ+i, i
				if c.BottomRight() {
					r.diagonal += r.LenKV - r.LenQ
				}
				r.stat = (b*c.Heads+h)*c.SeqQ + i
				if c.QKVFormat == attentionops.THD {
					r.stat = r.query*c.Heads + h
				}
				f(r)
			}
		}
	}
}

// score is the score of a key that the query sees.
type score struct {
	j, key         int // the key's position in its sequence and its row
	value, dropout float64
	slope          float64 // the derivative by the product, and by the bias before the scale, apart from the scale
}

func (r *row) scores() []score {
	q := r.q.at(r.batch, r.query, r.head)
	out := make([]score, 0, r.LenKV)
	for j := range r.LenKV {
		if !r.sees(j) {
			continue
		}
		s := score{j: j, key: r.FirstKV + j, dropout: r.dropout(j)}
		product := dot(q, r.k.at(r.batch, s.key, r.group))
		if r.BiasType == attentionops.PreScaleBias {
			product += r.bias[broadcast(r.Bias, r.batch, r.head, r.i, j)]
		}
		s.value, s.slope = capped(r.scale*product, r.Softcap)
		switch r.BiasType {
		case attentionops.PostScaleBias:
			s.value += r.bias[broadcast(r.Bias, r.batch, r.head, r.i, j)]
		case attentionops.ALiBi:
			s.value -= r.slopes[r.batch*r.Heads+r.head] * math.Abs(float64(j-r.diagonal))
		case attentionops.NoBias, attentionops.PreScaleBias:
		default:
			panic("BUG: attention: unknown type of bias")
		}
		out = append(out, s)
	}
	return out
}

func (r *row) sees(j int) bool {
	left, right := r.WindowSize.Bounds()
	switch {
	case r.AttnMaskType.Causal() && j > r.diagonal:
		return false
	case left >= 0 && j < r.diagonal-left, right >= 0 && j > r.diagonal+right:
		return false
	default:
		return r.AttentionMask == nil || r.hidden[broadcast(r.AttentionMask, r.batch, r.head, r.i, j)] == 0
	}
}

// dropout returns the factor of the probability of key j.
func (r *row) dropout(j int) float64 {
	if r.PDropout == 0 {
		return 1
	}
	n := ((uint64(r.batch)*uint64(r.Heads)+uint64(r.head))*uint64(r.SeqQ)+uint64(r.i))*uint64(r.SeqKV) + uint64(j)
	if float64(random.Bits(r.RNGSeed, r.RNGOffset, n)) < float64(r.PDropout)*0x1p32 {
		return 0
	}
	return 1 / (1 - float64(r.PDropout))
}

// logDenominator returns ln Z.
func (c *attention) logDenominator(scores []score, head int) float64 {
	x := make([]float64, len(scores), len(scores)+1)
	for i, s := range scores {
		x[i] = s.value
	}
	if len(c.offset) > 0 {
		x = append(x, c.offset[head])
	}
	return logSumExp(x)
}

// broadcast returns the index of an element of a tensor in which each axis has either full length
// or a length of 1.
func broadcast(t *tensor.Tensor, index ...int) int {
	at := 0
	for axis, n := range t.Shape() {
		at *= n
		if n > 1 {
			at += index[axis]
		}
	}
	return at
}

// headVectors is a query, key or value tensor by batch, row and head.
type headVectors struct {
	data               []float64
	batchStep, seqStep int // in tokens
	heads, size        int
}

func heads(t *tensor.Tensor, f attentionops.QKVFormat) headVectors {
	x := zeroHeads(t, f)
	x.data = t.Float64s()
	return x
}

func zeroHeads(t *tensor.Tensor, f attentionops.QKVFormat) headVectors {
	s := t.Shape()
	x := headVectors{data: make([]float64, t.NumElements()), heads: s[len(s)-2], size: s[len(s)-1]}
	switch f {
	case attentionops.SBHD:
		x.batchStep, x.seqStep = 1, s[1]
	case attentionops.THD:
		x.seqStep = 1
	default:
		x.batchStep, x.seqStep = s[1], 1
	}
	return x
}

func (x headVectors) at(b, s, h int) []float64 {
	i := ((b*x.batchStep+s*x.seqStep)*x.heads + h) * x.size
	return x.data[i : i+x.size]
}
