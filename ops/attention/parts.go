package attention

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// plain reports whether a call can be cut into parts: no option depends on where in it an element
// lies, apart from a causal mask of as many queries as keys.
func (a *FusedAttnFwdArgs) plain() bool {
	o := &a.AttnOptions
	masked := a.AttnMaskType == NoMask || a.AttnMaskType == CausalMask && a.Dims().SeqQ == a.Dims().SeqKV
	return a.QKVFormat != THD && masked && o.WindowSize == (WindowSize{}) && o.BottomRightDiagonal == (opregistry.OptionalBool{}) &&
		o.BiasType == NoBias && o.SoftmaxType == VanillaSoftmax && o.PDropout == 0 &&
		a.MaxLogit == nil && len(a.Stats.Shape()) == 4
}

// work returns the multiplications of some queries and keys of one head.
func (d AttnDims) work(queries, keys int) float64 {
	return float64(queries) * float64(keys) * float64(d.DimQK+d.DimV)
}

// forwardParts cuts a call into queries of the heads that share keys.
func forwardParts(a *FusedAttnFwdArgs) opregistry.Parts[FusedAttnFwdArgs] {
	d := a.Dims()
	if !a.plain() {
		return opregistry.Parts[FusedAttnFwdArgs]{N: 1, Work: float64(d.Heads*max(1, d.Batch)) * d.work(d.SeqQ, d.SeqKV)}
	}
	return opregistry.Parts[FusedAttnFwdArgs]{
		N: d.Batch * d.Groups * d.SeqQ, Work: float64(d.Heads/d.Groups) * d.work(1, d.SeqKV),
		At: func(i int) (p opregistry.Part[FusedAttnFwdArgs], err error) {
			p.Args = *a
			c := cutter{format: a.QKVFormat, dims: d, batch: i / d.SeqQ / d.Groups, group: i / d.SeqQ % d.Groups}
			query, keys := i%d.SeqQ, d.SeqKV
			if a.AttnMaskType == CausalMask {
				keys, p.Args.AttnMaskType = query+1, NoMask
			}
			c.queries(query, query+1, &p.Args.Q, &p.Args.O)
			c.stats(query, query+1, &p.Args.Stats)
			c.keys(0, keys, &p.Args.K, &p.Args.V)
			return p, c.err
		},
	}
}

// backwardParts cuts a call into queries of the heads that share keys, for dQ, and into keys, for
// dK and dV.
func backwardParts(a *FusedAttnBwdArgs) opregistry.Parts[FusedAttnBwdArgs] {
	fwd := a.Fwd()
	d := fwd.Dims()
	const products = 5 // of the size of the scores, of which forward has 2
	if !fwd.plain() || a.DBias != nil || a.DSoftmaxOffset != nil {
		return opregistry.Parts[FusedAttnBwdArgs]{N: 1, Work: products / 2. * float64(d.Heads*max(1, d.Batch)) * d.work(d.SeqQ, d.SeqKV)}
	}
	each := d.SeqQ + d.SeqKV
	return opregistry.Parts[FusedAttnBwdArgs]{
		N: d.Batch * d.Groups * each, Work: products / 2. * float64(d.Heads/d.Groups) * d.work(1, max(d.SeqQ, d.SeqKV)),
		At: func(i int) (p opregistry.Part[FusedAttnBwdArgs], err error) {
			p.Args = *a
			c := cutter{format: a.QKVFormat, dims: d, batch: i / each / d.Groups, group: i / each % d.Groups}
			first, last, firstKey, lastKey := 0, d.SeqQ, 0, d.SeqKV
			causal := a.AttnMaskType == CausalMask
			if i %= each; i < d.SeqQ {
				p.Results = []string{"dQ"}
				first, last = i, i+1
				if causal {
					lastKey = i + 1
				}
			} else {
				p.Results = []string{"dK", "dV"}
				firstKey, lastKey = i-d.SeqQ, i-d.SeqQ+1
				if causal {
					first = firstKey
				}
			}
			p.Args.AttnMaskType = NoMask
			c.queries(first, last, &p.Args.Q, &p.Args.O, &p.Args.DO, &p.Args.DQ)
			c.stats(first, last, &p.Args.Stats)
			c.keys(firstKey, lastKey, &p.Args.K, &p.Args.V, &p.Args.DK, &p.Args.DV)
			return p, c.err
		},
	}
}

// cutter cuts operands to the heads of one batch entry that share keys.
type cutter struct {
	format       QKVFormat
	dims         AttnDims
	batch, group int
	err          error
}

func (c *cutter) slice(t **tensor.Tensor, axis, lo, hi int) {
	if c.err == nil {
		*t, c.err = (*t).Slice(axis, lo, hi)
	}
}

func (c *cutter) positions(lo, hi, heads int, operands []**tensor.Tensor) {
	batch, position := 0, 1
	if c.format == SBHD {
		batch, position = 1, 0
	}
	for _, t := range operands {
		c.slice(t, batch, c.batch, c.batch+1)
		c.slice(t, position, lo, hi)
		c.slice(t, 2, c.group*heads, (c.group+1)*heads)
	}
}

func (c *cutter) queries(lo, hi int, operands ...**tensor.Tensor) {
	c.positions(lo, hi, c.dims.Heads/c.dims.Groups, operands)
}

func (c *cutter) keys(lo, hi int, operands ...**tensor.Tensor) { c.positions(lo, hi, 1, operands) }

func (c *cutter) stats(lo, hi int, t **tensor.Tensor) {
	heads := c.dims.Heads / c.dims.Groups
	c.slice(t, 0, c.batch, c.batch+1)
	c.slice(t, 1, c.group*heads, (c.group+1)*heads)
	c.slice(t, 2, lo, hi)
}
