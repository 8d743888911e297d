package rope_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/attention"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/ops/rope"
	"github.com/primus-fl/primus/tensor"
)

type ropeArgs = rope.FusedRopeArgs

func TestFusedRope(t *testing.T) {
	for _, op := range []*opregistry.Op[ropeArgs]{rope.FusedRopeForward, rope.FusedRopeBackward} {
		t.Run(op.Name(), func(t *testing.T) {
			testRope(t, op, "input")
			testPackedRope(t, op, "input")
		})
	}
}

func testRope(t *testing.T, op *opregistry.Op[ropeArgs], input string) {
	good := func() ropeArgs {
		return ropeArgs{
			Input: checktest.F32(4, 2, 3, 8), Freqs: checktest.F32(10, 1, 1, 6), StartPositions: checktest.I32(0, 2), Output: checktest.F32(4, 2, 3, 8), QKVFormat: attention.SBHD,
		}
	}
	checktest.Validation(t, op, good, []checktest.Refusal[ropeArgs]{
		{Name: "no input", Edit: func(a *ropeArgs) { a.Input = nil }, Operand: input, Want: "a tensor"},
		{Name: "dtype of input", Edit: func(a *ropeArgs) { a.Input = checktest.Zeros(tensor.I32, 4, 2, 3, 8) }, Operand: input, Want: "dtype f32, bf16, f16 or f64"},
		{Name: "no freqs", Edit: func(a *ropeArgs) { a.Freqs = nil }, Operand: "freqs", Want: "a tensor"},
		{Name: "dtype of freqs", Edit: func(a *ropeArgs) { a.Freqs = checktest.Zeros(tensor.F64, 10, 6) }, Operand: "freqs", Want: "dtype f32"},
		{Name: "vector of freqs", Edit: func(a *ropeArgs) { a.Freqs = checktest.F32(60) }, Operand: "freqs", Want: "at least 2 axes"},
		{Name: "no output", Edit: func(a *ropeArgs) { a.Output = nil }, Operand: "output", Want: "a tensor"},
		{Name: "dtype of output", Edit: func(a *ropeArgs) { a.Output = checktest.Zeros(tensor.BF16, 4, 2, 3, 8) }, Operand: "output", Want: "the dtype of " + input + ", f32"},
		{Name: "shape of output", Edit: func(a *ropeArgs) { a.Output = checktest.F32(2, 4, 3, 8) }, Operand: "output", Want: "the shape of " + input},
		{Name: "output overlaps input", Edit: func(a *ropeArgs) { a.Output = checktest.Shifted(&a.Input) }, Operand: "output", Want: "the same view as " + input},
		{Name: "output over freqs", Edit: func(a *ropeArgs) { a.Freqs = checktest.View(a.Output, 10, 6) }, Operand: "output", Want: "memory apart from freqs"},
		{Name: "output over start_positions", Edit: func(a *ropeArgs) { a.Output, a.StartPositions = checktest.Overlaid(192, 2, 4, 2, 3, 8) }, Operand: "output", Want: "memory apart from start_positions"},
		{Name: "no format", Edit: func(a *ropeArgs) { a.QKVFormat = 0 }, Operand: "qkv_format", Want: "sbhd, bshd or thd"},
		{Name: "axes, sbhd", Edit: func(a *ropeArgs) { a.Input, a.Output = checktest.F32(8, 3, 8), checktest.F32(8, 3, 8) }, Operand: input, Want: "4 axes"},
		{Name: "axes, bshd", Edit: func(a *ropeArgs) {
			a.Input, a.Output, a.QKVFormat = checktest.F32(8, 3, 8), checktest.F32(8, 3, 8), attention.BSHD
		}, Operand: input, Want: "4 axes"},
		{Name: "cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I32(0, 4) }, Operand: "cu_seqlens", Want: "nil unless qkv_format is thd"},
		{Name: "odd angles", Edit: func(a *ropeArgs) { a.Freqs = checktest.F32(10, 5) }, Operand: "freqs", Want: "an even last axis of at most 8"},
		{Name: "too many angles", Edit: func(a *ropeArgs) { a.Freqs = checktest.F32(10, 10) }, Operand: "freqs", Want: "an even last axis of at most 8"},
		{Name: "too few positions", Edit: func(a *ropeArgs) { a.Freqs = checktest.F32(5, 6) }, Operand: "freqs", Want: "at least 6 positions"},
		{Name: "too few positions, bshd", Edit: func(a *ropeArgs) {
			a.QKVFormat, a.StartPositions, a.Freqs = attention.BSHD, nil, checktest.F32(1, 6)
		}, Operand: "freqs", Want: "at least 2 positions"},
		{Name: "too few positions of all ranks", Edit: func(a *ropeArgs) { a.CPSize, a.StartPositions = 3, nil }, Operand: "freqs", Want: "at least 12 positions"},
		{Name: "negative cp_size", Edit: func(a *ropeArgs) { a.CPSize = -1 }, Operand: "cp_rank", Want: "0 <= cp_rank < cp_size"},
		{Name: "negative cp_rank", Edit: func(a *ropeArgs) { a.CPRank = -1 }, Operand: "cp_rank", Want: "0 <= cp_rank < cp_size"},
		{Name: "cp_rank too large", Edit: func(a *ropeArgs) { a.CPSize, a.CPRank = 2, 2 }, Operand: "cp_rank", Want: "0 <= cp_rank < cp_size"},
		{Name: "odd length for ranks", Edit: func(a *ropeArgs) {
			a.Input, a.Output, a.CPSize = checktest.F32(3, 2, 3, 8), checktest.F32(3, 2, 3, 8), 2
		}, Operand: input, Want: "an even sequence length with cp_size > 1"},
		{Name: "dtype of start_positions", Edit: func(a *ropeArgs) { a.StartPositions = checktest.I64(0, 2) }, Operand: "start_positions", Want: "dtype i32"},
		{Name: "length of start_positions", Edit: func(a *ropeArgs) { a.StartPositions = checktest.I32(0, 2, 0) }, Operand: "start_positions", Want: "2 elements (one per sequence)"},
		{Name: "negative start", Edit: func(a *ropeArgs) { a.StartPositions = checktest.I32(0, -1) }, Operand: "start_positions", Want: "positions >= 0"},
	})
	checktest.Accepted(t, op, good, map[string]func(a *ropeArgs){
		"in place":              func(a *ropeArgs) { a.Output = a.Input },
		"no start":              func(a *ropeArgs) { a.StartPositions = nil },
		"just enough positions": func(a *ropeArgs) { a.Freqs = checktest.F32(6, 6) },
		"bshd": func(a *ropeArgs) {
			a.QKVFormat, a.StartPositions, a.Freqs = attention.BSHD, checktest.I32(0, 0, 0, 1), checktest.F32(3, 8)
		},
		"ranks": func(a *ropeArgs) { a.CPSize, a.CPRank = 2, 1 },
		"no sequence": func(a *ropeArgs) {
			*a = ropeArgs{Input: checktest.F32(0, 2, 3, 8), Freqs: checktest.F32(0, 6), Output: checktest.F32(0, 2, 3, 8), QKVFormat: attention.SBHD}
		},
	})
	checktest.Operands(t, op, good(), checktest.Access{input: opregistry.AccessRead, "freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func testPackedRope(t *testing.T, op *opregistry.Op[ropeArgs], input string) {
	good := func() ropeArgs {
		return ropeArgs{
			Input: checktest.F32(10, 3, 8), Freqs: checktest.F32(10, 1, 1, 6), StartPositions: checktest.I32(1, 2, 0), CuSeqlens: checktest.I32(0, 4, 4, 10), Output: checktest.F32(10, 3, 8), QKVFormat: attention.THD,
		}
	}
	checktest.Validation(t, op, good, []checktest.Refusal[ropeArgs]{
		{Name: "thd: axes", Edit: func(a *ropeArgs) { a.Input, a.Output = checktest.F32(5, 2, 3, 8), checktest.F32(5, 2, 3, 8) }, Operand: input, Want: "3 axes"},
		{Name: "no cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = nil }, Operand: "cu_seqlens", Want: "a tensor"},
		{Name: "dtype of cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I64(0, 10) }, Operand: "cu_seqlens", Want: "dtype i32"},
		{Name: "empty cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I32() }, Operand: "cu_seqlens", Want: "0 first and 10 last"},
		{Name: "first of cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I32(1, 10) }, Operand: "cu_seqlens", Want: "0 first and 10 last"},
		{Name: "last of cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I32(0, 9) }, Operand: "cu_seqlens", Want: "0 first and 10 last"},
		{Name: "falling cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.I32(0, 6, 4, 10) }, Operand: "cu_seqlens", Want: "values that do not fall"},
		{Name: "thd: length of start_positions", Edit: func(a *ropeArgs) { a.StartPositions = checktest.I32(0) }, Operand: "start_positions", Want: "3 elements (one per sequence)"},
		{Name: "output over cu_seqlens", Edit: func(a *ropeArgs) {
			a.Output, a.CuSeqlens = checktest.Overlaid(240, 4, 10, 3, 8)
			a.CuSeqlens.Set(10, 3)
		}, Operand: "output", Want: "memory apart from cu_seqlens"},
		{Name: "scalar cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.Zeros(tensor.I32) }, Operand: "cu_seqlens", Want: "1 axis"},
		{Name: "thd: too few positions", Edit: func(a *ropeArgs) { a.StartPositions, a.Freqs = nil, checktest.F32(5, 6) }, Operand: "freqs", Want: "at least 6 positions"},
		{Name: "thd: too few positions of all ranks", Edit: func(a *ropeArgs) {
			a.CPSize, a.StartPositions, a.CuSeqlens = 2, nil, checktest.I32(0, 8, 20)
		}, Operand: "freqs", Want: "at least 12 positions"},
		{Name: "thd: lengths of this rank only", Edit: func(a *ropeArgs) { a.CPSize = 2 }, Operand: "cu_seqlens", Want: "0 first and 20 last"},
		{Name: "thd: odd length for ranks", Edit: func(a *ropeArgs) {
			a.CPSize, a.StartPositions, a.CuSeqlens, a.Freqs = 2, nil, checktest.I32(0, 6, 20), checktest.F32(20, 6)
		}, Operand: "cu_seqlens", Want: "sequence lengths that are multiples of 2·cp_size"},
		{Name: "packed sequence beyond freqs", Edit: func(a *ropeArgs) {
			a.Freqs = checktest.F32(5, 6)
		}, Operand: "freqs", Want: "at least 6 positions"},
		{Name: "matrix of cu_seqlens", Edit: func(a *ropeArgs) { a.CuSeqlens = checktest.Zeros(tensor.I32, 2, 2) }, Operand: "cu_seqlens", Want: "1 axis"},
		{Name: "matrix of start_positions", Edit: func(a *ropeArgs) { a.StartPositions = checktest.Zeros(tensor.I32, 3, 1) }, Operand: "start_positions", Want: "1 axis"},
	})
	checktest.Accepted(t, op, good, map[string]func(a *ropeArgs){
		"thd: just enough positions": func(a *ropeArgs) { a.StartPositions, a.Freqs = nil, checktest.F32(6, 6) },
		"thd: ranks": func(a *ropeArgs) {
			a.CPSize, a.CPRank, a.CuSeqlens, a.Freqs = 2, 1, checktest.I32(0, 8, 8, 20), checktest.F32(14, 6)
		},
		"thd: no tokens": func(a *ropeArgs) {
			*a = ropeArgs{Input: checktest.F32(0, 3, 8), Freqs: checktest.F32(0, 6), CuSeqlens: checktest.I32(0), Output: checktest.F32(0, 3, 8), QKVFormat: attention.THD}
		},
	})
	checktest.Operands(t, op, good(), checktest.Access{
		input: opregistry.AccessRead, "freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite,
	})
}
