package rope_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

type qkvArgs = rope.FusedQKVRopeArgs

// goodQKV has two groups, each of three heads of queries and one head of keys and values.
func goodQKV() qkvArgs {
	return qkvArgs{
		QKV: checktest.F32(4, 3, 2, 20), QFreqs: checktest.F32(10, 1, 1, 4), KFreqs: checktest.F32(10, 1, 1, 2), StartPositions: checktest.I32(0, 2, 6),
		Q: checktest.F32(4, 3, 6, 4), K: checktest.F32(4, 3, 2, 4), V: checktest.F32(4, 3, 2, 4), QKVSplitArgList: []int{12, 4, 4}, QKVFormat: attention.SBHD,
	}
}

func TestFusedQKVRope(t *testing.T) {
	for _, tt := range []struct {
		op           *opregistry.Op[qkvArgs]
		qkv, q, k, v string
	}{
		{rope.FusedQKVRopeForward, "qkv", "q", "k", "v"},
		{rope.FusedQKVRopeBackward, "qkv", "q", "k", "v"},
	} {
		t.Run(tt.op.Name(), func(t *testing.T) {
			checktest.Validation(t, tt.op, goodQKV, []checktest.Refusal[qkvArgs]{
				{Name: "no qkv", Edit: func(a *qkvArgs) { a.QKV = nil }, Operand: tt.qkv, Want: "a tensor"},
				{Name: "dtype of qkv", Edit: func(a *qkvArgs) { a.QKV = checktest.Zeros(tensor.I32, 4, 3, 2, 20) }, Operand: tt.qkv, Want: "dtype f32, bf16, f16 or f64"},
				{Name: "axes of qkv", Edit: func(a *qkvArgs) { a.QKV = checktest.F32(12, 2, 20) }, Operand: tt.qkv, Want: "4 axes"},
				{Name: "last axis of qkv", Edit: func(a *qkvArgs) { a.QKV = checktest.F32(4, 3, 2, 24) }, Operand: tt.qkv, Want: "a last axis of 20 = 12 + 4 + 4"},
				{Name: "two parts", Edit: func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 8} }, Operand: "qkv_split_arg_list", Want: "[q, k, v]"},
				{Name: "four parts", Edit: func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 4, 4, 0} }, Operand: "qkv_split_arg_list", Want: "[q, k, v]"},
				{Name: "no split", Edit: func(a *qkvArgs) { a.QKVSplitArgList = nil }, Operand: "qkv_split_arg_list", Want: "k > 0"},
				{Name: "negative v", Edit: func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 4, -4} }, Operand: "qkv_split_arg_list", Want: "v >= 0"},
				{Name: "negative q", Edit: func(a *qkvArgs) { a.QKVSplitArgList = []int{-12, 4, 4} }, Operand: "qkv_split_arg_list", Want: "q a multiple of k"},
				{Name: "part of a head", Edit: func(a *qkvArgs) { a.QKVSplitArgList = []int{10, 4, 6} }, Operand: "qkv_split_arg_list", Want: "q a multiple of k"},
				{Name: "no format", Edit: func(a *qkvArgs) { a.QKVFormat = 0 }, Operand: "qkv_format", Want: "sbhd or bshd"},
				{Name: "thd", Edit: func(a *qkvArgs) { a.QKVFormat = attention.THD }, Operand: "qkv_format", Want: "sbhd or bshd"},
				{Name: "no q_freqs", Edit: func(a *qkvArgs) { a.QFreqs = nil }, Operand: "q_freqs", Want: "a tensor"},
				{Name: "no k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = nil }, Operand: "k_freqs", Want: "a tensor"},
				{Name: "dtype of q_freqs", Edit: func(a *qkvArgs) { a.QFreqs = checktest.Zeros(tensor.F64, 10, 4) }, Operand: "q_freqs", Want: "dtype f32"},
				{Name: "vector of k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = checktest.F32(40) }, Operand: "k_freqs", Want: "at least 2 axes"},
				{Name: "odd q_freqs", Edit: func(a *qkvArgs) { a.QFreqs = checktest.F32(10, 3) }, Operand: "q_freqs", Want: "an even last axis of at most 4"},
				{Name: "wide k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = checktest.F32(10, 6) }, Operand: "k_freqs", Want: "an even last axis of at most 4"},
				{Name: "short q_freqs", Edit: func(a *qkvArgs) { a.QFreqs = checktest.F32(9, 4) }, Operand: "q_freqs", Want: "at least 10 positions"},
				{Name: "short k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = checktest.F32(9, 4) }, Operand: "k_freqs", Want: "at least 10 positions"},
				{Name: "short for all ranks", Edit: func(a *qkvArgs) { a.CPSize = 3 }, Operand: "q_freqs", Want: "at least 12 positions"},
				{Name: "no q", Edit: func(a *qkvArgs) { a.Q = nil }, Operand: tt.q, Want: "a tensor"},
				{Name: "dtype of q", Edit: func(a *qkvArgs) { a.Q = checktest.Zeros(tensor.BF16, 4, 3, 6, 4) }, Operand: tt.q, Want: "the dtype of " + tt.qkv},
				{Name: "heads of q", Edit: func(a *qkvArgs) { a.Q = checktest.F32(4, 3, 2, 12) }, Operand: tt.q, Want: "[4 3 6 4]"},
				{Name: "no k", Edit: func(a *qkvArgs) { a.K = nil }, Operand: tt.k, Want: "a tensor"},
				{Name: "axes of k", Edit: func(a *qkvArgs) { a.K = checktest.F32(12, 2, 4) }, Operand: tt.k, Want: "[4 3 2 4]"},
				{Name: "no v", Edit: func(a *qkvArgs) { a.V = nil }, Operand: tt.v, Want: "a tensor"},
				{Name: "format of v", Edit: func(a *qkvArgs) { a.V = checktest.F32(3, 4, 2, 4) }, Operand: tt.v, Want: "[4 3 2 4]"},
				{Name: "length of start_positions", Edit: func(a *qkvArgs) { a.StartPositions = checktest.I32(0, 1) }, Operand: "start_positions", Want: "3 elements (one per sequence)"},
				{Name: "dtype of start_positions", Edit: func(a *qkvArgs) { a.StartPositions = checktest.I64(0, 1, 2) }, Operand: "start_positions", Want: "dtype i32"},
				{Name: "negative start", Edit: func(a *qkvArgs) { a.StartPositions = checktest.I32(0, -1, 2) }, Operand: "start_positions", Want: "positions >= 0"},
				{Name: "cp_rank", Edit: func(a *qkvArgs) { a.CPSize, a.CPRank = 2, 2 }, Operand: "cp_rank", Want: "0 <= cp_rank < cp_size"},
				{Name: "odd length for ranks", Edit: func(a *qkvArgs) {
					*a = qkvArgs{
						QKV: checktest.F32(3, 1, 1, 6), QFreqs: checktest.F32(10, 2), KFreqs: checktest.F32(10, 2), Q: checktest.F32(3, 1, 1, 2), K: checktest.F32(3, 1, 1, 2), V: checktest.F32(3, 1, 1, 2),
						QKVSplitArgList: []int{2, 2, 2}, QKVFormat: attention.SBHD, CPSize: 2,
					}
				}, Operand: tt.qkv, Want: "an even sequence length with cp_size > 1"},
			})
			checktest.Accepted(t, tt.op, goodQKV, map[string]func(a *qkvArgs){
				"no start": func(a *qkvArgs) { a.StartPositions = nil },
				"no queries": func(a *qkvArgs) {
					a.QKVSplitArgList, a.QKV, a.Q = []int{0, 4, 16}, checktest.F32(4, 3, 2, 20), checktest.F32(4, 3, 0, 4)
					a.V = checktest.F32(4, 3, 2, 16)
				},
				"ranks": func(a *qkvArgs) { a.CPSize, a.CPRank, a.StartPositions = 2, 1, checktest.I32(0, 0, 1000) },
				"bshd": func(a *qkvArgs) {
					a.QKVFormat, a.StartPositions = attention.BSHD, checktest.I32(0, 0, 7, 7)
				},
				"no positions": func(a *qkvArgs) {
					*a = qkvArgs{
						QKV: checktest.F32(0, 1, 1, 6), QFreqs: checktest.F32(0, 2), KFreqs: checktest.F32(0, 2), Q: checktest.F32(0, 1, 1, 2), K: checktest.F32(0, 1, 1, 2), V: checktest.F32(0, 1, 1, 2),
						QKVSplitArgList: []int{2, 2, 2}, QKVFormat: attention.SBHD,
					}
				},
			})
		})
	}
}

