package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestFAPrepare(t *testing.T) {
	type args = ops.FAPrepareFwdArgs
	good := func() args { return args{QKVI: f32(5, 2, 3, 12), Output: f32(3, 2, 5, 3, 4)} }
	testValidation(t, ops.FAPrepareFwd, good, []refusal[args]{
		{"no qkvi", func(a *args) { a.QKVI = nil }, "qkvi", "a tensor"},
		{"axes of qkvi", func(a *args) { a.QKVI = f32(5, 2, 36) }, "qkvi", "4 axes"},
		{"not three parts", func(a *args) { a.QKVI = f32(5, 2, 3, 13) }, "qkvi", "a multiple of 3"},
		{"no output", func(a *args) { a.Output = nil }, "output", "a tensor"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.BF16, 3, 2, 5, 3, 4) }, "output", "the dtype of qkvi"},
		{"shape of output", func(a *args) { a.Output = f32(3, 5, 2, 3, 4) }, "output", "[3 2 5 3 4]"},
		{"in place", func(a *args) { a.Output = view(a.QKVI, 3, 2, 5, 3, 4) }, "output", "memory apart from qkvi"},
	})
	testOperands(t, ops.FAPrepareFwd, good(), access{"qkvi": opregistry.AccessRead, "output": opregistry.AccessWrite})

	type back = ops.FAPrepareBwdArgs
	undo := func() back {
		return back{Q: f32(2, 5, 3, 4), K: f32(2, 5, 3, 4), V: f32(2, 5, 3, 4), Output: f32(5, 2, 3, 12)}
	}
	testValidation(t, ops.FAPrepareBwd, undo, []refusal[back]{
		{"no q", func(a *back) { a.Q = nil }, "q", "a tensor"},
		{"no v", func(a *back) { a.V = nil }, "v", "a tensor"},
		{"dtype of k", func(a *back) { a.K = of(tensor.F16, 2, 5, 3, 4) }, "k", "the dtype of q"},
		{"shape of v", func(a *back) { a.V = f32(2, 5, 3, 5) }, "v", "the shape of q"},
		{"shape of output", func(a *back) { a.Output = f32(2, 5, 3, 12) }, "output", "[5 2 3 12]"},
		{"output over k", func(a *back) { a.K = view(a.Output, 2, 5, 3, 4) }, "output", "memory apart from k"},
	})
	testOperands(t, ops.FAPrepareBwd, undo(), access{"q": opregistry.AccessRead, "k": opregistry.AccessRead, "v": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestConvertTHD(t *testing.T) {
	type args = ops.ConvertTHDArgs
	toRows := func() args { return args{Tensor: f32(9, 3, 4), CuSeqlens: i32(0, 5, 8), Output: f32(2, 6, 3, 4)} }
	testValidation(t, ops.ConvertTHDToBSHD, toRows, []refusal[args]{
		{"no tensor", func(a *args) { a.Tensor = nil }, "tensor", "a tensor"},
		{"axes of tensor", func(a *args) { a.Tensor = f32(1, 9, 3, 4) }, "tensor", "3 axes"},
		{"axes of output", func(a *args) { a.Output = f32(12, 3, 4) }, "output", "4 axes"},
		{"dtype of output", func(a *args) { a.Output = of(tensor.I32, 2, 6, 3, 4) }, "output", "the dtype of tensor"},
		{"heads of output", func(a *args) { a.Output = f32(2, 6, 4, 3) }, "output", "the heads of tensor"},
		{"no lengths", func(a *args) { a.CuSeqlens = nil }, "cu_seqlens", "a tensor"},
		{"batch", func(a *args) { a.CuSeqlens = i32(0, 5) }, "cu_seqlens", "3 elements"},
		{"too many tokens", func(a *args) { a.CuSeqlens = i32(0, 5, 10) }, "cu_seqlens", "at most the 9 tokens of tensor"},
		{"too long", func(a *args) { a.CuSeqlens = i32(0, 7, 8) }, "cu_seqlens", "at most the 6 positions of output"},
		{"output over tensor", func(a *args) { a.Tensor = view(a.Output, 9, 3, 4) }, "output", "memory apart from tensor"},
	})
	pack := func() args {
		a := toRows()
		a.Tensor, a.Output = a.Output, a.Tensor
		return a
	}
	testValidation(t, ops.ConvertBSHDToTHD, pack, []refusal[args]{
		{"axes of output", func(a *args) { a.Output = f32(1, 9, 3, 4) }, "output", "3 axes"},
		{"too many tokens", func(a *args) { a.CuSeqlens = i32(0, 5, 10) }, "cu_seqlens", "at most the 9 tokens of output"},
		{"too long", func(a *args) { a.CuSeqlens = i32(0, 7, 8) }, "cu_seqlens", "at most the 6 positions of tensor"},
	})
	testOperands(t, ops.ConvertTHDToBSHD, toRows(), access{"tensor": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestCopyToKVCache(t *testing.T) {
	type args = ops.CopyToKVCacheArgs
	table := func(cols int, v ...int32) *tensor.Tensor {
		x, err := i32(v...).Reshape(len(v)/cols, cols)
		if err != nil {
			panic(err)
		}
		return x
	}
	paged := func() args {
		return args{
			NewK: f32(2, 3, 2, 4), NewV: f32(2, 3, 2, 5), KCache: f32(6, 4, 2, 4), VCache: f32(6, 4, 2, 5), PageTable: table(2, 5, 0, 1, -1),
			CuNewLens: i32(0, 3, 4), CuCachedLens: i32(0, 6, 7), QKVFormat: ops.BSHD,
		}
	}
	testValidation(t, ops.CopyToKVCache, paged, []refusal[args]{
		{"no format", func(a *args) { a.QKVFormat = 0 }, "qkv_format", "sbhd, bshd or thd"},
		{"no new lengths", func(a *args) { a.CuNewLens = nil }, "cu_new_lens", "a tensor"},
		{"falling lengths", func(a *args) { a.CuCachedLens = i32(0, 6, 5) }, "cu_cached_lens", "values that do not fall"},
		{"other batch", func(a *args) { a.CuCachedLens = i32(0, 6) }, "cu_cached_lens", "3 elements"},
		{"no new_k", func(a *args) { a.NewK = nil }, "new_k", "a tensor"},
		{"axes of new_v", func(a *args) { a.NewV = f32(6, 2, 5) }, "new_v", "4 axes"},
		{"batch of new_v", func(a *args) { a.NewV = f32(3, 3, 2, 5) }, "new_v", "a batch of 2"},
		{"dtype of the cache", func(a *args) { a.KCache = of(tensor.BF16, 6, 4, 2, 4) }, "k_cache", "the dtype of new_k"},
		{"heads of the cache", func(a *args) { a.VCache = f32(6, 4, 2, 4) }, "v_cache", "the heads of new_v"},
		{"pages of v_cache", func(a *args) { a.VCache = f32(5, 4, 2, 5) }, "v_cache", "the positions of k_cache"},
		{"too many new tokens", func(a *args) { a.CuNewLens = i32(0, 4, 4) }, "cu_new_lens", "at most the 3 positions of new_k"},
		{"fewer than the new tokens", func(a *args) { a.CuCachedLens = i32(0, 2, 3) }, "cu_cached_lens", "at least the new tokens"},
		{"beyond the pages", func(a *args) { a.CuCachedLens = i32(0, 9, 10) }, "cu_cached_lens", "at most the 8 that fit in the cache"},
		{"rows of page_table", func(a *args) { a.PageTable = table(2, 5, 0) }, "page_table", "a row for each of 2 sequences"},
		{"dtype of page_table", func(a *args) { a.PageTable = of(tensor.I64, 2, 2) }, "page_table", "dtype i32"},
		{"page too large", func(a *args) { a.PageTable = table(2, 5, 6, 1, -1) }, "page_table", "pages in [0, 6)"},
		{"page that is used", func(a *args) { a.CuCachedLens = i32(0, 6, 11) }, "page_table", "pages in [0, 6)"},
		{"caches are one", func(a *args) { a.NewV, a.VCache = f32(2, 3, 2, 4), a.KCache }, "k_cache", "memory apart from v_cache"},
		{"new_k in the cache", func(a *args) { a.NewK = view(a.KCache, 2, 3, 2, 4) }, "k_cache", "memory apart from new_k"},
	})
	testAccepted(t, ops.CopyToKVCache, paged, map[string]func(a *args){
		"sbhd": func(a *args) { a.QKVFormat, a.NewK, a.NewV = ops.SBHD, f32(3, 2, 2, 4), f32(3, 2, 2, 5) },
		"thd":  func(a *args) { a.QKVFormat, a.NewK, a.NewV = ops.THD, f32(4, 2, 4), f32(5, 2, 5) },
	})
	testRefused(t, ops.CopyToKVCache, paged, refusal[args]{"tokens of thd", func(a *args) {
		a.QKVFormat, a.NewK, a.NewV = ops.THD, f32(3, 2, 4), f32(4, 2, 5)
	}, "cu_new_lens", "at most the 3 tokens of new_k"})
	testRefused(t, ops.CopyToKVCache, paged, refusal[args]{"batch of sbhd", func(a *args) {
		a.QKVFormat, a.NewK = ops.SBHD, f32(3, 3, 2, 4)
	}, "new_k", "a batch of 2"})
	testOperands(t, ops.CopyToKVCache, paged(), access{
		"new_k": opregistry.AccessRead, "new_v": opregistry.AccessRead, "page_table": opregistry.AccessRead, "cu_new_lens": opregistry.AccessRead,
		"cu_cached_lens": opregistry.AccessRead, "k_cache": opregistry.AccessUpdate, "v_cache": opregistry.AccessUpdate,
	})

	slots := func() args {
		a := paged()
		a.IsNonPaged, a.KCache, a.VCache, a.PageTable = true, f32(3, 8, 2, 4), f32(3, 8, 2, 5), table(1, 0, 2)
		return a
	}
	testValidation(t, ops.CopyToKVCache, slots, []refusal[args]{
		{"columns of page_table", func(a *args) { a.PageTable = table(2, 0, 1, 2, 2) }, "page_table", "of one element when not paged"},
		{"beyond the slot", func(a *args) { a.CuCachedLens = i32(0, 9, 10) }, "cu_cached_lens", "at most the 8 that fit in the cache"},
		{"slot too large", func(a *args) { a.PageTable = table(1, 0, 3) }, "page_table", "slots in [0, 3)"},
		{"slot twice", func(a *args) { a.PageTable = table(1, 2, 2) }, "page_table", "slots that rise"},
		{"no slot", func(a *args) { a.KCache, a.VCache, a.PageTable = f32(1, 8, 2, 4), f32(1, 8, 2, 5), table(1, 0, 0) }, "k_cache", "a slot for each sequence"},
	})
	testAccepted(t, ops.CopyToKVCache, slots, map[string]func(a *args){"slots fall once": func(a *args) { a.PageTable = table(1, 2, 0) }})
}

func TestGatedDeltaNetForward(t *testing.T) {
	type args = ops.GatedDeltaNetForwardArgs
	good := func() args {
		return args{
			Query: f32(2, 5, 3, 4), Key: f32(2, 5, 3, 4), Value: f32(2, 5, 3, 6), G: f32(2, 5, 3), Beta: of(tensor.BF16, 2, 5, 3),
			InitialState: f32(2, 3, 4, 6), Output: f32(2, 5, 3, 6), FinalState: of(tensor.F64, 2, 3, 4, 6),
		}
	}
	testValidation(t, ops.GatedDeltaNetForward, good, []refusal[args]{
		{"no query", func(a *args) { a.Query = nil }, "query", "a tensor"},
		{"axes of value", func(a *args) { a.Value = f32(2, 5, 18) }, "value", "4 axes"},
		{"shape of key", func(a *args) { a.Key = f32(2, 5, 3, 5) }, "key", "the shape of query"},
		{"dtype of value", func(a *args) { a.Value = of(tensor.F16, 2, 5, 3, 6) }, "value", "the dtype of query"},
		{"heads of value", func(a *args) { a.Value = f32(2, 5, 2, 6) }, "value", "[2 5 3 6]"},
		{"shape of g", func(a *args) { a.G = f32(2, 3, 5) }, "g", "[2 5 3]"},
		{"dtype of beta", func(a *args) { a.Beta = of(tensor.I32, 2, 5, 3) }, "beta", "dtype f32"},
		{"shape of output", func(a *args) { a.Output = f32(2, 5, 3, 4) }, "output", "the shape of value"},
		{"shape of initial_state", func(a *args) { a.InitialState = f32(2, 3, 6, 4) }, "initial_state", "[2 3 4 6]"},
		{"shape of final_state", func(a *args) { a.FinalState = f32(2, 3, 4) }, "final_state", "[2 3 4 6]"},
		{"states are one", func(a *args) { a.FinalState = a.InitialState }, "final_state", "memory apart from initial_state"},
		{"output is value", func(a *args) { a.Output = a.Value }, "output", "memory apart from value"},
	})
	testAccepted(t, ops.GatedDeltaNetForward, good, map[string]func(a *args){"no states": func(a *args) { a.InitialState, a.FinalState = nil, nil }})
	testOperands(t, ops.GatedDeltaNetForward, good(), access{
		"query": opregistry.AccessRead, "key": opregistry.AccessRead, "value": opregistry.AccessRead, "g": opregistry.AccessRead, "beta": opregistry.AccessRead,
		"initial_state": opregistry.AccessRead, "output": opregistry.AccessWrite, "final_state": opregistry.AccessWrite,
	})
}
