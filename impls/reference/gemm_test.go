package reference_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

func TestGemm(t *testing.T) {
	t.Parallel()
	x := func() *tensor.Tensor { return f64(t, []int{2, 2}, 1, 2, 3, 4) }
	w := func() *tensor.Tensor { return f64(t, []int{2, 2}, 5, 6, 7, 8) }
	d := func() *tensor.Tensor { return out(t, tensor.F64, 2, 2) }
	tests := []struct {
		name string
		give gemm.GenericGemmArgs
		want []float64
	}{
		{"x·W", gemm.GenericGemmArgs{A: w(), B: x(), D: d()}, []float64{19, 22, 43, 50}},
		{"x·Wᵀ", gemm.GenericGemmArgs{A: w(), TransA: true, B: x(), D: d()}, []float64{17, 23, 39, 53}},
		{"xᵀ·W", gemm.GenericGemmArgs{A: w(), B: x(), TransB: true, D: d()}, []float64{26, 30, 38, 44}},
		{"xᵀ·Wᵀ", gemm.GenericGemmArgs{A: w(), TransA: true, B: x(), TransB: true, D: d()}, []float64{23, 31, 34, 46}},
		{"bias after alpha", gemm.GenericGemmArgs{A: w(), B: x(), D: d(), Alpha: opregistry.Float(0.5), Bias: f64(t, []int{2}, 1, -1)}, []float64{10.5, 10, 22.5, 24}},
		{"accumulate", gemm.GenericGemmArgs{A: w(), B: x(), D: x(), Accumulate: true}, []float64{20, 24, 46, 54}},
		{"accumulate with beta", gemm.GenericGemmArgs{A: w(), B: x(), D: x(), Accumulate: true, Beta: opregistry.Float(-2)}, []float64{17, 18, 37, 42}},
		{"beta 0 reads nothing", gemm.GenericGemmArgs{A: w(), B: x(), D: d(), Accumulate: true, Beta: opregistry.Float(0)}, []float64{19, 22, 43, 50}},
		{"no inner axis", gemm.GenericGemmArgs{A: out(t, tensor.F64, 0, 2), B: out(t, tensor.F64, 2, 0), D: d()}, []float64{0, 0, 0, 0}},
		{"no inner axis, accumulate", gemm.GenericGemmArgs{A: out(t, tensor.F64, 0, 2), B: out(t, tensor.F64, 2, 0), D: x(), Accumulate: true, Beta: opregistry.Float(3)}, []float64{3, 6, 9, 12}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run(t, gemm.GenericGemm, tt.give)
			want(t, tt.give.D, tt.want...)
		})
	}
}

func TestGemmGelu(t *testing.T) {
	t.Parallel()
	eye := f64(t, []int{1, 1}, 1)
	pre, y := out(t, tensor.F64, 4, 1), out(t, tensor.F64, 4, 1)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: eye, B: f64(t, []int{4, 1}, 0, -1.5, 2, -3), Bias: f64(t, []int{1}, 1), D: y, Gelu: true, GeluIn: pre})
	want(t, pre, 1, -0.5, 3, -2)
	gelu := []float64{0.8411919906, -0.1542859902, 2.9963626079, -0.0454023059}
	want(t, y, gelu...)

	// With beta the old D is added to the result of geluOf.
	sum := f64(t, []int{4, 1}, 10, 20, 30, 40)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: eye, B: pre, D: sum, Gelu: true, GeluIn: out(t, tensor.F64, 4, 1), Accumulate: true, Beta: opregistry.Float(0.5)})
	want(t, sum, 5+gelu[0], 10+gelu[1], 15+gelu[2], 20+gelu[3])
}

// B23: the gradient of the bias is written.
func TestGemmGrad(t *testing.T) {
	t.Parallel()
	dy := f64(t, []int{4, 1}, 1, 2, -1, 1)
	pre := f64(t, []int{4, 1}, 1, -0.5, 3, -2)
	dx, dbias := out(t, tensor.F64, 4, 1), out(t, tensor.F64, 1)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{
		A: f64(t, []int{1, 1}, 3), B: dy, D: dx, Grad: true, Bias: dbias, Gelu: true, GeluIn: pre, Alpha: opregistry.Float(2),
	})
	want(t, dx, 6*1.0829640838, 12*0.1326300965, -6*1.0115841667, 6*-0.0860992566)
	want(t, dbias, 3) // of dy alone: neither alpha nor gelu

	// In wgrad B is transposed; its rows are still those of dY.
	dw, sums := out(t, tensor.F64, 2, 1), out(t, tensor.F64, 2)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{
		A: f64(t, []int{3, 1}, 1, 2, 3), B: f64(t, []int{3, 2}, 1, 2, 3, 4, 5, 6), TransB: true, D: dw, Grad: true, Bias: sums,
	})
	want(t, dw, 22, 28)
	want(t, sums, 9, 12)
}

// A sum that f32 would round to a tie of bf16 must be rounded from the exact value.
func TestResultsAreRoundedOnce(t *testing.T) {
	t.Parallel()
	d := out(t, tensor.BF16, 1, 1)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{
		A: f64(t, []int{3, 1}, 1, 1, 1), B: f64(t, []int{1, 3}, 1, 0x1p-8, 0x1p-30), D: d,
	})
	assert.Equal(t, []float64{1 + 0x1p-7}, d.Float64s())
}

func TestStridedViews(t *testing.T) {
	t.Parallel()
	storage := f64(t, []int{2, 4}, 1, 2, 3, 4, 5, 6, 7, 8)
	a, err := storage.Slice(1, 0, 2)
	require.NoError(t, err)
	b, err := storage.Slice(1, 2, 4)
	require.NoError(t, err)
	turned, err := b.Transpose(0, 1)
	require.NoError(t, err)
	memory := out(t, tensor.F64, 2, 2)
	d, err := memory.Transpose(0, 1)
	require.NoError(t, err)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{A: a, B: turned, D: d}) // [3 7; 4 8]·[1 2; 5 6]
	want(t, memory, 38, 44, 48, 56)
}
