package ops

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/tensor"
)

// CopyToKVCacheArgs are the arguments of CopyToKVCache. The tensors have the sizes that
// TransformerEngine passes as arguments.
type CopyToKVCacheArgs struct {
	NewK         *tensor.Tensor // [b, s, g, d_k], or the order of QKVFormat
	NewV         *tensor.Tensor // [b, s, g, d_v]
	KCache       *tensor.Tensor // [pages, page_size, g, d_k]; not paged, [slots, s_max, g, d_k]
	VCache       *tensor.Tensor // [pages, page_size, g, d_v]; not paged, [slots, s_max, g, d_v]
	PageTable    *tensor.Tensor // i32 [b, pages of a sequence]; not paged, [b, 1]: the slots
	CuNewLens    *tensor.Tensor // i32 [b+1]: the new tokens of each sequence
	CuCachedLens *tensor.Tensor // i32 [b+1]: the tokens of each sequence, including the new ones
	QKVFormat    QKVFormat
	IsNonPaged   bool
}

// CopyToKVCache appends keys and values to the cache of each sequence. Of the l tokens of a
// sequence n are new; they become positions l−n … l−1. Position p is stored
//
//	paged:      in page page_table[b, ⌊p/page_size⌋], at p mod page_size
//	not paged:  in slot b, at p
//
// Without pages the slots are reordered first: slot b receives the l−n old tokens of slot
// page_table[b]. This is done for the sequences before the first one whose slot is lower than that
// of its predecessor. Their slots ascend; the following slots belong to no sequence.
//
// All other positions keep their content. The caches are updated, the other operands are read; all
// are disjoint. Tokens are copied bit for bit, in any dtype. A length beyond the capacity of a
// sequence and a page or slot that does not exist are argument errors. Source: TransformerEngine
// 2.14, copy_to_kv_cache.
var CopyToKVCache = opregistry.NewOp("copy_to_kv_cache", opregistry.Schema[CopyToKVCacheArgs]{
	Doc:      "appends keys and values to the caches of sequences",
	Validate: validateKVCache,
	Operands: func(a CopyToKVCacheArgs) []opregistry.Operand {
		return operands{}.read("new_k", a.NewK).read("new_v", a.NewV).read("page_table", a.PageTable).read("cu_new_lens", a.CuNewLens).
			read("cu_cached_lens", a.CuCachedLens).update("k_cache", a.KCache).update("v_cache", a.VCache)
	},
})

// Active returns how many sequences have a slot that is reordered.
func (a CopyToKVCacheArgs) Active() int {
	n := a.PageTable.Shape()[0]
	for b := 1; b < n; b++ {
		if a.page(b, 0) < a.page(b-1, 0) {
			return b
		}
	}
	return n
}

func (a *CopyToKVCacheArgs) page(b, i int) int {
	s := a.PageTable.Strides()
	return int(tensor.Data[int32](a.PageTable)[b*s[0]+i*s[1]])
}

func validateKVCache(a CopyToKVCacheArgs) error {
	c := check{op: "copy_to_kv_cache"}
	if a.QKVFormat < SBHD || a.QKVFormat > THD {
		c.fail("qkv_format", "sbhd, bshd or thd", "%v", a.QKVFormat)
	}
	c.rising("cu_new_lens", a.CuNewLens)
	c.rising("cu_cached_lens", a.CuCachedLens)
	if c.err != nil {
		return c.err
	}
	batch := a.CuNewLens.NumElements() - 1
	c.elements("cu_cached_lens", a.CuCachedLens, batch+1, "as cu_new_lens")
	c.cachePair(named{"new_k", a.NewK}, named{"k_cache", a.KCache}, &a, batch)
	c.cachePair(named{"new_v", a.NewV}, named{"v_cache", a.VCache}, &a, batch)
	if c.err == nil && (a.KCache.DType() != a.VCache.DType() || a.KCache.Shape()[0] != a.VCache.Shape()[0] || a.KCache.Shape()[1] != a.VCache.Shape()[1]) {
		c.fail("v_cache", "the dtype and the positions of k_cache", "%v", a.VCache)
	}
	if c.dtype("page_table", a.PageTable, tensor.I32) && c.rank("page_table", a.PageTable, 2) {
		if s := a.PageTable.Shape(); s[0] != batch || a.IsNonPaged && s[1] != 1 {
			c.fail("page_table", "a row for each of "+itoa(batch)+" sequences, of one element when not paged", "%v", a.PageTable)
		}
	}
	for b := 0; c.err == nil && b < batch; b++ {
		c.cached(&a, b)
	}
	if a.IsNonPaged && c.err == nil {
		c.slots(&a, batch)
	}
	c.apart([]named{{"k_cache", a.KCache}, {"v_cache", a.VCache}}, []named{
		{"new_k", a.NewK}, {"new_v", a.NewV}, {"page_table", a.PageTable}, {"cu_new_lens", a.CuNewLens}, {"cu_cached_lens", a.CuCachedLens},
	})
	return c.err
}

