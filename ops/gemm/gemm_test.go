package gemm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/ops/internal/checktest"
	"github.com/primus-fl/primus/tensor"
)

type gemmArgs = gemm.GenericGemmArgs

// fullGemm is a forward call with every operand.
func fullGemm() gemmArgs {
	return gemmArgs{
		A: checktest.F32(5, 3), TransA: true, B: checktest.F32(2, 4, 3), D: checktest.F32(2, 4, 5), Bias: checktest.F32(5),
		Gelu: true, GeluIn: checktest.F32(2, 4, 5), Accumulate: true, Alpha: opregistry.Float(2), Beta: opregistry.Float(0.5),
	}
}

func TestGenericGemm(t *testing.T) {
	checktest.Validation(t, gemm.GenericGemm, fullGemm, []checktest.Refusal[gemmArgs]{
		{Name: "no A", Edit: func(a *gemmArgs) { a.A = nil }, Operand: "A", Want: "a tensor"},
		{Name: "no B", Edit: func(a *gemmArgs) { a.B = nil }, Operand: "B", Want: "a tensor"},
		{Name: "no D", Edit: func(a *gemmArgs) { a.D = nil }, Operand: "D", Want: "a tensor"},
		{Name: "integers", Edit: func(a *gemmArgs) { a.A = checktest.Zeros(tensor.I32, 5, 3) }, Operand: "A", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "fp8", Edit: func(a *gemmArgs) { a.A = checktest.Zeros(tensor.F8E4M3, 5, 3) }, Operand: "A", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "bool D", Edit: func(a *gemmArgs) { a.D = checktest.Zeros(tensor.Bool, 2, 4, 5) }, Operand: "D", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "vector A", Edit: func(a *gemmArgs) { a.A = checktest.F32(15) }, Operand: "A", Want: "at least 2 axes"},
		{Name: "vector B", Edit: func(a *gemmArgs) { a.B = checktest.F32(24) }, Operand: "B", Want: "at least 2 axes"},
		{Name: "vector D", Edit: func(a *gemmArgs) { a.D = checktest.F32(40) }, Operand: "D", Want: "at least 2 axes"},
		{Name: "two dtypes", Edit: func(a *gemmArgs) { a.B = checktest.Zeros(tensor.BF16, 2, 4, 3) }, Operand: "B", Want: "the dtype of A, f32"},
		{Name: "inner size", Edit: func(a *gemmArgs) { a.A = checktest.F32(5, 4) }, Operand: "A", Want: "inner size 3 of op(B)"},
		{Name: "inner size, not transposed", Edit: func(a *gemmArgs) { a.TransA = false }, Operand: "A", Want: "inner size 3 of op(B)"},
		{Name: "columns of D", Edit: func(a *gemmArgs) { a.D = checktest.F32(8, 4) }, Operand: "D", Want: "shape [8 5]"},
		{Name: "rows of D", Edit: func(a *gemmArgs) { a.D = checktest.F32(7, 5) }, Operand: "D", Want: "shape [8 5]"},
		{Name: "length of bias", Edit: func(a *gemmArgs) { a.Bias = checktest.F32(4) }, Operand: "bias", Want: "5 elements"},
		{Name: "dtype of bias", Edit: func(a *gemmArgs) { a.Bias = checktest.Zeros(tensor.U8, 5) }, Operand: "bias", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "bias inside D", Edit: func(a *gemmArgs) { a.Bias = checktest.Flat(a.D, 5) }, Operand: "D", Want: "memory apart from bias"},
		{Name: "no gelu_in", Edit: func(a *gemmArgs) { a.GeluIn = nil }, Operand: "gelu_in", Want: "a tensor"},
		{Name: "dtype of gelu_in", Edit: func(a *gemmArgs) { a.GeluIn = checktest.Zeros(tensor.I64, 2, 4, 5) }, Operand: "gelu_in", Want: "dtype f32, bf16, f16 or f64"},
		{Name: "shape of gelu_in", Edit: func(a *gemmArgs) { a.GeluIn = checktest.F32(8, 5) }, Operand: "gelu_in", Want: "the shape of D, [2 4 5]"},
		{Name: "gelu_in is D", Edit: func(a *gemmArgs) { a.GeluIn = a.D }, Operand: "gelu_in", Want: "memory apart from D"},
		{Name: "gelu_in inside A", Edit: func(a *gemmArgs) {
			memory := checktest.F32(10, 10)
			a.A, a.GeluIn = checktest.View(memory, 5, 3), checktest.View(memory, 2, 4, 5)
		}, Operand: "gelu_in", Want: "memory apart from A"},
		{Name: "gelu_in inside B", Edit: func(a *gemmArgs) {
			memory := checktest.F32(10, 10)
			a.B, a.GeluIn = checktest.View(memory, 2, 4, 3), checktest.View(memory, 2, 4, 5)
		}, Operand: "gelu_in", Want: "memory apart from B"},
		{Name: "bias inside gelu_in", Edit: func(a *gemmArgs) { a.Bias = checktest.Flat(a.GeluIn, 5) }, Operand: "gelu_in", Want: "memory apart from bias"},
		{Name: "gelu_in without gelu", Edit: func(a *gemmArgs) { a.Gelu = false }, Operand: "gelu_in", Want: "nil without gelu"},
		{Name: "beta without accumulate", Edit: func(a *gemmArgs) { a.Accumulate = false }, Operand: "beta", Want: "0 without accumulate"},
		{Name: "D inside A", Edit: func(a *gemmArgs) { a.A = checktest.View(a.D, 5, 3) }, Operand: "D", Want: "memory apart from A"},
		{Name: "D inside B", Edit: func(a *gemmArgs) { a.B = checktest.View(a.D, 2, 4, 3) }, Operand: "D", Want: "memory apart from B"},
	})
	checktest.Accepted(t, gemm.GenericGemm, fullGemm, map[string]func(a *gemmArgs){
		"mixed dtypes": func(a *gemmArgs) {
			a.D, a.Bias, a.GeluIn = checktest.Zeros(tensor.BF16, 2, 4, 5), checktest.Zeros(tensor.F64, 5), checktest.Zeros(tensor.F16, 2, 4, 5)
		},
		"beta 0 without accumulate": func(a *gemmArgs) { a.Accumulate, a.Beta = false, opregistry.Float(0) },
		"nothing optional":          func(a *gemmArgs) { *a = gemmArgs{A: a.A, TransA: true, B: a.B, D: a.D} },
		"B transposed":              func(a *gemmArgs) { a.B, a.TransB = checktest.F32(3, 8), true },
		"A twice":                   func(a *gemmArgs) { *a = gemmArgs{A: a.A, TransA: true, B: a.A, D: checktest.F32(5, 5)} },
		"no inner axis":             func(a *gemmArgs) { a.A, a.B = checktest.F32(5, 0), checktest.F32(8, 0) },
		"nothing at all": func(a *gemmArgs) {
			*a = gemmArgs{A: checktest.F32(0, 3), TransA: true, B: checktest.F32(2, 3), D: checktest.F32(2, 0)}
		},
	})
}

