package reference_test

import (
	"testing"

	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

func TestSwiGLU(t *testing.T) {
	t.Parallel()
	// σ(ln 3) = 3/4, σ(0) = 1/2
	x, y := f64(t, []int{1, 4}, ln3, 0, 2, 5), out(t, tensor.F64, 1, 2)
	run(t, ops.SwiGLU, ops.SwiGLUArgs{Input: x, Output: y})
	want(t, y, 1.5*ln3, 0)

	dx := out(t, tensor.F64, 1, 4)
	run(t, ops.DSwiGLU, ops.DSwiGLUArgs{Grad: f64(t, []int{1, 2}, 1, 2), FwdInput: x, Output: dx})
	want(t, dx, 2*(0.75+ln3*0.75*0.25), 2*5*0.5, 0.75*ln3, 0)
}

func TestResidualAdd(t *testing.T) {
	t.Parallel()
	a := f32(t, 1, inf, inf, nan)
	run(t, ops.ResidualAdd, ops.ResidualAddArgs{A: a, B: f32(t, 2, 1, -inf, 1), Output: a})
	want(t, a, 3, inf, nan, nan)
}