func TestFusedQKVRopeOverlaps(t *testing.T) {
	checktest.Validation(t, rope.FusedQKVRopeForward, goodQKV, []checktest.Refusal[qkvArgs]{
		{Name: "q over k", Edit: func(a *qkvArgs) { a.K = checktest.View(a.Q, 4, 3, 2, 4) }, Operand: "k", Want: "memory apart from q"},
		{Name: "q over v", Edit: func(a *qkvArgs) { a.V = checktest.View(a.Q, 4, 3, 2, 4) }, Operand: "v", Want: "memory apart from q"},
		{Name: "k is v", Edit: func(a *qkvArgs) { a.K = a.V }, Operand: "v", Want: "memory apart from k"},
		{Name: "v over qkv", Edit: func(a *qkvArgs) { a.V = checktest.View(a.QKV, 4, 3, 2, 4) }, Operand: "v", Want: "memory apart from qkv"},
		{Name: "q over q_freqs", Edit: func(a *qkvArgs) { a.QFreqs = checktest.View(a.Q, 10, 4) }, Operand: "q", Want: "memory apart from q_freqs"},
		{Name: "k over k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = checktest.View(a.K, 10, 4) }, Operand: "k", Want: "memory apart from k_freqs"},
	})
	checktest.Validation(t, rope.FusedQKVRopeBackward, goodQKV, []checktest.Refusal[qkvArgs]{
		{Name: "qkv over q", Edit: func(a *qkvArgs) { a.Q = checktest.View(a.QKV, 4, 3, 6, 4) }, Operand: "qkv", Want: "memory apart from q"},
		{Name: "qkv over k", Edit: func(a *qkvArgs) { a.K = checktest.View(a.QKV, 4, 3, 2, 4) }, Operand: "qkv", Want: "memory apart from k"},
		{Name: "qkv over v", Edit: func(a *qkvArgs) { a.V = checktest.View(a.QKV, 4, 3, 2, 4) }, Operand: "qkv", Want: "memory apart from v"},
		{Name: "qkv over k_freqs", Edit: func(a *qkvArgs) { a.KFreqs = checktest.View(a.QKV, 10, 4) }, Operand: "qkv", Want: "memory apart from k_freqs"},
	})
	checktest.Operands(t, rope.FusedQKVRopeForward, goodQKV(), checktest.Access{
		"qkv": opregistry.AccessRead, "q_freqs": opregistry.AccessRead, "k_freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead,
		"q": opregistry.AccessWrite, "k": opregistry.AccessWrite, "v": opregistry.AccessWrite,
	})
	checktest.Operands(t, rope.FusedQKVRopeBackward, goodQKV(), checktest.Access{
		"q": opregistry.AccessRead, "k": opregistry.AccessRead, "v": opregistry.AccessRead,
		"q_freqs": opregistry.AccessRead, "k_freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "qkv": opregistry.AccessWrite,
	})
}
