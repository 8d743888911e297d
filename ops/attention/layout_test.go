package attention_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

func TestFAPrepare(t *testing.T) {
	type args = attention.FAPrepareFwdArgs
	good := func() args { return args{QKVI: checktest.F32(5, 2, 3, 12), Output: checktest.F32(3, 2, 5, 3, 4)} }
	checktest.Validation(t, attention.FAPrepareFwd, good, []checktest.Refusal[args]{
		{Name: "no qkvi", Edit: func(a *args) { a.QKVI = nil }, Operand: "qkvi", Want: "a tensor"},
		{Name: "axes of qkvi", Edit: func(a *args) { a.QKVI = checktest.F32(5, 2, 36) }, Operand: "qkvi", Want: "shape [s b n 3*h]"},
		{Name: "not three parts", Edit: func(a *args) { a.QKVI = checktest.F32(5, 2, 3, 13) }, Operand: "qkvi", Want: "as [s b n 3*h]"},
		{Name: "no output", Edit: func(a *args) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.BF16, 3, 2, 5, 3, 4) }, Operand: "output", Want: "the dtype of qkvi"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(3, 5, 2, 3, 4) }, Operand: "output", Want: "[3 2 5 3 4]"},
		{Name: "in place", Edit: func(a *args) { a.Output = checktest.View(a.QKVI, 3, 2, 5, 3, 4) }, Operand: "output", Want: "memory apart from qkvi"},
	})
	checktest.Operands(t, attention.FAPrepareFwd, good(), checktest.Access{"qkvi": opregistry.AccessRead, "output": opregistry.AccessWrite})

	type back = attention.FAPrepareBwdArgs
	undo := func() back {
		return back{Q: checktest.F32(2, 5, 3, 4), K: checktest.F32(2, 5, 3, 4), V: checktest.F32(2, 5, 3, 4), Output: checktest.F32(5, 2, 3, 12)}
	}
	checktest.Validation(t, attention.FAPrepareBwd, undo, []checktest.Refusal[back]{
		{Name: "no q", Edit: func(a *back) { a.Q = nil }, Operand: "q", Want: "a tensor"},
		{Name: "no v", Edit: func(a *back) { a.V = nil }, Operand: "v", Want: "a tensor"},
		{Name: "dtype of k", Edit: func(a *back) { a.K = checktest.Zeros(tensor.F16, 2, 5, 3, 4) }, Operand: "k", Want: "the dtype of q"},
		{Name: "shape of v", Edit: func(a *back) { a.V = checktest.F32(2, 5, 3, 5) }, Operand: "v", Want: "the shape of q"},
		{Name: "shape of output", Edit: func(a *back) { a.Output = checktest.F32(2, 5, 3, 12) }, Operand: "output", Want: "[5 2 3 12]"},
		{Name: "output over k", Edit: func(a *back) { a.K = checktest.View(a.Output, 2, 5, 3, 4) }, Operand: "output", Want: "memory apart from k"},
	})
	checktest.Operands(t, attention.FAPrepareBwd, undo(), checktest.Access{"q": opregistry.AccessRead, "k": opregistry.AccessRead, "v": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestConvertTHD(t *testing.T) {
	type args = attention.ConvertTHDArgs
	toRows := func() args {
		return args{Tensor: checktest.F32(9, 3, 4), CuSeqlens: checktest.I32(0, 5, 8), Output: checktest.F32(2, 6, 3, 4)}
	}
	checktest.Validation(t, attention.ConvertTHDToBSHD, toRows, []checktest.Refusal[args]{
		{Name: "no tensor", Edit: func(a *args) { a.Tensor = nil }, Operand: "tensor", Want: "a tensor"},
		{Name: "axes of tensor", Edit: func(a *args) { a.Tensor = checktest.F32(1, 9, 3, 4) }, Operand: "tensor", Want: "shape [t h d]"},
		{Name: "axes of output", Edit: func(a *args) { a.Output = checktest.F32(12, 3, 4) }, Operand: "output", Want: "as [b s h d]"},
		{Name: "dtype of output", Edit: func(a *args) { a.Output = checktest.Zeros(tensor.I32, 2, 6, 3, 4) }, Operand: "output", Want: "the dtype of tensor"},
		{Name: "heads of output", Edit: func(a *args) { a.Output = checktest.F32(2, 6, 4, 3) }, Operand: "output", Want: "as [b s h d]"},
		{Name: "no lengths", Edit: func(a *args) { a.CuSeqlens = nil }, Operand: "cu_seqlens", Want: "a tensor"},
		{Name: "batch", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 5) }, Operand: "cu_seqlens", Want: "3 elements"},
		{Name: "too many tokens", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 5, 10) }, Operand: "cu_seqlens", Want: "at most the 9 tokens of tensor"},
		{Name: "too long", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 7, 8) }, Operand: "cu_seqlens", Want: "at most the 6 positions of output"},
		{Name: "output over tensor", Edit: func(a *args) { a.Tensor = checktest.View(a.Output, 9, 3, 4) }, Operand: "output", Want: "memory apart from tensor"},
	})
	pack := func() args {
		a := toRows()
		a.Tensor, a.Output = a.Output, a.Tensor
		return a
	}
	checktest.Validation(t, attention.ConvertBSHDToTHD, pack, []checktest.Refusal[args]{
		{Name: "axes of output", Edit: func(a *args) { a.Output = checktest.F32(1, 9, 3, 4) }, Operand: "output", Want: "as [t h d]"},
		{Name: "too many tokens", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 5, 10) }, Operand: "cu_seqlens", Want: "at most the 9 tokens of output"},
		{Name: "too long", Edit: func(a *args) { a.CuSeqlens = checktest.I32(0, 7, 8) }, Operand: "cu_seqlens", Want: "at most the 6 positions of tensor"},
	})
	checktest.Operands(t, attention.ConvertTHDToBSHD, toRows(), checktest.Access{"tensor": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func TestCopyToKVCache(t *testing.T) {
	type args = attention.CopyToKVCacheArgs
	table := func(cols int, v ...int32) *tensor.Tensor {
		x, err := checktest.I32(v...).Reshape(len(v)/cols, cols)
		if err != nil {
			panic(err)
		}
		return x
	}
	paged := func() args {
		return args{
			NewK: checktest.F32(2, 3, 2, 4), NewV: checktest.F32(2, 3, 2, 5), KCache: checktest.F32(6, 4, 2, 4), VCache: checktest.F32(6, 4, 2, 5), PageTable: table(2, 5, 0, 1, -1),
			CuNewLens: checktest.I32(0, 3, 4), CuCachedLens: checktest.I32(0, 6, 7), QKVFormat: attention.BSHD,
		}
	}
	checktest.Validation(t, attention.CopyToKVCache, paged, []checktest.Refusal[args]{
		{Name: "no format", Edit: func(a *args) { a.QKVFormat = 0 }, Operand: "qkv_format", Want: "sbhd, bshd or thd"},
		{Name: "no new lengths", Edit: func(a *args) { a.CuNewLens = nil }, Operand: "cu_new_lens", Want: "a tensor"},
		{Name: "falling lengths", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 6, 5) }, Operand: "cu_cached_lens", Want: "values that do not fall"},
		{Name: "other batch", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 6) }, Operand: "cu_cached_lens", Want: "3 elements"},
		{Name: "no new_k", Edit: func(a *args) { a.NewK = nil }, Operand: "new_k", Want: "a tensor"},
		{Name: "axes of new_v", Edit: func(a *args) { a.NewV = checktest.F32(6, 2, 5) }, Operand: "new_v", Want: "4 axes"},
		{Name: "batch of new_v", Edit: func(a *args) { a.NewV = checktest.F32(3, 3, 2, 5) }, Operand: "new_v", Want: "a batch of 2"},
		{Name: "dtype of the cache", Edit: func(a *args) { a.KCache = checktest.Zeros(tensor.BF16, 6, 4, 2, 4) }, Operand: "k_cache", Want: "the dtype of new_k"},
		{Name: "heads of the cache", Edit: func(a *args) { a.VCache = checktest.F32(6, 4, 2, 4) }, Operand: "v_cache", Want: "the heads of new_v"},
		{Name: "pages of v_cache", Edit: func(a *args) { a.VCache = checktest.F32(5, 4, 2, 5) }, Operand: "v_cache", Want: "shape [6 4 _ _], as [n p _ _]"},
		{Name: "too many new tokens", Edit: func(a *args) { a.CuNewLens = checktest.I32(0, 4, 4) }, Operand: "cu_new_lens", Want: "at most the 3 positions of new_k"},
		{Name: "fewer than the new tokens", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 2, 3) }, Operand: "cu_cached_lens", Want: "at least the new tokens"},
		{Name: "beyond the pages", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 9, 10) }, Operand: "cu_cached_lens", Want: "at most the 8 that fit in the cache"},
		{Name: "rows of page_table", Edit: func(a *args) { a.PageTable = table(2, 5, 0) }, Operand: "page_table", Want: "a row for each of 2 sequences"},
		{Name: "dtype of page_table", Edit: func(a *args) { a.PageTable = checktest.Zeros(tensor.I64, 2, 2) }, Operand: "page_table", Want: "dtype i32"},
		{Name: "page too large", Edit: func(a *args) { a.PageTable = table(2, 5, 6, 1, -1) }, Operand: "page_table", Want: "pages in [0, 6)"},
		{Name: "page that is used", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 6, 11) }, Operand: "page_table", Want: "pages in [0, 6)"},
		{Name: "caches are one", Edit: func(a *args) { a.NewV, a.VCache = checktest.F32(2, 3, 2, 4), a.KCache }, Operand: "v_cache", Want: "memory apart from k_cache"},
		{Name: "new_k in the cache", Edit: func(a *args) { a.NewK = checktest.View(a.KCache, 2, 3, 2, 4) }, Operand: "k_cache", Want: "memory apart from new_k"},
	})
	checktest.Accepted(t, attention.CopyToKVCache, paged, map[string]func(a *args){
		"sbhd": func(a *args) {
			a.QKVFormat, a.NewK, a.NewV = attention.SBHD, checktest.F32(3, 2, 2, 4), checktest.F32(3, 2, 2, 5)
		},
		"thd": func(a *args) {
			a.QKVFormat, a.NewK, a.NewV = attention.THD, checktest.F32(4, 2, 4), checktest.F32(5, 2, 5)
		},
	})
	checktest.Refused(t, attention.CopyToKVCache, paged, checktest.Refusal[args]{Name: "tokens of thd", Edit: func(a *args) {
		a.QKVFormat, a.NewK, a.NewV = attention.THD, checktest.F32(3, 2, 4), checktest.F32(4, 2, 5)
	}, Operand: "cu_new_lens", Want: "at most the 3 tokens of new_k"})
	checktest.Refused(t, attention.CopyToKVCache, paged, checktest.Refusal[args]{Name: "batch of sbhd", Edit: func(a *args) {
		a.QKVFormat, a.NewK = attention.SBHD, checktest.F32(3, 3, 2, 4)
	}, Operand: "new_k", Want: "a batch of 2"})
	checktest.Operands(t, attention.CopyToKVCache, paged(), checktest.Access{
		"new_k": opregistry.AccessRead, "new_v": opregistry.AccessRead, "page_table": opregistry.AccessRead, "cu_new_lens": opregistry.AccessRead,
		"cu_cached_lens": opregistry.AccessRead, "k_cache": opregistry.AccessUpdate, "v_cache": opregistry.AccessUpdate,
	})

	slots := func() args {
		a := paged()
		a.IsNonPaged, a.KCache, a.VCache, a.PageTable = true, checktest.F32(3, 8, 2, 4), checktest.F32(3, 8, 2, 5), table(1, 0, 2)
		return a
	}
	checktest.Validation(t, attention.CopyToKVCache, slots, []checktest.Refusal[args]{
		{Name: "columns of page_table", Edit: func(a *args) { a.PageTable = table(2, 0, 1, 2, 2) }, Operand: "page_table", Want: "of one element when not paged"},
		{Name: "beyond the slot", Edit: func(a *args) { a.CuCachedLens = checktest.I32(0, 9, 10) }, Operand: "cu_cached_lens", Want: "at most the 8 that fit in the cache"},
		{Name: "slot too large", Edit: func(a *args) { a.PageTable = table(1, 0, 3) }, Operand: "page_table", Want: "slots in [0, 3)"},
		{Name: "slot twice", Edit: func(a *args) { a.PageTable = table(1, 2, 2) }, Operand: "page_table", Want: "slots that rise"},
		{Name: "no slot", Edit: func(a *args) {
			a.KCache, a.VCache, a.PageTable = checktest.F32(1, 8, 2, 4), checktest.F32(1, 8, 2, 5), table(1, 0, 0)
		}, Operand: "k_cache", Want: "a slot for each sequence"},
	})
	checktest.Accepted(t, attention.CopyToKVCache, slots, map[string]func(a *args){"slots fall once": func(a *args) { a.PageTable = table(1, 2, 0) }})
}

