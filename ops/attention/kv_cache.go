package attention

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/internal/check"
	"github.com/primus-fl/primus/tensor"
)

// CopyToKVCacheArgs are the arguments of CopyToKVCache. The tensors have the sizes that
// TransformerEngine passes as arguments.
type CopyToKVCacheArgs struct {
	NewK         *tensor.Tensor `op:"0 new_k read any"`
	NewV         *tensor.Tensor `op:"1 new_v read any"`
	KCache       *tensor.Tensor `op:"2 k_cache update =new_k [n p _ _] was=kcache"`
	VCache       *tensor.Tensor `op:"3 v_cache update =new_v [n p _ _] was=vcache"`
	PageTable    *tensor.Tensor `op:"4 page_table read i32 [_ _]"`
	CuNewLens    *tensor.Tensor `op:"5 cu_new_lens read i32"`
	CuCachedLens *tensor.Tensor `op:"6 cu_cached_lens read i32"`
	QKVFormat    QKVFormat      `op:"7 qkv_format"`
	IsNonPaged   bool           `op:"8 is_non_paged"`
}

// CopyToKVCache appends keys and values to the cache of each sequence.
var CopyToKVCache = opregistry.NewOp("copy_to_kv_cache", opregistry.Schema[CopyToKVCacheArgs]{
	Doc: "appends keys and values to the caches of sequences",
	Formula: `
		copy_to_kv_cache appends keys and values to the cache of each sequence. Of the l tokens of a
		sequence n are new; they become positions l−n … l−1. Position p is stored

		  paged:      in page page_table[b, ⌊p/page_size⌋], at p mod page_size
		  not paged:  in slot b, at p

		Without pages the slots are reordered first: slot b receives the l−n old tokens of slot
		page_table[b]. This is done for the sequences before the first one whose slot is lower than
		that of its predecessor. Their slots ascend; the following slots belong to no sequence.

		All other positions keep their content. Tokens are copied bit for bit, in any dtype. A
		length beyond the capacity of a sequence and a page or slot that does not exist are argument
		errors. Source: TransformerEngine 2.14, copy_to_kv_cache.

		Arguments:

		  new_k           [b, s, g, d_k], or the order of qkv_format
		  new_v           [b, s, g, d_v]
		  k_cache         [pages, page_size, g, d_k]; not paged, [slots, s_max, g, d_k]
		  v_cache         [pages, page_size, g, d_v]; not paged, [slots, s_max, g, d_v]
		  page_table      [b, pages of a sequence]; not paged, [b, 1]: the slots
		  cu_new_lens     [b+1]: the new tokens of each sequence
		  cu_cached_lens  [b+1]: the tokens of each sequence, including the new ones

		Example:

		  new_k=[[[[5]]]] new_v=[[[[6]]]] k_cache=[[[[1]] [[2]] [[0]]]] v_cache=[[[[3]] [[4]]
		    [[0]]]] page_table=i32[[0]] cu_new_lens=i32[0 1] cu_cached_lens=i32[0 3] qkv_format=bshd
		    is_non_paged=1 → k_cache=[[[[1]] [[2]] [[5]]]] v_cache=[[[[3]] [[4]] [[6]]]]
	`,
	Tolerance: opregistry.Exact("a copy"),
	Check:     checkKVCache,
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
	t := check.Host(a.PageTable)
	s := t.Strides()
	return int(tensor.Data[int32](t)[b*s[0]+i*s[1]])
}

func checkKVCache(c *opregistry.Check, a *CopyToKVCacheArgs) {
	if a.QKVFormat < SBHD || a.QKVFormat > THD {
		c.Fail("qkv_format", "sbhd, bshd or thd", "%v", a.QKVFormat)
	}
	rising(c, "cu_new_lens", a.CuNewLens)
	rising(c, "cu_cached_lens", a.CuCachedLens)
	if !c.OK() {
		return
	}
	batch := a.CuNewLens.NumElements() - 1
	c.Elements("cu_cached_lens", a.CuCachedLens, batch+1, "as cu_new_lens")
	cachePair(c, check.Named{Name: "new_k", Tensor: a.NewK}, check.Named{Name: "k_cache", Tensor: a.KCache}, a, batch)
	cachePair(c, check.Named{Name: "new_v", Tensor: a.NewV}, check.Named{Name: "v_cache", Tensor: a.VCache}, a, batch)
	c.SameDType("v_cache", a.VCache, "k_cache", a.KCache)
	if c.OK() {
		if s := a.PageTable.Shape(); s[0] != batch || a.IsNonPaged && s[1] != 1 {
			c.Fail("page_table", "a row for each of "+check.Itoa(batch)+" sequences, of one element when not paged", "%v", a.PageTable)
		}
	}
	for b := 0; c.OK() && b < batch; b++ {
		cached(c, a, b)
	}
	if a.IsNonPaged && c.OK() {
		slots(c, a, batch)
	}
}

// cachePair checks new tokens and the cache that they are copied to.
func cachePair(c *opregistry.Check, fresh, cache check.Named, a *CopyToKVCacheArgs, batch int) {
	rank := 4
	if a.QKVFormat == THD {
		rank = 3
	}
	if !c.Rank(fresh.Name, fresh.Tensor, rank) {
		return
	}
	s, k := fresh.Tensor.Shape(), cache.Tensor.Shape()
	if s[rank-2] != k[2] || s[rank-1] != k[3] {
		c.Fail(cache.Name, "the heads of "+fresh.Name, "%v", cache.Tensor)
	}
	capacity := s[0]
	switch a.QKVFormat {
	case THD:
		if last := lastLength(a.CuNewLens); last > capacity {
			c.Fail("cu_new_lens", "at most the "+check.Itoa(capacity)+" tokens of "+fresh.Name, "%d", last)
		}
		return
	case BSHD:
		capacity = s[1]
		if s[0] != batch {
			c.Fail(fresh.Name, "a batch of "+check.Itoa(batch), "%v", fresh.Tensor)
		}
	default:
		if s[1] != batch {
			c.Fail(fresh.Name, "a batch of "+check.Itoa(batch), "%v", fresh.Tensor)
		}
	}
	for b := 0; c.OK() && b < batch; b++ {
		if n := check.Element(a.CuNewLens, b+1) - check.Element(a.CuNewLens, b); n > capacity {
			c.Fail("cu_new_lens", "at most the "+check.Itoa(capacity)+" positions of "+fresh.Name, "%d", n)
		}
	}
}

// cached checks the lengths of a sequence and its pages.
func cached(c *opregistry.Check, a *CopyToKVCacheArgs, b int) {
	fresh := check.Element(a.CuNewLens, b+1) - check.Element(a.CuNewLens, b)
	length := check.Element(a.CuCachedLens, b+1) - check.Element(a.CuCachedLens, b)
	pages, size := a.KCache.Shape()[0], a.KCache.Shape()[1]
	capacity := size
	if !a.IsNonPaged {
		capacity *= a.PageTable.Shape()[1]
	}
	if length < fresh || length > capacity {
		c.Fail("cu_cached_lens", "at least the new tokens and at most the "+check.Itoa(capacity)+" that fit in the cache", "%d for sequence %d", length, b)
		return
	}
	if a.IsNonPaged {
		if fresh > 0 && b >= pages {
			c.Fail("k_cache", "a slot for each sequence", "%v", a.KCache)
		}
		return
	}
	if fresh == 0 {
		return
	}
	for i := (length - fresh) / size; i <= (length-1)/size; i++ {
		if p := a.page(b, i); p < 0 || p >= pages {
			c.Fail("page_table", "pages in [0, "+check.Itoa(pages)+")", "%d for sequence %d", p, b)
		}
	}
}

// slots checks that the slots of the active sequences ascend and exist.
func slots(c *opregistry.Check, a *CopyToKVCacheArgs, batch int) {
	slots := a.KCache.Shape()[0]
	active := a.Active()
	for b := range batch {
		if p := a.page(b, 0); p < 0 || p >= slots {
			c.Fail("page_table", "slots in [0, "+check.Itoa(slots)+")", "%d for sequence %d", p, b)
		} else if b > 0 && b != active && p <= a.page(b-1, 0) {
			c.Fail("page_table", "slots that rise and fall once at most", "%d for sequence %d", p, b)
		}
	}
}
