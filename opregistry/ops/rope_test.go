package ops_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

type ropeArgs = ops.FusedRopeArgs

func TestFusedRope(t *testing.T) {
	for _, op := range []*opregistry.Op[ropeArgs]{ops.FusedRopeForward, ops.FusedRopeBackward} {
		t.Run(op.Name(), func(t *testing.T) {
			input := "input"
			if op == ops.FusedRopeBackward {
				input = "output_grads"
			}
			testRope(t, op, input)
			testPackedRope(t, op, input)
		})
	}
}

func testRope(t *testing.T, op *opregistry.Op[ropeArgs], input string) {
	good := func() ropeArgs {
		return ropeArgs{
			Input: f32(4, 2, 3, 8), Freqs: f32(10, 1, 1, 6), StartPositions: i32(0, 2), Output: f32(4, 2, 3, 8), QKVFormat: ops.SBHD,
		}
	}
	testValidation(t, op, good, []refusal[ropeArgs]{
		{"no input", func(a *ropeArgs) { a.Input = nil }, input, "a tensor"},
		{"dtype of input", func(a *ropeArgs) { a.Input = of(tensor.I32, 4, 2, 3, 8) }, input, "dtype f32, bf16, f16 or f64"},
		{"no freqs", func(a *ropeArgs) { a.Freqs = nil }, "freqs", "a tensor"},
		{"dtype of freqs", func(a *ropeArgs) { a.Freqs = of(tensor.F64, 10, 6) }, "freqs", "dtype f32"},
		{"vector of freqs", func(a *ropeArgs) { a.Freqs = f32(60) }, "freqs", "at least 2 axes"},
		{"no output", func(a *ropeArgs) { a.Output = nil }, "output", "a tensor"},
		{"dtype of output", func(a *ropeArgs) { a.Output = of(tensor.BF16, 4, 2, 3, 8) }, "output", "the dtype of " + input + ", f32"},
		{"shape of output", func(a *ropeArgs) { a.Output = f32(2, 4, 3, 8) }, "output", "the shape of " + input},
		{"output overlaps input", func(a *ropeArgs) { a.Output = shifted(&a.Input) }, "output", "the same view as " + input},
		{"output over freqs", func(a *ropeArgs) { a.Freqs = view(a.Output, 10, 6) }, "output", "memory apart from freqs"},
		{"output over start_positions", func(a *ropeArgs) { a.Output, a.StartPositions = overlaid(192, 2, 4, 2, 3, 8) }, "output", "memory apart from start_positions"},
		{"no format", func(a *ropeArgs) { a.QKVFormat = 0 }, "qkv_format", "sbhd, bshd or thd"},
		{"axes, sbhd", func(a *ropeArgs) { a.Input, a.Output = f32(8, 3, 8), f32(8, 3, 8) }, input, "4 axes"},
		{"axes, bshd", func(a *ropeArgs) { a.Input, a.Output, a.QKVFormat = f32(8, 3, 8), f32(8, 3, 8), ops.BSHD }, input, "4 axes"},
		{"cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i32(0, 4) }, "cu_seqlens", "nil unless qkv_format is thd"},
		{"odd angles", func(a *ropeArgs) { a.Freqs = f32(10, 5) }, "freqs", "an even last axis of at most 8"},
		{"too many angles", func(a *ropeArgs) { a.Freqs = f32(10, 10) }, "freqs", "an even last axis of at most 8"},
		{"too few positions", func(a *ropeArgs) { a.Freqs = f32(5, 6) }, "freqs", "at least 6 positions"},
		{"too few positions, bshd", func(a *ropeArgs) {
			a.QKVFormat, a.StartPositions, a.Freqs = ops.BSHD, nil, f32(1, 6)
		}, "freqs", "at least 2 positions"},
		{"too few positions of all ranks", func(a *ropeArgs) { a.CPSize, a.StartPositions = 3, nil }, "freqs", "at least 12 positions"},
		{"negative cp_size", func(a *ropeArgs) { a.CPSize = -1 }, "cp_rank", "0 <= cp_rank < cp_size"},
		{"negative cp_rank", func(a *ropeArgs) { a.CPRank = -1 }, "cp_rank", "0 <= cp_rank < cp_size"},
		{"cp_rank too large", func(a *ropeArgs) { a.CPSize, a.CPRank = 2, 2 }, "cp_rank", "0 <= cp_rank < cp_size"},
		{"odd length for ranks", func(a *ropeArgs) {
			a.Input, a.Output, a.CPSize = f32(3, 2, 3, 8), f32(3, 2, 3, 8), 2
		}, input, "an even sequence length with cp_size > 1"},
		{"dtype of start_positions", func(a *ropeArgs) { a.StartPositions = i64(0, 2) }, "start_positions", "dtype i32"},
		{"length of start_positions", func(a *ropeArgs) { a.StartPositions = i32(0, 2, 0) }, "start_positions", "2 elements (one a sequence)"},
		{"negative start", func(a *ropeArgs) { a.StartPositions = i32(0, -1) }, "start_positions", "positions >= 0"},
	})
	testAccepted(t, op, good, map[string]func(a *ropeArgs){
		"in place":              func(a *ropeArgs) { a.Output = a.Input },
		"no start":              func(a *ropeArgs) { a.StartPositions = nil },
		"just enough positions": func(a *ropeArgs) { a.Freqs = f32(6, 6) },
		"bshd":                  func(a *ropeArgs) { a.QKVFormat, a.StartPositions, a.Freqs = ops.BSHD, i32(0, 0, 0, 1), f32(3, 8) },
		"ranks":                 func(a *ropeArgs) { a.CPSize, a.CPRank = 2, 1 },
		"no sequence": func(a *ropeArgs) {
			*a = ropeArgs{Input: f32(0, 2, 3, 8), Freqs: f32(0, 6), Output: f32(0, 2, 3, 8), QKVFormat: ops.SBHD}
		},
	})
	testOperands(t, op, good(), access{input: opregistry.AccessRead, "freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "output": opregistry.AccessWrite})
}

func testPackedRope(t *testing.T, op *opregistry.Op[ropeArgs], input string) {
	good := func() ropeArgs {
		return ropeArgs{
			Input: f32(10, 3, 8), Freqs: f32(10, 1, 1, 6), StartPositions: i32(1, 2, 0), CuSeqlens: i32(0, 4, 4, 10), Output: f32(10, 3, 8), QKVFormat: ops.THD,
		}
	}
	testValidation(t, op, good, []refusal[ropeArgs]{
		{"thd: axes", func(a *ropeArgs) { a.Input, a.Output = f32(5, 2, 3, 8), f32(5, 2, 3, 8) }, input, "3 axes"},
		{"no cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = nil }, "cu_seqlens", "a tensor"},
		{"dtype of cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i64(0, 10) }, "cu_seqlens", "dtype i32"},
		{"empty cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i32() }, "cu_seqlens", "0 first and 10 last"},
		{"first of cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i32(1, 10) }, "cu_seqlens", "0 first and 10 last"},
		{"last of cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i32(0, 9) }, "cu_seqlens", "0 first and 10 last"},
		{"falling cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = i32(0, 6, 4, 10) }, "cu_seqlens", "values that do not fall"},
		{"thd: length of start_positions", func(a *ropeArgs) { a.StartPositions = i32(0) }, "start_positions", "3 elements (one a sequence)"},
		{"output over cu_seqlens", func(a *ropeArgs) { a.Output, a.CuSeqlens = overlaid(240, 4, 10, 3, 8) }, "output", "memory apart from cu_seqlens"},
		{"scalar cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = of(tensor.I32) }, "cu_seqlens", "1 axes"},
		{"thd: too few positions", func(a *ropeArgs) { a.StartPositions, a.Freqs = nil, f32(5, 6) }, "freqs", "at least 6 positions"},
		{"thd: too few positions of all ranks", func(a *ropeArgs) {
			a.CPSize, a.StartPositions, a.CuSeqlens = 2, nil, i32(0, 8, 20)
		}, "freqs", "at least 12 positions"},
		{"thd: lengths of this rank only", func(a *ropeArgs) { a.CPSize = 2 }, "cu_seqlens", "0 first and 20 last"},
		{"thd: odd length for ranks", func(a *ropeArgs) {
			a.CPSize, a.StartPositions, a.CuSeqlens, a.Freqs = 2, nil, i32(0, 6, 20), f32(20, 6)
		}, "cu_seqlens", "sequence lengths that are multiples of 2·cp_size"},
		{"packed sequence beyond freqs", func(a *ropeArgs) {
			a.Freqs = f32(5, 6)
		}, "freqs", "at least 6 positions"},
		{"matrix of cu_seqlens", func(a *ropeArgs) { a.CuSeqlens = of(tensor.I32, 2, 2) }, "cu_seqlens", "1 axes"},
		{"matrix of start_positions", func(a *ropeArgs) { a.StartPositions = of(tensor.I32, 3, 1) }, "start_positions", "1 axes"},
	})
	testAccepted(t, op, good, map[string]func(a *ropeArgs){
		"thd: just enough positions": func(a *ropeArgs) { a.StartPositions, a.Freqs = nil, f32(6, 6) },
		"thd: ranks":                 func(a *ropeArgs) { a.CPSize, a.CPRank, a.CuSeqlens, a.Freqs = 2, 1, i32(0, 8, 8, 20), f32(14, 6) },
		"thd: no tokens": func(a *ropeArgs) {
			*a = ropeArgs{Input: f32(0, 3, 8), Freqs: f32(0, 6), CuSeqlens: i32(0), Output: f32(0, 3, 8), QKVFormat: ops.THD}
		},
	})
	testOperands(t, op, good(), access{
		input: opregistry.AccessRead, "freqs": opregistry.AccessRead, "start_positions": opregistry.AccessRead, "cu_seqlens": opregistry.AccessRead, "output": opregistry.AccessWrite,
	})
}