func TestGatedDeltaNetForward(t *testing.T) {
	type args = attention.GatedDeltaNetForwardArgs
	good := func() args {
		return args{
			Query: checktest.F32(2, 5, 3, 4), Key: checktest.F32(2, 5, 3, 4), Value: checktest.F32(2, 5, 3, 6), G: checktest.F32(2, 5, 3), Beta: checktest.Zeros(tensor.BF16, 2, 5, 3),
			InitialState: checktest.F32(2, 3, 4, 6), Output: checktest.F32(2, 5, 3, 6), FinalState: checktest.Zeros(tensor.F64, 2, 3, 4, 6),
		}
	}
	checktest.Validation(t, attention.GatedDeltaNetForward, good, []checktest.Refusal[args]{
		{Name: "no query", Edit: func(a *args) { a.Query = nil }, Operand: "query", Want: "a tensor"},
		{Name: "axes of value", Edit: func(a *args) { a.Value = checktest.F32(2, 5, 18) }, Operand: "value", Want: "as [b s h dv]"},
		{Name: "shape of key", Edit: func(a *args) { a.Key = checktest.F32(2, 5, 3, 5) }, Operand: "key", Want: "the shape of query"},
		{Name: "dtype of value", Edit: func(a *args) { a.Value = checktest.Zeros(tensor.F16, 2, 5, 3, 6) }, Operand: "value", Want: "the dtype of query"},
		{Name: "heads of value", Edit: func(a *args) { a.Value = checktest.F32(2, 5, 2, 6) }, Operand: "value", Want: "as [b s h dv]"},
		{Name: "shape of g", Edit: func(a *args) { a.G = checktest.F32(2, 3, 5) }, Operand: "g", Want: "[2 5 3]"},
		{Name: "dtype of beta", Edit: func(a *args) { a.Beta = checktest.Zeros(tensor.I32, 2, 5, 3) }, Operand: "beta", Want: "dtype f32"},
		{Name: "shape of output", Edit: func(a *args) { a.Output = checktest.F32(2, 5, 3, 4) }, Operand: "output", Want: "the shape of value"},
		{Name: "shape of initial_state", Edit: func(a *args) { a.InitialState = checktest.F32(2, 3, 6, 4) }, Operand: "initial_state", Want: "[2 3 4 6]"},
		{Name: "shape of final_state", Edit: func(a *args) { a.FinalState = checktest.F32(2, 3, 4) }, Operand: "final_state", Want: "[2 3 4 6]"},
		{Name: "states are one", Edit: func(a *args) { a.FinalState = a.InitialState }, Operand: "final_state", Want: "memory apart from initial_state"},
		{Name: "output is value", Edit: func(a *args) { a.Output = a.Value }, Operand: "output", Want: "memory apart from value"},
	})
	checktest.Accepted(t, attention.GatedDeltaNetForward, good, map[string]func(a *args){"no states": func(a *args) { a.InitialState, a.FinalState = nil, nil }})
	checktest.Operands(t, attention.GatedDeltaNetForward, good(), checktest.Access{
		"query": opregistry.AccessRead, "key": opregistry.AccessRead, "value": opregistry.AccessRead, "g": opregistry.AccessRead, "beta": opregistry.AccessRead,
		"initial_state": opregistry.AccessRead, "output": opregistry.AccessWrite, "final_state": opregistry.AccessWrite,
	})
}
