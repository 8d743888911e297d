package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

type qkvArgs = ops.FusedQKVRopeArgs

// goodQKV has two groups, each of three heads of queries and one head of keys and values.
func goodQKV() qkvArgs {
	return qkvArgs{
		QKV: f32(4, 3, 2, 20), QFreqs: f32(10, 1, 1, 4), KFreqs: f32(10, 1, 1, 2), StartPositions: i32(0, 2, 6),
		Q: f32(4, 3, 6, 4), K: f32(4, 3, 2, 4), V: f32(4, 3, 2, 4), QKVSplitArgList: []int{12, 4, 4}, QKVFormat: ops.SBHD,
	}
}

func TestFusedQKVRope(t *testing.T) {
	for _, tt := range []struct {
		op           *opregistry.Op[qkvArgs]
		qkv, q, k, v string
	}{
		{ops.FusedQKVRopeForward, "qkv_input", "q_out", "k_out", "v_out"},
		{ops.FusedQKVRopeBackward, "qkv_grad", "q_grad_out", "k_grad_out", "v_grad_out"},
	} {
		t.Run(tt.op.Name(), func(t *testing.T) {
			testValidation(t, tt.op, goodQKV, []refusal[qkvArgs]{
				{"no qkv", func(a *qkvArgs) { a.QKV = nil }, tt.qkv, "a tensor"},
				{"dtype of qkv", func(a *qkvArgs) { a.QKV = of(tensor.I32, 4, 3, 2, 20) }, tt.qkv, "dtype f32, bf16, f16 or f64"},
				{"axes of qkv", func(a *qkvArgs) { a.QKV = f32(12, 2, 20) }, tt.qkv, "4 axes"},
				{"last axis of qkv", func(a *qkvArgs) { a.QKV = f32(4, 3, 2, 24) }, tt.qkv, "a last axis of 20 = 12 + 4 + 4"},
				{"two parts", func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 8} }, "qkv_split_arg_list", "[q, k, v]"},
				{"four parts", func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 4, 4, 0} }, "qkv_split_arg_list", "[q, k, v]"},
				{"no split", func(a *qkvArgs) { a.QKVSplitArgList = nil }, "qkv_split_arg_list", "k > 0"},
				{"negative v", func(a *qkvArgs) { a.QKVSplitArgList = []int{12, 4, -4} }, "qkv_split_arg_list", "v >= 0"},
				{"negative q", func(a *qkvArgs) { a.QKVSplitArgList = []int{-12, 4, 4} }, "qkv_split_arg_list", "q a multiple of k"},
				{"part of a head", func(a *qkvArgs) { a.QKVSplitArgList = []int{10, 4, 6} }, "qkv_split_arg_list", "q a multiple of k"},
				{"no format", func(a *qkvArgs) { a.QKVFormat = 0 }, "qkv_format", "sbhd or bshd"},
				{"thd", func(a *qkvArgs) { a.QKVFormat = ops.THD }, "qkv_format", "sbhd or bshd"},
				{"no q_freqs", func(a *qkvArgs) { a.QFreqs = nil }, "q_freqs", "a tensor"},
				{"no k_freqs", func(a *qkvArgs) { a.KFreqs = nil }, "k_freqs", "a tensor"},
				{"dtype of q_freqs", func(a *qkvArgs) { a.QFreqs = of(tensor.F64, 10, 4) }, "q_freqs", "dtype f32"},
				{"vector of k_freqs", func(a *qkvArgs) { a.KFreqs = f32(40) }, "k_freqs", "at least 2 axes"},
				{"odd q_freqs", func(a *qkvArgs) { a.QFreqs = f32(10, 3) }, "q_freqs", "an even last axis of at most 4"},
				{"wide k_freqs", func(a *qkvArgs) { a.KFreqs = f32(10, 6) }, "k_freqs", "an even last axis of at most 4"},
				{"short q_freqs", func(a *qkvArgs) { a.QFreqs = f32(9, 4) }, "q_freqs", "at least 10 positions"},
				{"short k_freqs", func(a *qkvArgs) { a.KFreqs = f32(9, 4) }, "k_freqs", "at least 10 positions"},
				{"short for all ranks", func(a *qkvArgs) { a.CPSize = 3 }, "q_freqs", "at least 12 positions"},
				{"no q", func(a *qkvArgs) { a.Q = nil }, tt.q, "a tensor"},
				{"dtype of q", func(a *qkvArgs) { a.Q = of(tensor.BF16, 4, 3, 6, 4) }, tt.q, "the dtype of " + tt.qkv},
				{"heads of q", func(a *qkvArgs) { a.Q = f32(4, 3, 2, 12) }, tt.q, "[4 3 6 4]"},
				{"no k", func(a *qkvArgs) { a.K = nil }, tt.k, "a tensor"},
				{"axes of k", func(a *qkvArgs) { a.K = f32(12, 2, 4) }, tt.k, "[4 3 2 4]"},
				{"no v", func(a *qkvArgs) { a.V = nil }, tt.v, "a tensor"},
				{"format of v", func(a *qkvArgs) { a.V = f32(3, 4, 2, 4) }, tt.v, "[4 3 2 4]"},
				{"length of start_positions", func(a *qkvArgs) { a.StartPositions = i32(0, 1) }, "start_positions", "3 elements (one a sequence)"},
				{"dtype of start_positions", func(a *qkvArgs) { a.StartPositions = i64(0, 1, 2) }, "start_positions", "dtype i32"},
				{"negative start", func(a *qkvArgs) { a.StartPositions = i32(0, -1, 2) }, "start_positions", "positions >= 0"},
				{"cp_rank", func(a *qkvArgs) { a.CPSize, a.CPRank = 2, 2 }, "cp_rank", "0 <= cp_rank < cp_size"},
				{"odd length for ranks", func(a *qkvArgs) {
					*a = qkvArgs{
						QKV: f32(3, 1, 1, 6), QFreqs: f32(10, 2), KFreqs: f32(10, 2), Q: f32(3, 1, 1, 2), K: f32(3, 1, 1, 2), V: f32(3, 1, 1, 2),
						QKVSplitArgList: []int{2, 2, 2}, QKVFormat: ops.SBHD, CPSize: 2,
					}
				}, tt.qkv, "an even sequence length with cp_size > 1"},
			})
			testAccepted(t, tt.op, goodQKV, map[string]func(a *qkvArgs){
				"no start": func(a *qkvArgs) { a.StartPositions = nil },
				"no queries": func(a *qkvArgs) {
					a.QKVSplitArgList, a.QKV, a.Q = []int{0, 4, 16}, f32(4, 3, 2, 20), f32(4, 3, 0, 4)
					a.V = f32(4, 3, 2, 16)
				},
				"ranks": func(a *qkvArgs) { a.CPSize, a.CPRank, a.StartPositions = 2, 1, i32(0, 0, 1000) },
				"bshd": func(a *qkvArgs) {
					a.QKVFormat, a.StartPositions = ops.BSHD, i32(0, 0, 7, 7)
				},
				"no positions": func(a *qkvArgs) {
					*a = qkvArgs{
						QKV: f32(0, 1, 1, 6), QFreqs: f32(0, 2), KFreqs: f32(0, 2), Q: f32(0, 1, 1, 2), K: f32(0, 1, 1, 2), V: f32(0, 1, 1, 2),
						QKVSplitArgList: []int{2, 2, 2}, QKVFormat: ops.SBHD,
					}
				},
			})
		})
	}
}

