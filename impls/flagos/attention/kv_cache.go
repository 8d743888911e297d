package attention

import (
	"github.com/primus-fl/primus/impls/flagos/internal/host"
	"github.com/primus-fl/primus/internal/parallel"
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/tensor"
)

// cacheCopy is one call of copyToKVCache; each part copies the new tokens of one sequence.
type cacheCopy struct {
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
// lengths and the table contiguous. A part copies the new tokens of a sequence; slots that change
// are moved before, one after the other.
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
	cacheCopyKernel.Run(e.Pool(), len(c.fresh)-1, c)
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
		for i := range int(c.lengths[b+1]-c.lengths[b]) - int(c.fresh[b+1]-c.fresh[b]) {
			for _, x := range [...]*cachePair{&c.k, &c.v} {
				x.copy(&x.cache, b, i, &x.cache, from, i)
			}
		}
	}
}

func (c *cacheCopy) part(b int) {
	n, length := int(c.fresh[b+1]-c.fresh[b]), int(c.lengths[b+1]-c.lengths[b])
	sequence, first := b, 0
	if c.call.QKVFormat == attention.THD {
		sequence, first = 0, int(c.fresh[b])
	}
	size := c.call.KCache.Shape()[1]
	for i := range n {
		slot, at := b, length-n+i
		if !c.call.IsNonPaged {
			pages := len(c.table) / (len(c.fresh) - 1)
			slot, at = int(c.table[b*pages+at/size]), at%size
		}
		c.k.copy(&c.k.cache, slot, at, &c.k.fresh, sequence, first+i)
		c.v.copy(&c.v.cache, slot, at, &c.v.fresh, sequence, first+i)
	}
}

// copy copies the heads of one position.
func (x *cachePair) copy(to *host.Heads, slot, at int, from *host.Heads, sequence, step int) {
	for head := range x.heads {
		to.Take(slot, at, head, from, sequence, step, head, x.d)
	}
}
