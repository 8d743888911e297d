package reference

import (
	"math"

	attentionops "github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// faPrepareFwd implements attention.FAPrepareFwd.
func faPrepareFwd(a attentionops.FAPrepareFwdArgs) error {
	h := a.QKVI.Shape()[3] / 3
	for p := range 3 {
		part, err := a.Output.Select(0, p)
		if err != nil {
			return err
		}
		if err := exchange(part, a.QKVI, p*h, h, false); err != nil {
			return err
		}
	}
	return nil
}

// faPrepareBwd implements attention.FAPrepareBwd.
func faPrepareBwd(a attentionops.FAPrepareBwdArgs) error {
	h := a.Q.Shape()[3]
	for p, part := range []*tensor.Tensor{a.Q, a.K, a.V} {
		if err := exchange(part, a.Output, p*h, h, true); err != nil {
			return err
		}
	}
	return nil
}

// exchange copies elements of the last axis of whole, [s, b, n, 3h], to part, [b, s, n, h], bit for
// bit; with back it copies in the other direction.
func exchange(part, whole *tensor.Tensor, first, n int, back bool) error {
	slice, err := whole.Slice(3, first, first+n)
	if err != nil {
		return err
	}
	if slice, err = slice.Transpose(0, 1); err != nil {
		return err
	}
	if back {
		return slice.CopyFrom(part)
	}
	return part.CopyFrom(slice)
}

// convertTHDToBSHD implements attention.ConvertTHDToBSHD.
func convertTHDToBSHD(a attentionops.ConvertTHDArgs) error {
	if err := a.Output.SetFloat64s(make([]float64, a.Output.NumElements())); err != nil {
		return err
	}
	return eachSequence(a.CuSeqlens, a.Output, func(row *tensor.Tensor, first, n int) error {
		return copyRange(row, 0, a.Tensor, first, n)
	})
}

// convertBSHDToTHD implements attention.ConvertBSHDToTHD.
func convertBSHDToTHD(a attentionops.ConvertTHDArgs) error {
	if err := a.Output.SetFloat64s(make([]float64, a.Output.NumElements())); err != nil {
		return err
	}
	return eachSequence(a.CuSeqlens, a.Tensor, func(row *tensor.Tensor, first, n int) error {
		return copyRange(a.Output, first, row, 0, n)
	})
}

// eachSequence calls f with each entry of the first axis, the start of its sequence in a packed
// tensor, and its length.
func eachSequence(cuSeqlens, rows *tensor.Tensor, f func(row *tensor.Tensor, first, n int) error) error {
	cu := indexes(cuSeqlens)
	for b := range len(cu) - 1 {
		row, err := rows.Select(0, b)
		if err != nil {
			return err
		}
		if err := f(row, cu[b], cu[b+1]-cu[b]); err != nil {
			return err
		}
	}
	return nil
}

// copyToKVCache implements attention.CopyToKVCache.
func copyToKVCache(a attentionops.CopyToKVCacheArgs) error {
	fresh, cached := indexes(a.CuNewLens), indexes(a.CuCachedLens)
	if a.IsNonPaged {
		for b := range a.Active() {
			old := cached[b+1] - cached[b] - (fresh[b+1] - fresh[b])
			slot := int(a.PageTable.At(b, 0)) // at least b: what is overwritten is not read later
			for _, cache := range []*tensor.Tensor{a.KCache, a.VCache} {
				if err := copyPositions(cache, b, 0, cache, slot, old); err != nil {
					return err
				}
			}
		}
	}
	for b := range len(fresh) - 1 {
		n, length := fresh[b+1]-fresh[b], cached[b+1]-cached[b]
		for i := range n {
			slot, at := b, length-n+i
			if size := a.KCache.Shape()[1]; !a.IsNonPaged {
				slot, at = int(a.PageTable.At(b, at/size)), at%size
			}
			for _, x := range [][2]*tensor.Tensor{{a.KCache, a.NewK}, {a.VCache, a.NewV}} {
				if err := copyToken(x[0], slot, at, x[1], a.QKVFormat, b, i, fresh[b]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyPositions copies n positions, from the first on, between two slots of caches.
func copyPositions(dst *tensor.Tensor, to, at int, src *tensor.Tensor, from, n int) error {
	x, err := src.Select(0, from)
	if err != nil {
		return err
	}
	y, err := dst.Select(0, to)
	if err != nil {
		return err
	}
	return copyRange(y, at, x, 0, n)
}

// copyToken copies token i of sequence b; in a packed tensor the sequence begins at first.
func copyToken(cache *tensor.Tensor, slot, at int, fresh *tensor.Tensor, f attentionops.QKVFormat, b, i, first int) error {
	if f == attentionops.THD {
		y, err := cache.Select(0, slot)
		if err != nil {
			return err
		}
		return copyRange(y, at, fresh, first+i, 1)
	}
	if f == attentionops.SBHD {
		var err error
		if fresh, err = fresh.Transpose(0, 1); err != nil {
			return err
		}
	}
	token, err := fresh.Slice(1, i, i+1)
	if err != nil {
		return err
	}
	return copyPositions(cache, slot, at, token, b, 1)
}

// gatedDeltaNetForward implements attention.GatedDeltaNetForward.
func gatedDeltaNetForward(a attentionops.GatedDeltaNetForwardArgs) error {
	shape, dv := a.Query.Shape(), a.Value.Shape()[3]
	batch, seq, n, dk := shape[0], shape[1], shape[2], shape[3]
	q, k, v := heads(a.Query, attentionops.BSHD), heads(a.Key, attentionops.BSHD), heads(a.Value, attentionops.BSHD)
	out := zeroHeads(a.Output, attentionops.BSHD)
	g, beta := a.G.Float64s(), a.Beta.Float64s()
	state := orAll(a.InitialState, batch*n*dk*dv, 0)
	for b := range batch {
		for h := range n {
			s := state[(b*n+h)*dk*dv : (b*n+h+1)*dk*dv]
			for i := range seq {
				query, key := q.at(b, i, h), k.at(b, i, h)
				if a.UseQKL2Norm {
					query, key = unit(query), unit(key)
				}
				at := (b*seq+i)*n + h
				for j := range s {
					s[j] *= math.Exp(g[at])
				}
				delta := append([]float64(nil), v.at(b, i, h)...)
				for j, x := range key {
					addScaled(delta, -x, s[j*dv:(j+1)*dv])
				}
				o := out.at(b, i, h)
				for j, x := range key {
					addScaled(s[j*dv:(j+1)*dv], beta[at]*x, delta)
					addScaled(o, query[j]/math.Sqrt(float64(dk)), s[j*dv:(j+1)*dv])
				}
			}
		}
	}
	if a.FinalState != nil {
		if err := a.FinalState.SetFloat64s(state); err != nil {
			return err
		}
	}
	return a.Output.SetFloat64s(out.data)
}

// unit returns a vector divided by its norm, which is at least 1e-6.
func unit(x []float64) []float64 {
	norm := max(math.Sqrt(dot(x, x)), 1e-6)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / norm
	}
	return out
}
