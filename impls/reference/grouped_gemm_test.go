package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/ops/gemm"
	"github.com/primus-fl/primus/tensor"
)

type tensors = []*tensor.Tensor

// Two experts of one input and one output feature, the second without rows.
func TestGroupedGemm(t *testing.T) {
	t.Parallel()
	w := tensors{f64(t, []int{1, 1}, 3), f64(t, []int{1, 1}, 5)}
	x := tensors{f64(t, []int{2, 1}, 1, 2), f64(t, []int{0, 1})}
	y := out(t, tensor.F32, 2, 1)
	run(t, gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemmArgs{
		A: w, TransA: true, B: x, D: tensors{y}, SingleOutput: true, Bias: tensors{f32(t, 10), f32(t, 20)},
	})
	want(t, y, 13, 16)

	dy := tensors{f64(t, []int{2, 1}, 1, 7), f64(t, []int{0, 1})}
	dw, db := tensors{out(t, tensor.F64, 1, 1), out(t, tensor.F64, 1, 1)}, tensors{out(t, tensor.F64, 1), out(t, tensor.F64, 1)}
	run(t, gemm.TEGeneralGroupedGemm, gemm.TEGeneralGroupedGemmArgs{A: x, B: dy, TransB: true, D: dw, Bias: db, Grad: true})
	want(t, dw[0], 15)
	want(t, dw[1], 0)
	want(t, db[0], 8)
	want(t, db[1], 0)
}

func TestGroupedTensorGemm(t *testing.T) {
	t.Parallel()
	d := f64(t, []int{3, 1}, 100, 200, nan)
	run(t, gemm.TEGeneralGroupedGemmForDiscreteIn, gemm.GroupedGemmArgs{
		A: gemm.GroupedTensor{List: tensors{f64(t, []int{1, 1}, 3), f64(t, []int{1, 1}, 5)}},
		B: gemm.GroupedTensor{Data: f64(t, []int{3, 1}, 1, 2, 4), FirstDims: i32(t, 2, 1)},
		D: gemm.GroupedTensor{Data: d, FirstDims: i32(t, 2, 1)}, Bias: f64(t, []int{2, 1}, 0.5, 0.25),
		Alpha: f32(t, 1, 2), Beta: f32(t, 0.5, 0),
	})
	want(t, d, 3+50+0.5, 6+100+0.5, 40+0.25)
}

// Upstream's reference adds the bias of a gradient to the product, returns no gradient of the bias,
// and applies geluOf where its derivative is needed.
func TestGemmGrad_UpstreamRunsTheForwardEpilogue(t *testing.T) {
	t.Parallel()
	dx, db := out(t, tensor.F64, 2, 1), f32(t, 100)
	run(t, gemm.GenericGemm, gemm.GenericGemmArgs{
		A: f64(t, []int{1, 1}, 3), B: f64(t, []int{2, 1}, 1, 2), D: dx, Grad: true, Bias: db, Gelu: true, GeluIn: f64(t, []int{2, 1}, 0, 0),
	})
	want(t, dx, 1.5, 3) // gelu'(0) = 1/2
	want(t, db, 3)
}