func TestGenericGemmGrad(t *testing.T) {
	good := func() gemmArgs {
		return gemmArgs{A: checktest.F32(5, 3), B: checktest.F32(4, 5), D: checktest.F32(4, 3), Grad: true, Bias: checktest.F32(5), Gelu: true, GeluIn: checktest.F32(4, 3)}
	}
	checktest.Validation(t, gemm.GenericGemm, good, []checktest.Refusal[gemmArgs]{
		{Name: "length of bias", Edit: func(a *gemmArgs) { a.Bias = checktest.F32(3) }, Operand: "bias", Want: "5 elements"},
		{Name: "bias inside A", Edit: func(a *gemmArgs) { a.Bias = checktest.Flat(a.A, 5) }, Operand: "bias", Want: "memory apart from A"},
		{Name: "bias inside B", Edit: func(a *gemmArgs) { a.Bias = checktest.Flat(a.B, 5) }, Operand: "bias", Want: "memory apart from B"},
	})
}

func TestGenericGemmOperands(t *testing.T) {
	t.Parallel()
	a := fullGemm()
	checktest.Operands(t, gemm.GenericGemm, a, checktest.Access{
		"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessUpdate, "bias": opregistry.AccessRead, "gelu_in": opregistry.AccessWrite,
	})
	a.Grad, a.Accumulate = true, false
	checktest.Operands(t, gemm.GenericGemm, a, checktest.Access{
		"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessWrite, "bias": opregistry.AccessWrite, "gelu_in": opregistry.AccessRead,
	})
	checktest.Operands(t, gemm.GenericGemm, gemmArgs{A: a.A, B: a.B, D: a.D}, checktest.Access{"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessWrite})
}

func TestGenericGemmDims(t *testing.T) {
	t.Parallel()
	tests := []struct {
		give    gemmArgs
		m, n, k int
	}{
		{gemmArgs{A: checktest.F32(5, 3), TransA: true, B: checktest.F32(2, 4, 3)}, 8, 5, 3},
		{gemmArgs{A: checktest.F32(5, 3), B: checktest.F32(2, 4, 5)}, 8, 3, 5},
		{gemmArgs{A: checktest.F32(2, 4, 3), B: checktest.F32(2, 4, 5), TransB: true}, 5, 3, 8},
		{gemmArgs{A: checktest.F32(5, 3), TransA: true, B: checktest.F32(3, 8), TransB: true}, 8, 5, 3},
	}
	for _, tt := range tests {
		m, n, k := tt.give.Dims()
		assert.Equal(t, []int{tt.m, tt.n, tt.k}, []int{m, n, k})
	}
}