// cachePair checks new tokens and the cache that they are copied to.
func (c *check) cachePair(fresh, cache named, a *CopyToKVCacheArgs, batch int) {
	rank := 4
	if a.QKVFormat == THD {
		rank = 3
	}
	if !c.given(fresh.name, fresh.t) || !c.rank(fresh.name, fresh.t, rank) || !c.given(cache.name, cache.t) || !c.rank(cache.name, cache.t, 4) {
		return
	}
	c.sameDType(cache.name, cache.t, fresh.name, fresh.t)
	s, k := fresh.t.Shape(), cache.t.Shape()
	if s[rank-2] != k[2] || s[rank-1] != k[3] {
		c.fail(cache.name, "the heads of "+fresh.name, "%v", cache.t)
	}
	capacity := s[0]
	switch a.QKVFormat {
	case THD:
		if last := lastLength(a.CuNewLens); last > capacity {
			c.fail("cu_new_lens", "at most the "+itoa(capacity)+" tokens of "+fresh.name, "%d", last)
		}
		return
	case BSHD:
		capacity = s[1]
		if s[0] != batch {
			c.fail(fresh.name, "a batch of "+itoa(batch), "%v", fresh.t)
		}
	default:
		if s[1] != batch {
			c.fail(fresh.name, "a batch of "+itoa(batch), "%v", fresh.t)
		}
	}
	for b := 0; c.err == nil && b < batch; b++ {
		if n := element(a.CuNewLens, b+1) - element(a.CuNewLens, b); n > capacity {
			c.fail("cu_new_lens", "at most the "+itoa(capacity)+" positions of "+fresh.name, "%d", n)
		}
	}
}

// cached checks the lengths of a sequence and its pages.
func (c *check) cached(a *CopyToKVCacheArgs, b int) {
	fresh := element(a.CuNewLens, b+1) - element(a.CuNewLens, b)
	length := element(a.CuCachedLens, b+1) - element(a.CuCachedLens, b)
	pages, size := a.KCache.Shape()[0], a.KCache.Shape()[1]
	capacity := size
	if !a.IsNonPaged {
		capacity *= a.PageTable.Shape()[1]
	}
	if length < fresh || length > capacity {
		c.fail("cu_cached_lens", "at least the new tokens and at most the "+itoa(capacity)+" that fit in the cache", "%d for sequence %d", length, b)
		return
	}
	if a.IsNonPaged {
		if fresh > 0 && b >= pages {
			c.fail("k_cache", "a slot for each sequence", "%v", a.KCache)
		}
		return
	}
	if fresh == 0 {
		return
	}
	for i := (length - fresh) / size; i <= (length-1)/size; i++ {
		if p := a.page(b, i); p < 0 || p >= pages {
			c.fail("page_table", "pages in [0, "+itoa(pages)+")", "%d for sequence %d", p, b)
		}
	}
}

// slots checks that the slots of the active sequences ascend and exist.
func (c *check) slots(a *CopyToKVCacheArgs, batch int) {
	slots := a.KCache.Shape()[0]
	active := a.Active()
	for b := range batch {
		if p := a.page(b, 0); p < 0 || p >= slots {
			c.fail("page_table", "slots in [0, "+itoa(slots)+")", "%d for sequence %d", p, b)
		} else if b > 0 && b != active && p <= a.page(b-1, 0) {
			c.fail("page_table", "slots that rise and fall once at most", "%d for sequence %d", p, b)
		}
	}
}
