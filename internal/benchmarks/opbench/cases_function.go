package opbench

import (
	"github.com/primus-fl/primus/opregistry"
	"github.com/primus-fl/primus/opregistry/ops"
	"github.com/primus-fl/primus/tensor"
)

type (
	activation  = opregistry.Op[ops.ActivationArgs]
	dActivation = opregistry.Op[ops.DActivationArgs]
	dbiasOp     = opregistry.Op[ops.DBiasDActivationArgs]
	softmax     = opregistry.Op[ops.SoftmaxArgs]
	softmaxGrad = opregistry.Op[ops.SoftmaxBackwardArgs]
)

// functionCases are those of the activation functions and the softmaxes; of a gated
// function the columns are those of its output.
func functionCases() map[string]builder {
	cases := map[string]builder{}
	for gated, group := range [][]*activation{
		{ops.SiLU, ops.QGELU, ops.GELU, ops.ReLU, ops.SReLU}, {ops.SwiGLU, ops.QGEGLU, ops.GEGLU, ops.GLU, ops.ReGLU, ops.SReGLU},
	} {
		for _, op := range group {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return newCase(m, op, shape, ops.ActivationArgs{Input: m.random(rows, cols<<gated), Output: m.fresh(m.dtype, rows, cols)})
			}
		}
	}
	for gated, group := range [][]*dActivation{
		{ops.DSiLU, ops.DQGELU, ops.DGELU, ops.DReLU, ops.DSReLU}, {ops.DSwiGLU, ops.DQGEGLU, ops.DGEGLU, ops.DGLU, ops.DReGLU, ops.DSReGLU},
	} {
		for _, op := range group {
			cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
				return newCase(m, op, shape, ops.DActivationArgs{
					Grad: m.random(rows, cols), FwdInput: m.random(rows, cols<<gated), Output: m.fresh(m.dtype, rows, cols<<gated),
				})
			}
		}
	}
	for _, op := range []*dbiasOp{ops.DBiasDSiLU, ops.DBiasDQGELU, ops.DBiasDGELU, ops.DBiasDReLU, ops.DBiasDSReLU} {
		cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			return newCase(m, op, shape, ops.DBiasDActivationArgs{
				Grad: m.random(rows, cols), FwdInput: m.random(rows, cols), DBias: m.fresh(m.dtype, cols), Output: m.fresh(m.dtype, rows, cols),
			})
		}
	}
	cases[ops.ClampedSwiGLU.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
		return newCase(m, ops.ClampedSwiGLU, shape, ops.ClampedSwiGLUArgs{Input: m.random(rows, 2*cols), Output: m.fresh(m.dtype, rows, cols)})
	}
	cases[ops.ClampedDSwiGLU.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
		return newCase(m, ops.ClampedDSwiGLU, shape, ops.ClampedDSwiGLUArgs{
			Grad: m.random(rows, cols), FwdInput: m.random(rows, 2*cols), Output: m.fresh(m.dtype, rows, 2*cols),
		})
	}
	addSoftmaxCases(cases)
	return cases
}

// addSoftmaxCases adds those over one matrix of scores; the triangular ones are over as
// many square ones as it holds, one at least.
func addSoftmaxCases(cases map[string]builder) {
	scores := func(op opregistry.Handle, rows, cols int) []int {
		if op.Name() == ops.ScaledUpperTriangMaskedSoftmaxForward.Name() || op.Name() == ops.ScaledUpperTriangMaskedSoftmaxBackward.Name() {
			return []int{max(rows/cols, 1), cols, cols}
		}
		return []int{1, 1, rows, cols}
	}
	const scale = 0.125
	for _, op := range []*softmax{ops.ScaledSoftmaxForward, ops.ScaledUpperTriangMaskedSoftmaxForward, ops.ScaledAlignedCausalMaskedSoftmaxForward} {
		cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			s := scores(op, rows, cols)
			return newCase(m, op, shape, ops.SoftmaxArgs{Input: m.random(s...), Output: m.fresh(m.dtype, s...), ScaleFactor: scale})
		}
	}
	for _, op := range []*softmaxGrad{
		ops.ScaledSoftmaxBackward, ops.ScaledMaskedSoftmaxBackward, ops.ScaledUpperTriangMaskedSoftmaxBackward, ops.ScaledAlignedCausalMaskedSoftmaxBackward,
	} {
		cases[op.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
			s := scores(op, rows, cols)
			return newCase(m, op, shape, ops.SoftmaxBackwardArgs{
				OutputGrads: m.random(s...), SoftmaxResults: m.random(s...), Output: m.fresh(m.dtype, s...), ScaleFactor: scale,
			})
		}
	}
	cases[ops.ScaledMaskedSoftmaxForward.Name()] = func(m *Maker, shape string, rows, cols int) (Case, error) {
		return newCase(m, ops.ScaledMaskedSoftmaxForward, shape, ops.ScaledMaskedSoftmaxForwardArgs{
			Input: m.random(1, 1, rows, cols), Mask: m.fresh(tensor.U8, 1, 1, rows, cols), Output: m.fresh(m.dtype, 1, 1, rows, cols), ScaleFactor: scale,
		})
	}
}