func TestFusedQKVRopeOverlaps(t *testing.T) {
	testValidation(t, ops.FusedQKVRopeForward, goodQKV, []refusal[qkvArgs]{
		{"q over k", func(a *qkvArgs) { a.K = view(a.Q, 4, 3, 2, 4) }, "q_out", "memory apart from k_out"},
		{"q over v", func(a *qkvArgs) { a.V = view(a.Q, 4, 3, 2, 4) }, "q_out", "memory apart from v_out"},
		{"k is v", func(a *qkvArgs) { a.K = a.V }, "k_out", "memory apart from v_out"},
		{"v over qkv", func(a *qkvArgs) { a.V = view(a.QKV, 4, 3, 2, 4) }, "v_out", "memory apart from qkv_input"},
		{"q over q_freqs", func(a *qkvArgs) { a.QFreqs = view(a.Q, 10, 4) }, "q_out", "memory apart from q_freqs"},
		{"k over k_freqs", func(a *qkvArgs) { a.KFreqs = view(a.K, 10, 4) }, "k_out", "memory apart from k_freqs"},
	})
	testValidation(t, ops.FusedQKVRopeBackward, goodQKV, []refusal[qkvArgs]{
		{"qkv over q", func(a *qkvArgs) { a.Q = view(a.QKV, 4, 3, 6, 4) }, "qkv_grad", "memory apart from q_grad_out"},
		{"qkv over k", func(a *qkvArgs) { a.K = view(a.QKV, 4, 3, 2, 4) }, "qkv_grad", "memory apart from k_grad_out"},
		{"qkv over v", func(a *qkvArgs) { a.V = view(a.QKV, 4, 3, 2, 4) }, "qkv_grad", "memory apart from v_grad_out"},
		{"qkv over k_freqs", func(a *qkvArgs) { a.KFreqs = view(a.QKV, 10, 4) }, "qkv_grad", "memory apart from k_freqs"},
	})
	testOperands(t, ops.FusedQKVRopeForward, goodQKV(), access{
		"qkv_input": opregistry.AccessRead, "q_freqs": opregistry.AccessRead, "k_freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead,
		"q_out": opregistry.AccessWrite, "k_out": opregistry.AccessWrite, "v_out": opregistry.AccessWrite,
	})
	testOperands(t, ops.FusedQKVRopeBackward, goodQKV(), access{
		"q_grad_out": opregistry.AccessRead, "k_grad_out": opregistry.AccessRead, "v_grad_out": opregistry.AccessRead,
		"q_freqs": opregistry.AccessRead, "k_freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "qkv_grad": opregistry.AccessWrite,
	})
}
