package attention

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// cacheCopy is one call of copyToKVCache; its items are the new tokens of all sequences.
type cacheCopy struct {
	host.Cut
	call           attention.CopyToKVCacheArgs
	fresh, lengths []int32
	table          []int32
	k, v           cachePair
}

// cachePair is the new keys, or values, and their cache.
type cachePair struct {
	fresh, cache host.Heads
	heads, d     int
}

var cacheCopyKernel = parallel.NewKernel((*cacheCopy).part)

// copyToKVCache implements attention.CopyToKVCache. The last axes of the operands are dense, the
// lengths and the table contiguous. Slots that change are moved before, one after the other.
func copyToKVCache(e *opregistry.Exec, a attention.CopyToKVCacheArgs) error {
	var v host.Views
	c := cacheCopy{
		call: a, fresh: v.Int32s("cu_new_lens", a.CuNewLens), lengths: v.Int32s("cu_cached_lens", a.CuCachedLens), table: v.Int32s("page_table", a.PageTable),
		k: cachePairOf(&v, [2]string{"new_k", "k_cache"}, a.NewK, a.KCache, a.QKVFormat), v: cachePairOf(&v, [2]string{"new_v", "v_cache"}, a.NewV, a.VCache, a.QKVFormat),
	}
	if v.Err != nil {
		return v.Err
	}
	if a.IsNonPaged {
		c.reorder()
	}
	c.Cut = host.CutItems(int(c.fresh[len(c.fresh)-1]-c.fresh[0]), c.k.heads*(c.k.d+c.v.d))
	cacheCopyKernel.Run(e.Pool(), c.Parts, c)
	return nil
}

func cachePairOf(v *host.Views, names [2]string, fresh, cache *tensor.Tensor, f attention.QKVFormat) cachePair {
	s := cache.Shape()
	return cachePair{fresh: v.Heads(names[0], fresh, f), cache: v.Heads(names[1], cache, attention.BSHD), heads: s[2], d: s[3]}
}

// reorder moves the old tokens of the sequences to their slots, in ascending order: what a move
// overwrites is not read by a later one.
func (c *cacheCopy) reorder() {
	for b := range c.call.Active() {
		from := int(c.table[b])
		if from == b {
			continue
		}
		old := int(c.lengths[b+1]-c.lengths[b]) - int(c.fresh[b+1]-c.fresh[b])
		for _, x := range [...]*cachePair{&c.k, &c.v} {
			x.copy(&x.cache, b, 0, &x.cache, from, 0, old)
		}
	}
}

func (c *cacheCopy) part(part int) {
	lo, hi := c.Bounds(part)
	first := 0 // token of a sequence
	for b := range len(c.fresh) - 1 {
		n := int(c.fresh[b+1] - c.fresh[b])
		if from, to := max(lo-first, 0), min(hi-first, n); from < to {
			c.append(b, from, to)
		}
		first += n
	}
}

// append copies some of the new tokens of a sequence.
func (c *cacheCopy) append(b, from, to int) {
	sequence, first := b, 0
	if c.call.QKVFormat == attention.THD {
		sequence, first = 0, int(c.fresh[b])
	}
	size := c.call.KCache.Shape()[1]
	old := int(c.lengths[b+1]-c.lengths[b]) - int(c.fresh[b+1]-c.fresh[b])
	for n := 0; from < to; from += n {
		slot, at := b, old+from
		n = to - from
		if !c.call.IsNonPaged {
			pages := len(c.table) / (len(c.fresh) - 1)
			slot, at = int(c.table[b*pages+at/size]), at%size
			n = min(n, size-at)
		}
		c.k.copy(&c.k.cache, slot, at, &c.k.fresh, sequence, first+from, n)
		c.v.copy(&c.v.cache, slot, at, &c.v.fresh, sequence, first+from, n)
	}
}

// copy copies the heads of n positions.
func (x *cachePair) copy(to *host.Heads, slot, at int, from *host.Heads, sequence, step, n int) {
	heads, d := x.heads, x.d
	if to.Head == d && from.Head == d {
		heads, d = 1, heads*d
		if to.Step == d && from.Step == d {
			n, d = min(n, 1), n*d
		}
	}
	for i := range n {
		for head := range heads {
			to.Take(slot, at+i, head, from, sequence, step+i, head, d)
		}
	}
}
