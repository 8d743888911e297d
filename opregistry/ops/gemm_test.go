package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

type gemmArgs = ops.GenericGemmArgs

// fullGemm is a forward call with every operand.
func fullGemm() gemmArgs {
	return gemmArgs{
		A: f32(5, 3), TransA: true, B: f32(2, 4, 3), D: f32(2, 4, 5), Bias: f32(5),
		Gelu: true, GeluIn: f32(2, 4, 5), Accumulate: true, Alpha: ops.Float(2), Beta: ops.Float(0.5),
	}
}

func TestGenericGemm(t *testing.T) {
	testValidation(t, ops.GenericGemm, fullGemm, []refusal[gemmArgs]{
		{"no A", func(a *gemmArgs) { a.A = nil }, "A", "a tensor"},
		{"no B", func(a *gemmArgs) { a.B = nil }, "B", "a tensor"},
		{"no D", func(a *gemmArgs) { a.D = nil }, "D", "a tensor"},
		{"integers", func(a *gemmArgs) { a.A = of(tensor.I32, 5, 3) }, "A", "dtype f32, bf16, f16 or f64"},
		{"fp8", func(a *gemmArgs) { a.B = of(tensor.F8E4M3, 2, 4, 3) }, "B", "dtype f32, bf16, f16 or f64"},
		{"bool D", func(a *gemmArgs) { a.D = of(tensor.Bool, 2, 4, 5) }, "D", "dtype f32, bf16, f16 or f64"},
		{"vector A", func(a *gemmArgs) { a.A = f32(15) }, "A", "at least 2 axes"},
		{"vector B", func(a *gemmArgs) { a.B = f32(24) }, "B", "at least 2 axes"},
		{"vector D", func(a *gemmArgs) { a.D = f32(40) }, "D", "at least 2 axes"},
		{"two dtypes", func(a *gemmArgs) { a.B = of(tensor.BF16, 2, 4, 3) }, "B", "the dtype of A, f32"},
		{"inner size", func(a *gemmArgs) { a.A = f32(5, 4) }, "A", "inner size 3 of op(B)"},
		{"inner size, not transposed", func(a *gemmArgs) { a.TransA = false }, "A", "inner size 3 of op(B)"},
		{"columns of D", func(a *gemmArgs) { a.D = f32(8, 4) }, "D", "shape [8 5]"},
		{"rows of D", func(a *gemmArgs) { a.D = f32(7, 5) }, "D", "shape [8 5]"},
		{"length of bias", func(a *gemmArgs) { a.Bias = f32(4) }, "bias", "5 elements"},
		{"dtype of bias", func(a *gemmArgs) { a.Bias = of(tensor.U8, 5) }, "bias", "dtype f32, bf16, f16 or f64"},
		{"bias inside D", func(a *gemmArgs) { a.Bias = flat(a.D, 5) }, "D", "memory apart from bias"},
		{"no gelu_in", func(a *gemmArgs) { a.GeluIn = nil }, "gelu_in", "a tensor"},
		{"dtype of gelu_in", func(a *gemmArgs) { a.GeluIn = of(tensor.I64, 2, 4, 5) }, "gelu_in", "dtype f32, bf16, f16 or f64"},
		{"shape of gelu_in", func(a *gemmArgs) { a.GeluIn = f32(8, 5) }, "gelu_in", "the shape of D, [2 4 5]"},
		{"gelu_in is D", func(a *gemmArgs) { a.GeluIn = a.D }, "D", "memory apart from gelu_in"},
		{"gelu_in inside A", func(a *gemmArgs) {
			memory := f32(10, 10)
			a.A, a.GeluIn = view(memory, 5, 3), view(memory, 2, 4, 5)
		}, "gelu_in", "memory apart from A"},
		{"gelu_in inside B", func(a *gemmArgs) {
			memory := f32(10, 10)
			a.B, a.GeluIn = view(memory, 2, 4, 3), view(memory, 2, 4, 5)
		}, "gelu_in", "memory apart from B"},
		{"bias inside gelu_in", func(a *gemmArgs) { a.Bias = flat(a.GeluIn, 5) }, "gelu_in", "memory apart from bias"},
		{"gelu_in without gelu", func(a *gemmArgs) { a.Gelu = false }, "gelu_in", "nil without gelu"},
		{"beta without accumulate", func(a *gemmArgs) { a.Accumulate = false }, "beta", "0 without accumulate"},
		{"D inside A", func(a *gemmArgs) { a.A = view(a.D, 5, 3) }, "D", "memory apart from A"},
		{"D inside B", func(a *gemmArgs) { a.B = view(a.D, 2, 4, 3) }, "D", "memory apart from B"},
	})
	testAccepted(t, ops.GenericGemm, fullGemm, map[string]func(a *gemmArgs){
		"mixed dtypes": func(a *gemmArgs) {
			a.D, a.Bias, a.GeluIn = of(tensor.BF16, 2, 4, 5), of(tensor.F64, 5), of(tensor.F16, 2, 4, 5)
		},
		"beta 0 without accumulate": func(a *gemmArgs) { a.Accumulate, a.Beta = false, ops.Float(0) },
		"nothing optional":          func(a *gemmArgs) { *a = gemmArgs{A: a.A, TransA: true, B: a.B, D: a.D} },
		"B transposed":              func(a *gemmArgs) { a.B, a.TransB = f32(3, 8), true },
		"A twice":                   func(a *gemmArgs) { *a = gemmArgs{A: a.A, TransA: true, B: a.A, D: f32(5, 5)} },
		"no inner axis":             func(a *gemmArgs) { a.A, a.B = f32(5, 0), f32(8, 0) },
		"nothing at all":            func(a *gemmArgs) { *a = gemmArgs{A: f32(0, 3), TransA: true, B: f32(2, 3), D: f32(2, 0)} },
	})
}

