package reference

import (
	"math"

	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

// fusedAttnFwd follows ops.FusedAttnFwd.
func fusedAttnFwd(a ops.FusedAttnFwdArgs) error {
	d := a.Dims()
	q, k, v := heads(a.Q, a.QKVFormat), heads(a.K, a.QKVFormat), heads(a.V, a.QKVFormat)
	o := zeroHeads(a.O, a.QKVFormat)
	stats := make([]float64, d.Batch*d.Heads*d.SeqQ)
	scores := make([]float64, d.SeqKV)
	for b := range d.Batch {
		for h := range d.Heads {
			g := h / (d.Heads / d.Groups)
			for i := range d.SeqQ {
				seen := scores[:keysSeen(a.AttnMaskType, i, d)]
				for j := range seen {
					seen[j] = attnScale(a, d) * dot(q.at(b, i, h), k.at(b, j, g))
				}
				lse := logSumExp(seen)
				stats[(b*d.Heads+h)*d.SeqQ+i] = lse
				for j, s := range seen {
					addScaled(o.at(b, i, h), math.Exp(s-lse), v.at(b, j, g))
				}
			}
		}
	}
	if err := a.O.SetFloat64s(o.data); err != nil {
		return err
	}
	return a.Stats.SetFloat64s(stats)
}

// fusedAttnBwd follows ops.FusedAttnBwd.
func fusedAttnBwd(a ops.FusedAttnBwdArgs) error {
	fwd, format := a.Fwd(), a.QKVFormat
	d, scale := fwd.Dims(), attnScale(fwd, fwd.Dims())
	q, k, v, o, do := heads(a.Q, format), heads(a.K, format), heads(a.V, format), heads(a.O, format), heads(a.DO, format)
	dq, dk, dv := zeroHeads(a.DQ, format), zeroHeads(a.DK, format), zeroHeads(a.DV, format)
	stats := a.Stats.Float64s()
	for b := range d.Batch {
		for h := range d.Heads {
			g := h / (d.Heads / d.Groups)
			for i := range d.SeqQ {
				mean := dot(do.at(b, i, h), o.at(b, i, h))
				for j := range keysSeen(a.AttnMaskType, i, d) {
					p := math.Exp(scale*dot(q.at(b, i, h), k.at(b, j, g)) - stats[(b*d.Heads+h)*d.SeqQ+i])
					ds := p * (dot(do.at(b, i, h), v.at(b, j, g)) - mean)
					addScaled(dv.at(b, j, g), p, do.at(b, i, h))
					addScaled(dq.at(b, i, h), scale*ds, k.at(b, j, g))
					addScaled(dk.at(b, j, g), scale*ds, q.at(b, i, h))
				}
			}
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

// keysSeen returns how many keys, from the first, query i sees.
func keysSeen(mask ops.MaskType, i int, d ops.AttnDims) int {
	switch mask {
	case ops.CausalMask:
		return min(i+1, d.SeqKV)
	case ops.CausalBottomRightMask:
		return max(0, i+d.SeqKV-d.SeqQ+1)
	default:
		return d.SeqKV
	}
}

func attnScale(a ops.FusedAttnFwdArgs, d ops.AttnDims) float64 {
	return float64(a.AttnScale.Or(float32(1 / math.Sqrt(float64(d.DimQK)))))
}

// headVectors is a query, key or value tensor by batch, position and head.
type headVectors struct {
	data                    []float64
	batch, seq, heads, size int
	seqFirst                bool
}

func heads(t *tensor.Tensor, f ops.QKVFormat) headVectors {
	x := zeroHeads(t, f)
	x.data = t.Float64s()
	return x
}

func zeroHeads(t *tensor.Tensor, f ops.QKVFormat) headVectors {
	s := t.Shape()
	x := headVectors{data: make([]float64, t.NumElements()), batch: s[0], seq: s[1], heads: s[2], size: s[3]}
	if f == ops.SBHD {
		x.batch, x.seq, x.seqFirst = s[1], s[0], true
	}
	return x
}

func (x headVectors) at(b, s, h int) []float64 {
	token := b*x.seq + s
	if x.seqFirst {
		token = s*x.batch + b
	}
	i := (token*x.heads + h) * x.size
	return x.data[i : i+x.size]
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func addScaled(y []float64, f float64, x []float64) {
	for i, v := range x {
		y[i] += f * v
	}
}

// logSumExp returns ln Σ exp(x), −Inf for no element.
func logSumExp(x []float64) float64 {
	most := largest(x)
	if math.IsInf(most, 0) {
		return most
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - most)
	}
	return most + math.Log(sum)
}