func TestGenericGemmGrad(t *testing.T) {
	good := func() gemmArgs {
		return gemmArgs{A: f32(5, 3), B: f32(4, 5), D: f32(4, 3), Grad: true, Bias: f32(5), Gelu: true, GeluIn: f32(4, 3)}
	}
	testValidation(t, ops.GenericGemm, good, []refusal[gemmArgs]{
		{"length of bias", func(a *gemmArgs) { a.Bias = f32(3) }, "bias", "5 elements"},
		{"bias inside A", func(a *gemmArgs) { a.Bias = flat(a.A, 5) }, "bias", "memory apart from A"},
		{"bias inside B", func(a *gemmArgs) { a.Bias = flat(a.B, 5) }, "bias", "memory apart from B"},
	})
}

func TestGenericGemmOperands(t *testing.T) {
	t.Parallel()
	a := fullGemm()
	testOperands(t, ops.GenericGemm, a, access{
		"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessUpdate, "bias": opregistry.AccessRead, "gelu_in": opregistry.AccessWrite,
	})
	a.Grad, a.Accumulate = true, false
	testOperands(t, ops.GenericGemm, a, access{
		"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessWrite, "bias": opregistry.AccessWrite, "gelu_in": opregistry.AccessRead,
	})
	testOperands(t, ops.GenericGemm, gemmArgs{A: a.A, B: a.B, D: a.D}, access{"A": opregistry.AccessRead, "B": opregistry.AccessRead, "D": opregistry.AccessWrite})
}

func TestGenericGemmDims(t *testing.T) {
	t.Parallel()
	tests := []struct {
		give    gemmArgs
		m, n, k int
	}{
		{gemmArgs{A: f32(5, 3), TransA: true, B: f32(2, 4, 3)}, 8, 5, 3},
		{gemmArgs{A: f32(5, 3), B: f32(2, 4, 5)}, 8, 3, 5},
		{gemmArgs{A: f32(2, 4, 3), B: f32(2, 4, 5), TransB: true}, 5, 3, 8},
		{gemmArgs{A: f32(5, 3), TransA: true, B: f32(3, 8), TransB: true}, 8, 5, 3},
	}
	for _, tt := range tests {
		m, n, k := tt.give.Dims()
		assert.Equal(t, []int{tt.m, tt.n, tt.k}, []int{m, n, k})
	}
}

// view returns a contiguous view of the beginning of x's memory.
func view(x *tensor.Tensor, shape ...int) *tensor.Tensor {
	v, err := flat(x, tensor.Shape(shape).NumElements()).Reshape(shape...)
	if err != nil {
		panic(err)
	}
	return v
}
